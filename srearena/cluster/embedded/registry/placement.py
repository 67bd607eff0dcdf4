"""Pure questions about where a pod may run: its requests, its node selectors and affinity, taints and tolerations.

The scheduler, the DaemonSet controller, taint eviction and the kubelet's own admission all ask them here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from srearena.cluster.embedded.objects import Obj, dig, labels_of, name_of
from srearena.cluster.embedded.quantity import Quantity, parse
from srearena.cluster.embedded.registry.selectors import SelectorError, node_selector_of
from srearena.cluster.embedded.registry.strategies.pod_resources import aggregate

Amounts = dict[str, int]
"""Resource name → amount: milli-cores for cpu, whole units for everything else."""


def amount(resource: str, value: Any) -> int:
    quantity = parse(value) if not isinstance(value, Quantity) else value
    return quantity.milli_value() if resource == "cpu" else quantity.value()


def pod_requests(pod: Obj) -> Amounts:
    """What the pod asks of a node: its containers together, or its greediest init step if that is more."""
    spec = pod.get("spec") or {}
    requested: dict[str, Any] = {**aggregate(spec, "requests"), **dig(spec, "resources", "requests", default={})}
    total = {name: amount(name, value) for name, value in requested.items()}
    for name, value in (spec.get("overhead") or {}).items():
        total[name] = total.get(name, 0) + amount(name, value)
    return total


def host_ports(pod: Obj) -> list[tuple[str, str, int]]:
    """(address, protocol, port) that the pod wants on its node; init containers that end do not count."""
    spec = pod.get("spec") or {}
    sidecars = (c for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always")
    containers = [*(spec.get("containers") or ()), *sidecars]
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in containers
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def ports_clash(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    same = one[1] == other[1] and one[2] == other[2]
    return same and (one[0] == other[0] or "0.0.0.0" in (one[0], other[0]))


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and (toleration.get("value") or "") == (taint.get("value") or "")


def tolerated(tolerations: Iterable[Mapping[str, Any]], taint: Mapping[str, Any]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def untolerated_taint(
    pod: Obj, node: Obj, effects: tuple[str, ...] = ("NoSchedule", "NoExecute")
) -> Mapping[str, Any] | None:
    """The first taint of the node, of those effects, that keeps the pod away."""
    tolerations = dig(pod, "spec", "tolerations", default=())
    for taint in dig(node, "spec", "taints", default=()):
        if taint.get("effect") in effects and not tolerated(tolerations, taint):
            return taint  # type: ignore[no-any-return]
    return None


def matches_node_selector(pod: Obj, node: Obj) -> bool:
    """spec.nodeSelector and the required part of node affinity."""
    labels = labels_of(node)
    for key, value in dig(pod, "spec", "nodeSelector", default={}).items():
        if labels.get(key) != value:
            return False
    required = dig(pod, "spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return required is None or matches_terms(required.get("nodeSelectorTerms") or (), node)


def matches_terms(terms: Iterable[Mapping[str, Any]], node: Obj) -> bool:
    """Whether any of the node selector terms is met; a term without conditions meets nothing."""
    return any(matches_term(term, node) for term in terms)


def matches_term(term: Mapping[str, Any], node: Obj) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    try:
        if expressions and not node_selector_of(expressions).matches(labels_of(node)):
            return False
    except SelectorError:  # such as a bound that is no number
        return False
    return all(_field_matches(field, node) for field in fields)


def _field_matches(field: Mapping[str, Any], node: Obj) -> bool:
    if field.get("key") != "metadata.name":
        return False
    named = name_of(node) in (field.get("values") or ())
    return named if field.get("operator") == "In" else not named
