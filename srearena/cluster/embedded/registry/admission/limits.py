"""LimitRanger: defaults and bounds for what containers, pods and claims of a namespace may ask for."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.quantity import Quantity, canonical, parse, total
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.registry.errors import aggregate
from srearena.cluster.embedded.store import Store

_ANNOTATION = "kubernetes.io/limit-ranger"


class LimitRanger(Plugin):
    name = "LimitRanger"

    def __init__(self, store: Store) -> None:
        self._store = store

    def _items(self, attributes: Attributes, kind: str) -> list[Obj]:
        return [
            item
            for limit_range in self._store.objects("limitranges", attributes.namespace)
            for item in dig(limit_range, "spec", "limits", default=())
            if item.get("type") == kind
        ]

    def admit(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not attributes.is_for("pods", "CREATE"):
            return
        items = self._items(attributes, "Container")
        if not items:
            return
        notes = [note for field in ("containers", "initContainers") for note in _fill(pod, field, items)]
        if notes:
            annotations = pod["metadata"].setdefault("annotations", {})
            annotations[_ANNOTATION] = "LimitRanger plugin set: " + "; ".join(notes)

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.obj
        if obj is None:
            return
        if attributes.is_for("pods", "CREATE"):
            problems = list(self._pod_problems(attributes, obj))
        elif attributes.is_for("persistentvolumeclaims", "CREATE", "UPDATE"):
            problems = list(self._claim_problems(attributes, obj))
        else:
            return
        if problems:
            raise attributes.refusal(aggregate(problems))

    def _pod_problems(self, attributes: Attributes, pod: Obj) -> Iterable[str]:
        containers = [*dig(pod, "spec", "containers", default=()), *dig(pod, "spec", "initContainers", default=())]
        for item in self._items(attributes, "Container"):
            for container in containers:
                resources = container.get("resources") or {}
                yield from _bounds(item, "Container", resources.get("requests") or {}, resources.get("limits") or {})
        for item in self._items(attributes, "Pod"):
            yield from _bounds(item, "Pod", _sum(pod, "requests"), _sum(pod, "limits"))

    def _claim_problems(self, attributes: Attributes, claim: Obj) -> Iterable[str]:
        requests = dig(claim, "spec", "resources", "requests", default={})
        for item in self._items(attributes, "PersistentVolumeClaim"):
            yield from _bounds(item, "PersistentVolumeClaim", requests, {})


def _fill(pod: Obj, field: str, items: list[Obj]) -> Iterable[str]:
    """Set default requests and limits; says what was set, as the annotation does."""
    noun = "container" if field == "containers" else "init container"
    for container in dig(pod, "spec", field, default=()):
        resources = container.setdefault("resources", {})
        for key, source, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
            given = resources.get(key) or {}
            added: dict[str, str] = {}
            for item in items:
                for name, value in (item.get(source) or {}).items():
                    if name not in given and name not in added:
                        added[name] = value
            if added:
                resources[key] = {**given, **added}
                yield f"{', '.join(sorted(added))} {word} for {noun} {container.get('name')}"


def _sum(pod: Obj, key: str) -> dict[str, str]:
    containers = dig(pod, "spec", "containers", default=())
    names = {name for container in containers for name in dig(container, "resources", key, default={})}
    return {
        name: str(total(dig(container, "resources", key, name, default="0") for container in containers))
        for name in names
        if key == "requests" or all(name in dig(container, "resources", key, default={}) for container in containers)
    }


def _bounds(item: Obj, kind: str, requests: dict[str, str], limits: dict[str, str]) -> Iterable[str]:
    for name, least in sorted((item.get("min") or {}).items()):
        yield from _minimum(kind, name, least, requests.get(name), limits.get(name))
    for name, most in sorted((item.get("max") or {}).items()):
        yield from _maximum(kind, name, most, requests.get(name), limits.get(name))
    for name, ratio in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        yield from _ratio(kind, name, ratio, requests.get(name), limits.get(name))


def _minimum(kind: str, name: str, least: str, request: str | None, limit: str | None) -> Iterable[str]:
    start = f"minimum {name} usage per {kind} is {canonical(least)}"
    if request is None:
        yield f"{start}.  No request is specified"
    elif parse(request) < parse(least):
        yield f"{start}, but request is {canonical(request)}"
    elif limit is not None and parse(limit) < parse(least):
        yield f"{start}, but limit is {canonical(limit)}"


def _maximum(kind: str, name: str, most: str, request: str | None, limit: str | None) -> Iterable[str]:
    start = f"maximum {name} usage per {kind} is {canonical(most)}"
    if limit is None and kind != "PersistentVolumeClaim":
        yield f"{start}.  No limit is specified"
    elif limit is not None and parse(limit) > parse(most):
        yield f"{start}, but limit is {canonical(limit)}"
    elif request is not None and parse(request) > parse(most):
        yield f"{start}, but request is {canonical(request)}"


def _ratio(kind: str, name: str, ratio: str, request: str | None, limit: str | None) -> Iterable[str]:
    start = f"{name} max limit to request ratio per {kind} is {canonical(ratio)}"
    if request is None or not parse(request):
        yield f"{start}, but no request is specified or request is 0"
    elif limit is None or not parse(limit):
        yield f"{start}, but no limit is specified or limit is 0"
    elif _divided(parse(limit), parse(request)) > _divided(parse(ratio), Quantity.of(1)):
        yield f"{start}, but provided ratio is {float(_divided(parse(limit), parse(request))):.6f}"


def _divided(one: Quantity, other: Quantity) -> Fraction:
    return Fraction(one.scaled_value(-9), other.scaled_value(-9))
