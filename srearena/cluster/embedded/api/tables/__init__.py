"""Objects as tables and as bare metadata, the two shapes clients ask for instead of the objects themselves.

A table is computed from the objects in wire shape and the moment they are looked at; nothing is read but the
arguments and nothing passed in is changed. Rows share the metadata of the objects they show.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from srearena.cluster.embedded.api.tables import access, core, networking, pods, policies, storage, workloads
from srearena.cluster.embedded.api.tables.columns import DEFAULT, Column, Printer, text
from srearena.cluster.embedded.api.tables.dynamic import custom_printer, node_usage_printer, pod_usage_printer
from srearena.cluster.embedded.objects import Obj

__all__ = [
    "INCLUDE_OBJECT",
    "PRINTERS",
    "Column",
    "Printer",
    "partial_list",
    "partial_object_metadata",
    "printer_for",
    "table_for",
]

INCLUDE_OBJECT: Final = ("None", "Metadata", "Object")
"""The values the `includeObject` parameter may have; an empty one means Metadata."""

PRINTERS: Final[Mapping[tuple[str, str], Printer]] = {
    **access.PRINTERS,
    **core.PRINTERS,
    **networking.PRINTERS,
    **pods.PRINTERS,
    **policies.PRINTERS,
    **storage.PRINTERS,
    **workloads.PRINTERS,
}
"""The printers of the built-in kinds, by group and plural."""

_BY_CONTENT: Final[Mapping[tuple[str, str], Callable[[Sequence[Obj]], Printer]]] = {
    ("metrics.k8s.io", "nodes"): node_usage_printer,
    ("metrics.k8s.io", "pods"): pod_usage_printer,
}
_META_VERSION: Final = "meta.k8s.io/v1"
_LIST_FIELDS: Final = ("resourceVersion", "continue", "remainingItemCount")


def printer_for(
    group: str,
    resource: str,
    objects: Sequence[Obj] = (),
    crd_columns: Sequence[Mapping[str, Any]] | None = None,
) -> Printer:
    """The printer of a kind. Custom resources pass their columns, which may be none; built-in kinds pass None."""
    if crd_columns is not None:
        return custom_printer(crd_columns)
    key = (group, resource)
    if choose := _BY_CONTENT.get(key):
        return choose(objects)
    return PRINTERS.get(key, DEFAULT)


def table_for(
    group: str,
    resource: str,
    objects: list[Obj],
    now: float,
    *,
    include_object: str = "Metadata",
    crd_columns: Sequence[Mapping[str, Any]] | None = None,
    list_meta: Mapping[str, Any] | None = None,
    api_version: str = _META_VERSION,
    headers: bool = True,
) -> Obj:
    """The Table of these objects at `now`.

    `list_meta` is the metadata of the list; a single object needs none, its own version is taken. Without `headers`
    (every event of a watch but the first) the column definitions are left out.
    """
    if include_object not in INCLUDE_OBJECT:
        raise ValueError(f"unrecognized includeObject value: {include_object}")
    chosen = printer_for(group, resource, objects, crd_columns)
    row, conditions = chosen.row, chosen.conditions
    rows = []
    for obj in chosen.order(objects):
        entry: Obj = {"cells": row(obj, now)}
        if found := conditions(obj):
            entry["conditions"] = found
        if include_object == "Metadata":
            entry["object"] = partial_object_metadata(obj, api_version)
        else:
            entry["object"] = obj if include_object == "Object" else None
        rows.append(entry)
    return {
        "kind": "Table",
        "apiVersion": api_version,
        "metadata": _list_meta(objects, list_meta),
        "columnDefinitions": chosen.definitions() if headers else None,
        "rows": rows,
    }


def partial_object_metadata(obj: Obj, api_version: str = _META_VERSION) -> Obj:
    """The object's metadata and nothing else of it."""
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj.get("metadata") or {}}


def partial_list(
    objects: Sequence[Obj],
    list_meta: Mapping[str, Any] | None = None,
    api_version: str = _META_VERSION,
) -> Obj:
    """The metadata of each object, as a list."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": api_version,
        "metadata": _list_meta((), list_meta),
        "items": [partial_object_metadata(obj, api_version) for obj in objects],
    }


def _list_meta(objects: Sequence[Obj], list_meta: Mapping[str, Any] | None) -> Obj:
    if list_meta is None:
        version = text(objects[0], "metadata", "resourceVersion") if len(objects) == 1 else ""
        return {"resourceVersion": version} if version else {}
    return {key: list_meta[key] for key in _LIST_FIELDS if list_meta.get(key)}
