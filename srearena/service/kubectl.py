"""Running the real kubectl on one cluster, for people and agents.

The harness itself uses `srearena.service.kubernetes`, which needs no external program and parses no text.
"""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import orjson

from srearena.closeable import Closeable
from srearena.service.shell import Shell, require_tool
from srearena.temporary import make_folder

_ADVICE = "get it from https://kubernetes.io/docs/tasks/tools/"


class KubeCtl(Closeable):
    """kubectl with its own kubeconfig and discovery cache; close it, or use it as a context manager."""

    def __init__(self, kubeconfig: Path | str, namespace: str = "") -> None:
        self._program = require_tool("kubectl", _ADVICE)
        self._cache = make_folder("kubectl")
        self._options = [f"--kubeconfig={kubeconfig}", f"--cache-dir={self._cache}"]
        if namespace:
            self._options.append(f"--namespace={namespace}")

    def close(self) -> None:
        shutil.rmtree(self._cache, ignore_errors=True)

    def run(self, *arguments: str, stdin: str | None = None, timeout: float = 120.0) -> str:
        """Run kubectl and return its output; CommandFailed with its error output where it fails."""
        return Shell().run(self._program, *self._options, *arguments, stdin=stdin, timeout=timeout).stdout

    def exec_command(self, command: str, timeout: float = 120.0) -> str:
        """Run a command line (`kubectl get pods -A`) and return its output and error output together."""
        words = shlex.split(command)
        if words[:1] == ["kubectl"]:
            words = words[1:]
        done = Shell().run(self._program, *self._options, *words, timeout=timeout, check=False)
        return done.stdout + done.stderr

    def get_json(self, *arguments: str) -> Any:
        """Run `kubectl get ... -o json` and decode its output."""
        return orjson.loads(self.run("get", *arguments, "-o", "json"))
