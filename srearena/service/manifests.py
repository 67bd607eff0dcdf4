"""Manifests on disk: all are read and checked before any is applied.

An error (invalid YAML, no kind, two objects of one name) names file, line and reason. Objects are ordered by
dependency: namespaces and definitions first, then what workloads refer to, then workloads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import yaml
from yaml.nodes import MappingNode, Node

from srearena.errors import one_line
from srearena.service.errors import ManifestError

Obj = dict[str, Any]
_SUFFIXES = (".yaml", ".yml", ".json")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

ORDER = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
    "ResourceQuota",
    "LimitRange",
    "NetworkPolicy",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DaemonSet",
    "StatefulSet",
    "Deployment",
    "ReplicaSet",
    "Pod",
    "Job",
    "CronJob",
    "PodDisruptionBudget",
    "HorizontalPodAutoscaler",
    "Ingress",
)
"""The order in which kinds are applied; other kinds follow, and webhooks come last."""
_LAST = ("APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One object of a file."""

    path: Path
    line: int
    obj: Obj

    @property
    def kind(self) -> str:
        return str(self.obj["kind"])

    @property
    def name(self) -> str:
        return str(self.obj["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.obj["metadata"].get("namespace") or "")

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind} {self.name}"


def read_manifests(folder: Path) -> list[Manifest]:
    """Read the objects of all files under a folder, in the order in which they are applied."""
    files = sorted(path for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    stamps = tuple((str(path), path.stat().st_mtime_ns) for path in files)
    # Each caller gets a copy, since callers may modify the objects.
    return [Manifest(m.path, m.line, orjson.loads(orjson.dumps(m.obj))) for m in _read(stamps)]


@lru_cache(maxsize=64)
def _read(stamps: tuple[tuple[str, int], ...]) -> tuple[Manifest, ...]:
    manifests = [manifest for name, _ in stamps for manifest in parse_file(Path(name))]
    by_identity: dict[tuple[str, str, str, str], Manifest] = {}
    for manifest in manifests:
        identity = (str(manifest.obj["apiVersion"]), manifest.kind, manifest.namespace, manifest.name)
        first = by_identity.setdefault(identity, manifest)
        if first is not manifest:
            raise ManifestError(f"{manifest} is defined already, in {first.path}:{first.line}")
    return tuple(in_order(manifests))


def in_order(manifests: Iterable[Manifest]) -> list[Manifest]:
    rank = {kind: number for number, kind in enumerate(ORDER)}
    rank.update({kind: 1000 + number for number, kind in enumerate(_LAST)})
    return sorted(manifests, key=lambda manifest: rank.get(manifest.kind, 500))


def parse_file(path: Path) -> list[Manifest]:
    """Parse the objects of one file; ManifestError names the line of the first error."""
    try:
        text = path.read_text()
        return [manifest for node in yaml.compose_all(text, Loader=_LOADER) for manifest in _objects(path, node)]
    except (OSError, UnicodeDecodeError) as problem:
        raise ManifestError(f"{path} cannot be read: {problem}") from problem
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise ManifestError(f"{path}:{line}: this is not YAML: {problem.problem or problem.context}") from problem
    except yaml.YAMLError as problem:
        raise ManifestError(f"{path}:1: this is not YAML: {one_line(problem)}") from problem


def _objects(path: Path, node: Node) -> Iterator[Manifest]:
    loader = _LOADER("")
    obj = loader.construct_document(node)
    line = node.start_mark.line + 1
    if obj is None:
        return
    if not isinstance(obj, dict) or not isinstance(node, MappingNode):
        raise ManifestError(f"{path}:{line}: an object is a mapping, this is {_described(obj)}")
    if obj.get("kind") == "List":
        items = next(value for key, value in node.value if key.value == "items")
        for item in items.value:
            yield from _objects(path, item)
        return
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str) or not obj[field]:
            raise ManifestError(f"{path}:{line}: this object has no {field}")
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        raise ManifestError(f"{path}:{line}: this {obj['kind']} has no metadata.name")
    if not isinstance(metadata["name"], str):
        raise ManifestError(f"{path}:{line}: metadata.name must be text; quote {metadata['name']!r}")
    yield Manifest(path, line, obj)


def _described(value: Any) -> str:
    return {"list": "a list", "str": "text"}.get(type(value).__name__, f"a {type(value).__name__}")


def pod_template(obj: Obj) -> Obj | None:
    """The pod spec of a workload; None for other kinds."""
    spec = obj.get("spec") or {}
    match obj.get("kind"):
        case "Pod":
            return spec
        case "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job":
            return (spec.get("template") or {}).get("spec")
        case "CronJob":
            job = (spec.get("jobTemplate") or {}).get("spec") or {}
            return (job.get("template") or {}).get("spec")
    return None


def images_of(obj: Obj) -> list[str]:
    """The images of a workload's containers, in their order."""
    spec = pod_template(obj) or {}
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    return [str(container["image"]) for container in containers if container.get("image")]
