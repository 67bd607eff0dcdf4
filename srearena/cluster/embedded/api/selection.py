"""Which objects a collection request is about: a namespace, a name, label and field selectors, or all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from srearena.cluster.embedded.api import custom
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.objects import Obj, labels_of, meta
from srearena.cluster.embedded.registry.field_selectors import parse_field_selector
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.registry.selectors import LabelSelector, parse_label_selector
from srearena.cluster.embedded.store import Store


@dataclass(slots=True, frozen=True)
class Selection:
    namespace: str = ""
    name: str = ""
    matcher: Callable[[Obj], bool] | None = None
    """None where neither labels nor fields are asked for."""

    @property
    def everything(self) -> bool:
        return self.matcher is None and not self.name

    def covers(self, obj: Obj) -> bool:
        """Whether the object is at a place that is asked for; what it says does not matter."""
        metadata = meta(obj)
        if self.namespace and metadata.get("namespace") != self.namespace:
            return False
        return not self.name or metadata.get("name") == self.name

    def matches(self, obj: Obj) -> bool:
        return self.matcher is None or self.matcher(obj)

    def of(self, objects: list[Obj]) -> list[Obj]:
        if self.name:
            objects = [obj for obj in objects if obj["metadata"]["name"] == self.name]
        if self.matcher is not None:
            objects = list(filter(self.matcher, objects))
        return objects


def selection_of(request: Request, row: Resource, store: Store) -> Selection:
    """The selection of a list, watch or deletecollection request."""
    labels = parse_label_selector(request.query.text("labelSelector"))
    fields = parse_field_selector(request.query.text("fieldSelector"))
    matcher: Callable[[Obj], bool] | None = None
    if not fields.empty:
        matcher = fields.bind(custom.selectable(store, row))
    if not labels.empty:
        matcher = _both(labels, matcher)
    namespace = request.info.namespace if row.namespaced else ""
    # A watch of one object by its path has the name there; selecting by name is in the matcher already.
    name = request.info.parts[1] if len(request.info.parts) > 1 else ""
    return Selection(namespace, name, matcher)


def _both(labels: LabelSelector, other: Callable[[Obj], bool] | None) -> Callable[[Obj], bool]:
    if other is None:
        return lambda obj: labels.matches(labels_of(obj))
    return lambda obj: labels.matches(labels_of(obj)) and other(obj)
