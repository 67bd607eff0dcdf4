"""The scale subresource of any workload: actual and desired replicas, and the selector."""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.selectors import (
    LabelSelector,
    label_selector_of,
    label_set_selector,
    parse_label_selector,
)
from srearena.jsonpath import parse as parse_path

_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"


@dataclass(slots=True, frozen=True)
class ScaleTarget:
    resource: Resource
    obj: Obj
    wanted: int
    current: int
    selector: LabelSelector


def find_target(client: Client, namespace: str, reference: Obj) -> ScaleTarget | None:
    """The object of a scaleTargetRef; None where it is missing or cannot be scaled."""
    row = client.registry.resources.of_kind(reference.get("apiVersion", ""), reference.get("kind", ""))
    if row is None or row.subresource("scale") is None:
        return None
    obj = client.get(row.group_resource, namespace, reference.get("name", ""))
    if obj is None:
        return None
    if row.custom:
        return _custom_target(client, row, obj)
    raw = dig(obj, "spec", "selector")
    selector = label_set_selector(raw) if row.kind == "ReplicationController" else label_selector_of(raw)
    replicas = dig(obj, "spec", "replicas", default=1)
    return ScaleTarget(row, obj, replicas, dig(obj, "status", "replicas", default=0), selector)


def _paths(client: Client, row: Resource) -> Obj:
    definition = client.get(_DEFINITIONS, "", row.group_resource) or {}
    versions = dig(definition, "spec", "versions", default=())
    version: Obj = next((v for v in versions if v.get("name") == row.version), {})
    found: Obj = dig(version, "subresources", "scale", default={})
    return found


def _custom_target(client: Client, row: Resource, obj: Obj) -> ScaleTarget:
    paths = _paths(client, row)

    def at(key: str) -> object:
        found = parse_path(paths[key]).find(obj) if paths.get(key) else []
        return found[0] if found else None

    wanted, current, selector = at("specReplicasPath"), at("statusReplicasPath"), at("labelSelectorPath")
    return ScaleTarget(
        row,
        obj,
        wanted if isinstance(wanted, int) else 0,
        current if isinstance(current, int) else 0,
        parse_label_selector(str(selector or "")),
    )


def set_replicas(client: Client, target: ScaleTarget, replicas: int) -> None:
    """Set the desired replicas of the workload."""
    path = ["spec", "replicas"]
    if target.resource.custom:
        path = [step for step in _paths(client, target.resource).get("specReplicasPath", "").split(".") if step]

    def change(obj: Obj) -> None:
        here = obj
        for step in path[:-1]:
            here = here.setdefault(step, {})
        here[path[-1]] = replicas

    client.modify(target.resource.group_resource, namespace_of(target.obj), name_of(target.obj), change, "scale")
