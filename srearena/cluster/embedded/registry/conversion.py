"""Between the version a request speaks and the version an object is kept in.

Almost every resource is kept in the one version it is served in, and then the very object passes through untouched.
The exceptions register a pair of functions here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import autoscaler_versions, event_versions
from srearena.cluster.embedded.registry.resources import Resource


@dataclass(slots=True, frozen=True)
class Conversion:
    """Both functions return a new object and leave the given one alone."""

    to_storage: Callable[[Obj], Obj]
    from_storage: Callable[[Obj], Obj]


CONVERSIONS: dict[tuple[str, str], Conversion] = {
    ("autoscaling/v1", "HorizontalPodAutoscaler"): Conversion(autoscaler_versions.to_v2, autoscaler_versions.to_v1),
    ("events.k8s.io/v1", "Event"): Conversion(event_versions.to_core, event_versions.from_core),
}
"""By (api version served, kind)."""


def to_storage(row: Resource, obj: Obj) -> Obj:
    """The object as it is kept."""
    if not row.storage_version or row.storage_version == row.api_version:
        return obj
    if row.converter is not None:
        return row.converter.convert(obj, row.storage_version)
    conversion = CONVERSIONS.get((row.api_version, row.kind))
    return conversion.to_storage(obj) if conversion else {**obj, "apiVersion": row.storage_version}


def from_storage(row: Resource, obj: Obj) -> Obj:
    """The object as this row's version shows it."""
    if row.converter is not None:
        obj = row.converter.convert(obj, row.api_version)
    elif row.storage_version and row.storage_version != row.api_version:
        conversion = CONVERSIONS.get((row.api_version, row.kind))
        obj = conversion.from_storage(obj) if conversion else {**obj, "apiVersion": row.api_version}
    elif row.custom and obj.get("apiVersion") != row.api_version:
        # Written when another version was the one to store.
        obj = {**obj, "apiVersion": row.api_version}
    return obj if row.complete is None else row.complete(obj)


def all_from_storage(row: Resource, objects: list[Obj]) -> list[Obj]:
    """The objects of a list; those that a webhook converts are sent to it together."""
    if row.converter is None:
        return [from_storage(row, obj) for obj in objects]
    converted = row.converter.convert_all(objects, row.api_version)
    return converted if row.complete is None else list(map(row.complete, converted))


def shows_stored(row: Resource) -> bool:
    """Whether objects are shown exactly as they are kept."""
    return not row.custom and (not row.storage_version or row.storage_version == row.api_version)
