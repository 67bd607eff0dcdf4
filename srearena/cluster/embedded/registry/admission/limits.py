"""LimitRanger: defaults and bounds for what containers, pods and claims of a namespace may ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from srearena.cluster.embedded.objects import Obj, dig, is_terminating
from srearena.cluster.embedded.quantity import Quantity, canonical, parse
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.registry.errors import aggregate
from srearena.cluster.embedded.registry.strategies.pod_resources import aggregate as sum_of_containers
from srearena.cluster.embedded.store import Store

_ANNOTATION = "kubernetes.io/limit-ranger"


class LimitRanger(Plugin):
    name = "LimitRanger"

    def __init__(self, store: Store) -> None:
        self._store = store

    def _ranges(self, attributes: Attributes) -> Iterator[list[Obj]]:
        """The items of each LimitRange: every one fills in and judges for itself."""
        for limit_range in self._store.objects("limitranges", attributes.namespace):
            yield dig(limit_range, "spec", "limits", default=[])

    def admit(self, attributes: Attributes) -> None:
        pod = attributes.obj
        if pod is None or not attributes.is_for("pods", "CREATE"):
            return
        for items in self._ranges(attributes):
            notes = [note for field in ("containers", "initContainers") for note in _fill(pod, field, items)]
            if notes:
                annotations = pod["metadata"].setdefault("annotations", {})
                annotations[_ANNOTATION] = "LimitRanger plugin set: " + "; ".join(notes)

    def validate(self, attributes: Attributes) -> None:
        obj = attributes.obj
        if obj is None:
            return
        resized = attributes.is_for("pods", "UPDATE", subresource="resize")
        if attributes.is_for("pods", "CREATE") or resized:
            problems_of: Callable[[list[Obj], Obj], Iterator[str]] = _pod_problems
        elif attributes.is_for("persistentvolumeclaims", "CREATE", "UPDATE"):
            problems_of = _claim_problems
        else:
            return
        if attributes.old is not None and is_terminating(attributes.old):
            return
        for items in self._ranges(attributes):
            problems = list(problems_of(items, obj))
            if problems:
                raise attributes.refusal(aggregate(problems))


def _pod_problems(items: list[Obj], pod: Obj) -> Iterator[str]:
    spec = pod.get("spec") or {}
    for item in items:
        if item.get("type") == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                resources = container.get("resources") or {}
                yield from _bounds(item, resources.get("requests") or {}, resources.get("limits") or {})
        elif item.get("type") == "Pod":
            yield from _bounds(item, _whole(spec, "requests"), _whole(spec, "limits"))


def _claim_problems(items: list[Obj], claim: Obj) -> Iterator[str]:
    requests = dig(claim, "spec", "resources", "requests", default={})
    for item in items:
        if item.get("type") == "PersistentVolumeClaim":
            yield from _bounds(item, requests, {})


def _fill(pod: Obj, field: str, items: list[Obj]) -> Iterator[str]:
    """Set default requests and limits; says what was set, as the annotation does."""
    noun = "container" if field == "containers" else "init container"
    defaults: dict[str, dict[str, str]] = {"default": {}, "defaultRequest": {}}
    for item in items:
        if item.get("type") == "Container":
            for source, values in defaults.items():
                values.update(item.get(source) or {})
    for container in dig(pod, "spec", field, default=()):
        for key, source, word in (("requests", "defaultRequest", "request"), ("limits", "default", "limit")):
            requirements = dig(container, "resources", key, default={})
            added = {name: value for name, value in defaults[source].items() if name not in requirements}
            if added:
                container.setdefault("resources", {})[key] = {**requirements, **added}
                yield f"{', '.join(sorted(added))} {word} for {noun} {container.get('name')}"


def _whole(spec: Obj, key: str) -> dict[str, str]:
    """What the pod as a whole requests or is limited to, which it may state itself."""
    own = {name: value for name, value in dig(spec, "resources", key, default={}).items() if name in ("cpu", "memory")}
    return {**{name: str(amount) for name, amount in sum_of_containers(spec, key).items()}, **own}


def _bounds(item: Obj, requests: dict[str, str], limits: dict[str, str]) -> Iterator[str]:
    kind = item["type"]
    for name, least in sorted((item.get("min") or {}).items()):
        yield from _minimum(kind, name, least, requests.get(name), limits.get(name))
    for name, most in sorted((item.get("max") or {}).items()):
        if kind == "PersistentVolumeClaim":
            yield from _maximum_request(kind, name, most, requests.get(name))
        else:
            yield from _maximum(kind, name, most, requests.get(name), limits.get(name))
    if kind == "PersistentVolumeClaim":
        return
    for name, ratio in sorted((item.get("maxLimitRequestRatio") or {}).items()):
        yield from _ratio(kind, name, ratio, requests.get(name), limits.get(name))


def _minimum(kind: str, name: str, least: str, request: str | None, limit: str | None) -> Iterator[str]:
    start = f"minimum {name} usage per {kind} is {canonical(least)}"
    if request is None:
        yield f"{start}.  No request is specified"
    elif parse(request) < parse(least):
        yield f"{start}, but request is {canonical(request)}"
    elif limit is not None and parse(limit) < parse(least):
        yield f"{start}, but limit is {canonical(limit)}"


def _maximum_request(kind: str, name: str, most: str, request: str | None) -> Iterator[str]:
    start = f"maximum {name} usage per {kind} is {canonical(most)}"
    if request is None:
        yield f"{start}.  No request is specified"
    elif parse(request) > parse(most):
        yield f"{start}, but request is {canonical(request)}"


def _maximum(kind: str, name: str, most: str, request: str | None, limit: str | None) -> Iterator[str]:
    start = f"maximum {name} usage per {kind} is {canonical(most)}"
    if limit is None:
        yield f"{start}.  No limit is specified"
    elif parse(limit) > parse(most):
        yield f"{start}, but limit is {canonical(limit)}"
    elif request is not None and parse(request) > parse(most):
        yield f"{start}, but request is {canonical(request)}"


def _ratio(kind: str, name: str, ratio: str, request: str | None, limit: str | None) -> Iterator[str]:
    start = f"{name} max limit to request ratio per {kind} is {canonical(ratio)}"
    if request is None or not parse(request):
        yield f"{start}, but no request is specified or request is 0"
    elif limit is None or not parse(limit):
        yield f"{start}, but no limit is specified or limit is 0"
    elif _divided(parse(limit), parse(request)) > _divided(parse(ratio), Quantity.of(1)):
        yield f"{start}, but provided ratio is {float(_divided(parse(limit), parse(request))):.6f}"


def _divided(one: Quantity, other: Quantity) -> Fraction:
    return Fraction(one.scaled_value(-9), other.scaled_value(-9))
