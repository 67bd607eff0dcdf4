"""Running the real helm on one cluster, for applications that are deployed from a chart."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from srearena.service.errors import ApplicationError
from srearena.service.shell import Shell, require_tool

_ADVICE = "an application with a `Helm Config` needs it; get it from https://helm.sh/docs/intro/install/"


@dataclass(frozen=True, slots=True)
class HelmConfig:
    """The field `Helm Config` of an application's metadata: the chart it is deployed from."""

    release_name: str
    chart_path: str
    namespace: str
    values: Mapping[str, Any]

    @classmethod
    def parse(cls, config: Any, folder: Path, source: str) -> HelmConfig:
        """Parse the field; a chart path that exists beside the metadata file is relative to it."""
        if not isinstance(config, dict):
            raise ApplicationError(f"{source}: Helm Config must be an object")
        missing = [key for key in ("release_name", "chart_path", "namespace") if not config.get(key)]
        if missing:
            raise ApplicationError(f"{source}: Helm Config lacks {', '.join(missing)}")
        chart = str(config["chart_path"])
        beside = folder / chart
        return cls(
            str(config["release_name"]),
            str(beside) if beside.exists() else chart,
            str(config["namespace"]),
            config.get("values") or {},
        )


class Helm:
    def __init__(self, kubeconfig: Path | str) -> None:
        self._program = require_tool("helm", _ADVICE)
        self._kubeconfig = str(kubeconfig)

    def run(self, *arguments: str, timeout: float = 600.0) -> str:
        """Run helm and return its output; CommandFailed with its error output where it fails."""
        return Shell().run(self._program, f"--kubeconfig={self._kubeconfig}", *arguments, timeout=timeout).stdout

    def install(self, config: HelmConfig) -> None:
        """Install or upgrade the release; does not wait for readiness."""
        with tempfile.TemporaryDirectory(prefix="values-") as folder:
            values = Path(folder) / "values.yaml"
            values.write_text(yaml.safe_dump(dict(config.values)))
            self.run(
                "upgrade",
                "--install",
                config.release_name,
                config.chart_path,
                f"--namespace={config.namespace}",
                "--create-namespace",
                f"--values={values}",
            )

    def uninstall(self, config: HelmConfig) -> None:
        self.run("uninstall", config.release_name, f"--namespace={config.namespace}", "--ignore-not-found")
