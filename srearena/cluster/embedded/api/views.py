"""How a resource or one of its subresources shows an object, and takes a changed one back.

Most show the object itself. `scale` shows a Scale, and some let only a part be written; updates and patches of any
kind work on what is shown, so they need not know the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from srearena.cluster.embedded.api import parts, scaling
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry import schemas
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.schema import Schema

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend


@dataclass(frozen=True, slots=True)
class View:
    api_version: str
    kind: str
    schema: Schema | None
    show: Callable[[Obj], Obj] = lambda obj: obj
    take: Callable[[Obj, Obj], Obj] = lambda current, requested: requested
    """(current, wanted): the object to store; both may be used up."""
    whole: bool = True
    """Whether it shows objects of the resource itself."""
    custom: bool = False
    """Whether the schema is that of a custom resource."""


def view_of(backend: Backend, row: Resource, subresource: str) -> View:
    if subresource == "scale":
        paths = scaling.paths_of(backend, row)
        return View(
            scaling.API_VERSION,
            scaling.KIND,
            schemas.for_kind("autoscaling", "v1", "Scale"),
            lambda obj: scaling.scale_of(obj, paths),
            lambda current, requested: scaling.scaled(current, requested, paths, row),
            whole=False,
        )
    schema = backend.registry.schema(row)
    mask = parts.MASKS.get(subresource)
    if mask is None:
        return View(row.api_version, row.kind, schema, custom=row.custom)
    return View(row.api_version, row.kind, schema, take=mask, custom=row.custom)


def view_of_kind(api_version: str, kind: str) -> View:
    """A built-in kind that is sent and answered but never stored as such."""
    group, _, version = api_version.rpartition("/")
    return View(api_version, kind, schemas.for_kind(group, version, kind))
