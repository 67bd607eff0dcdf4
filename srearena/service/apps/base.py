"""An application: what it is (metadata), what it consists of (manifests or a chart), how it is entered and driven.

    class MyApp(Application):
        def __init__(self) -> None:
            super().__init__("metadata.json")

Nothing here knows what kind of cluster it is deployed on: it gets a `Cluster`, which has a kubeconfig and lets time
pass. Every field of the metadata is shown to the agent, except `Helm Config`.
"""

from __future__ import annotations

import inspect
import json
from functools import cached_property
from pathlib import Path
from typing import Any

from srearena.cluster import Cluster
from srearena.service.deployment import apply_all, remove_all
from srearena.service.errors import ApplicationError, NotReady, TimedOut
from srearena.service.front_door import FrontDoor, Objectives
from srearena.service.helm import Helm, HelmConfig
from srearena.service.kubernetes import Kubernetes
from srearena.service.manifests import Manifest, images_of, read_manifests
from srearena.service.readiness import not_ready
from srearena.service.waiting import wait_until
from srearena.service.workload import Workload, make_workload, read_settings

METADATA = Path(__file__).parent.parent / "metadata"
"""Where metadata may lie that is not in its application's folder."""
_HIDDEN = "Helm Config"


class Application:
    """One application; making an object of it reads its metadata and touches no cluster."""

    def __init__(self, metadata: Path | str = "metadata.json") -> None:
        self.metadata_path = self._found(Path(metadata))
        self.metadata = _read(self.metadata_path)
        source = str(self.metadata_path)
        self.name = _text(self.metadata, "Name", source)
        self.namespace = _text(self.metadata, "Namespace", source)
        self.description = str(self.metadata.get("Desc") or self.metadata.get("Description") or "")
        self.folder = self._folder()
        config = self.metadata.get(_HIDDEN)
        self.helm_config = None if config is None else HelmConfig.parse(config, self.metadata_path.parent, source)
        door, promises = self.metadata.get("Front Door"), self.metadata.get("Objectives")
        self.front_door = None if door is None else FrontDoor.parse(door, source)
        self.objectives = Objectives() if promises is None else Objectives.parse(promises, source)
        self._workload: Workload | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    # What it is

    @property
    def facts(self) -> dict[str, Any]:
        """What the agent is told about the application."""
        return {key: value for key, value in self.metadata.items() if key != _HIDDEN}

    @property
    def model_path(self) -> Path | None:
        """What its images do in the simulator; None where nobody has described that."""
        path = self.folder / "model.yaml"
        return path if path.is_file() else None

    @cached_property
    def manifests(self) -> list[Manifest]:
        """Its objects in the order they are applied; ManifestError where a file has a mistake."""
        folder = self.folder / "manifests"
        return read_manifests(folder) if folder.is_dir() else []

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces it lives in, its own first."""
        declared = [m.name for m in self.manifests if m.kind == "Namespace"]
        used = [m.namespace for m in self.manifests if m.namespace]
        return tuple(dict.fromkeys((self.namespace, *declared, *used)))

    def images(self) -> list[str]:
        """Every image its manifests name."""
        return sorted({image for manifest in self.manifests for image in images_of(manifest.obj)})

    # Its life in a cluster

    def deploy(self, cluster: Cluster) -> None:
        """Bring its objects into the cluster; does not wait for them to be up."""
        manifests = self.manifests
        if not manifests and self.helm_config is None:
            raise ApplicationError(f"{self.name} has neither manifests in {self.folder} nor a Helm Config")
        if self.helm_config is not None:
            Helm(cluster.kubeconfig).install(self.helm_config)
        with Kubernetes.of(cluster) as api:
            apply_all(cluster, api, self.namespace, manifests)

    def not_ready(self, api: Kubernetes) -> list[str]:
        """What is not up yet, one line each; empty when all is well. A class may know more than the workloads say."""
        return not_ready(api, self.namespaces)

    def wait_until_ready(self, cluster: Cluster, timeout: float = 600.0) -> None:
        """Let time pass until everything is up; NotReady says what is not, and why."""
        with Kubernetes.of(cluster) as api:
            try:
                wait_until(lambda: not self.not_ready(api), cluster.wait, timeout)
            except TimedOut:
                complaints = "\n  ".join(self.not_ready(api))
                raise NotReady(f"{self.name} is not up after {timeout:g} s:\n  {complaints}") from None

    def delete(self, cluster: Cluster, timeout: float = 600.0) -> None:
        """Take everything of it out of the cluster; returns when it is gone."""
        if self.helm_config is not None:
            Helm(cluster.kubeconfig).uninstall(self.helm_config)
        with Kubernetes.of(cluster) as api:
            remove_all(cluster, api, self.namespace, self.namespaces, self.manifests, timeout)

    # Its load

    def workload(self, **settings: Any) -> Workload | None:
        """The load from its `workload.yaml`, with other settings where given; None where it has none."""
        path = self.folder / "workload.yaml"
        if not path.is_file():
            return None
        return make_workload(self.folder, {**read_settings(path), **settings})

    def start_workload(self, cluster: Cluster, **settings: Any) -> Workload | None:
        """Begin to drive it, with the settings of its `workload.yaml` or others (`rate=200`)."""
        self._workload = self.workload(**settings)
        if self._workload is not None:
            with Kubernetes.of(cluster) as api:
                self._workload.start(api, self.namespace)
        return self._workload

    def stop_workload(self, cluster: Cluster) -> None:
        """Stop driving it; not an error where nobody did."""
        workload = self._workload or self.workload()
        if workload is not None:
            with Kubernetes.of(cluster) as api:
                workload.stop(api, self.namespace)

    # Where its files are

    def _found(self, path: Path) -> Path:
        """A relative path is meant beside the class, in the folder of metadata, or from here, whichever exists."""
        candidates = [path] if path.is_absolute() else [self._home() / path, METADATA / path.name, path.resolve()]
        for candidate in candidates:
            if candidate.is_file():
                return candidate
        tried = ", ".join(dict.fromkeys(str(candidate) for candidate in candidates))
        raise ApplicationError(f"the metadata of {type(self).__name__} is not there: tried {tried}")

    def _home(self) -> Path:
        """The folder of the class."""
        try:
            return Path(inspect.getfile(type(self))).resolve().parent
        except (TypeError, OSError):
            return Path.cwd()

    def _folder(self) -> Path:
        """Where its manifests are: beside the metadata, or beside the class where the metadata lies elsewhere."""
        beside = self.metadata_path.resolve().parent
        places = (beside, self._home() / self.metadata_path.stem, self._home())
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
