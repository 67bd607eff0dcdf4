"""An application: its metadata, its manifests or Helm chart, its frontend and its workload.

    class MyApp(Application):
        def __init__(self) -> None:
            super().__init__("my-app.json")

It is independent of the kind of cluster it is deployed on: it gets a `Cluster`, with a kubeconfig and control over
time. Every field of the metadata is shown to the agent, except `Helm Config`.
"""

from __future__ import annotations

import inspect
import json
from functools import cached_property
from pathlib import Path
from typing import Any

from srearena.cluster import Cluster
from srearena.paths import METADATA
from srearena.service.deployment import apply_all, remove_all
from srearena.service.errors import ApplicationError, NotReady, TimedOut
from srearena.service.frontend import Frontend, Objectives
from srearena.service.helm import Helm, HelmConfig
from srearena.service.journeys import Journey
from srearena.service.kubernetes import Kubernetes
from srearena.service.manifests import Manifest, images_of, read_manifests
from srearena.service.readiness import not_ready
from srearena.service.waiting import wait_until
from srearena.service.workload import Workload, make_workload, read_settings

_HIDDEN = "Helm Config"


class Application:
    """One application; the constructor reads its metadata and makes no request to a cluster."""

    def __init__(self, metadata: Path | str = "metadata.json") -> None:
        self.metadata_path = self._locate_metadata(Path(metadata))
        self.metadata = _read(self.metadata_path)
        source = str(self.metadata_path)
        self.name = _text(self.metadata, "Name", source)
        self.namespace = _text(self.metadata, "Namespace", source)
        self.description = str(self.metadata.get("Desc") or self.metadata.get("Description") or "")
        self.folder = self._folder()
        config = self.metadata.get(_HIDDEN)
        self.helm_config = None if config is None else HelmConfig.parse(config, self.metadata_path.parent, source)
        frontend, objectives = self.metadata.get("Front Door"), self.metadata.get("Objectives")
        self.frontend = None if frontend is None else Frontend.parse(frontend, source)
        self.objectives = Objectives() if objectives is None else Objectives.parse(objectives, source)
        self._workload: Workload | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    # Description

    @property
    def facts(self) -> dict[str, Any]:
        """The metadata that is shown to the agent."""
        return {key: value for key, value in self.metadata.items() if key != _HIDDEN}

    @property
    def journeys(self) -> tuple[Journey, ...]:
        """What its users do from end to end; declared in `journeys.py` beside the application."""
        return ()

    @property
    def model_path(self) -> Path | None:
        """The model of its programs for the simulator; None where there is none."""
        path = self.folder / "model.yaml"
        return path if path.is_file() else None

    @cached_property
    def manifests(self) -> list[Manifest]:
        """Its objects in the order in which they are applied; ManifestError where a file is invalid."""
        folder = self.folder / "manifests"
        return read_manifests(folder) if folder.is_dir() else []

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces of its objects, its main namespace first."""
        return tuple(dict.fromkeys((self.namespace, *self._further_namespaces)))

    @cached_property
    def _further_namespaces(self) -> tuple[str, ...]:
        declared = [m.name for m in self.manifests if m.kind == "Namespace"]
        return tuple(dict.fromkeys((*declared, *(m.namespace for m in self.manifests if m.namespace))))

    def images(self) -> list[str]:
        """All images in its manifests."""
        return sorted({image for manifest in self.manifests for image in images_of(manifest.obj)})

    # Deployment

    def deploy(self, cluster: Cluster) -> None:
        """Create its objects in the cluster; does not wait for readiness."""
        manifests = self.manifests
        if not manifests and self.helm_config is None:
            raise ApplicationError(f"{self.name} has neither manifests in {self.folder} nor a Helm Config")
        if self.helm_config is not None:
            Helm(cluster.kubeconfig).install(self.helm_config)
        with Kubernetes.of(cluster) as api:
            apply_all(cluster, api, self.namespace, manifests)

    def not_ready(self, api: Kubernetes) -> list[str]:
        """What is not ready, one line each. Subclasses may add conditions beyond the readiness of workloads."""
        return not_ready(api, self.namespaces)

    def wait_until_ready(self, cluster: Cluster, timeout: float = 600.0) -> None:
        """Wait until everything is ready; NotReady lists what is not, and why."""
        with Kubernetes.of(cluster) as api:
            try:
                wait_until(lambda: not self.not_ready(api), cluster.wait, timeout)
            except TimedOut:
                details = "\n  ".join(self.not_ready(api))
                raise NotReady(f"{self.name} is not ready after {timeout:g} s:\n  {details}") from None

    def delete(self, cluster: Cluster, timeout: float = 600.0) -> None:
        """Delete everything of it from the cluster; returns when it is gone."""
        if self.helm_config is not None:
            Helm(cluster.kubeconfig).uninstall(self.helm_config)
        with Kubernetes.of(cluster) as api:
            remove_all(cluster, api, self.namespace, self.namespaces, self.manifests, timeout)

    # Workload

    def workload(self, **settings: Any) -> Workload | None:
        """Create the workload of its `workload.yaml`, with settings overridden; None where it has none."""
        path = self.folder / "workload.yaml"
        if not path.is_file():
            return None
        return make_workload(self.folder, {**read_settings(path), **settings})

    def start_workload(self, cluster: Cluster, **settings: Any) -> Workload | None:
        """Start its workload, with settings of its `workload.yaml` overridden (`rate=200`)."""
        self._workload = self.workload(**settings)
        if self._workload is not None:
            with Kubernetes.of(cluster) as api:
                self._workload.start(api, self.namespace)
        return self._workload

    def stop_workload(self, cluster: Cluster) -> None:
        """Stop its workload; not an error where none was running."""
        workload = self._workload or self.workload()
        if workload is not None:
            with Kubernetes.of(cluster) as api:
                workload.stop(api, self.namespace)

    # Files

    def _locate_metadata(self, path: Path) -> Path:
        """Resolve a relative path beside the class, in the metadata folder, or from the working directory."""
        candidates = [path] if path.is_absolute() else [self._home() / path, METADATA / path.name, path.resolve()]
        for candidate in candidates:
            if candidate.is_file():
                return candidate
        tried = ", ".join(dict.fromkeys(str(candidate) for candidate in candidates))
        raise ApplicationError(f"the metadata of {type(self).__name__} was not found: tried {tried}")

    def _home(self) -> Path:
        """The folder of the class."""
        try:
            return Path(inspect.getfile(type(self))).resolve().parent
        except (TypeError, OSError):
            return Path.cwd()

    def _folder(self) -> Path:
        """The folder of its manifests: that of the metadata, the one with its name beside the class, or the class's."""
        beside = self.metadata_path.resolve().parent
        names = (self.metadata_path.stem, self.metadata_path.stem.replace("-", "_"))
        places = (beside, *(self._home() / name for name in names), self._home())
        has_files = (place for place in places if (place / "manifests").is_dir() or (place / "model.yaml").is_file())
        return next(has_files, beside)


def _read(path: Path) -> dict[str, Any]:
    try:
        metadata = json.loads(path.read_text())
    except json.JSONDecodeError as problem:
        raise ApplicationError(f"{path}:{problem.lineno}: this is not JSON: {problem.msg}") from problem
    except (OSError, UnicodeDecodeError) as problem:
        raise ApplicationError(f"{path} cannot be read: {problem}") from problem
    if not isinstance(metadata, dict):
        raise ApplicationError(f"{path}: an application's metadata is a JSON object")
    return metadata


def _text(metadata: dict[str, Any], field: str, source: str) -> str:
    value = metadata.get(field)
    if not isinstance(value, str) or not value:
        raise ApplicationError(f"{source}: the field {field!r} is missing")
    return value
