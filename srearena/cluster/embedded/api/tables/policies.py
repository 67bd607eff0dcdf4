"""Tables of what governs workloads and their place on nodes: autoscalers, disruption budgets, classes, devices."""

from __future__ import annotations

from typing import Any, Final

from srearena.cluster.embedded.api.tables.columns import (
    AGE,
    NAME,
    NAME_AND_AGE,
    NONE,
    UNKNOWN,
    UNSET,
    Column,
    count,
    flag_at,
    int_or_string,
    items,
    mapping,
    more,
    number_at,
    printer,
    quantity_text,
    text,
    text_at,
)
from srearena.cluster.embedded.objects import Obj, dig

_METRICS_SHOWN: Final = 2
# What Go prints of a quantity that is not there, where a metric was reported but not in the unit of its target.
_NIL: Final = "<nil>"
# The fields a metric of each type keeps its source in, and whether its name stands before the figures.
_SOURCES: Final = {
    "Resource": ("resource", True),
    "ContainerResource": ("containerResource", True),
    "Pods": ("pods", False),
    "Object": ("object", False),
    "External": ("external", False),
}


def _targets(obj: Obj, now: float) -> str:
    specs = items(obj, "spec", "metrics")
    statuses = items(obj, "status", "currentMetrics")
    if not specs and type(dig(obj, "spec", "targetCPUUtilizationPercentage")) is int:
        specs, statuses = _cpu_only(obj)
    if not specs:
        return NONE
    shown = (_metric(spec, statuses[i] if i < len(statuses) else {}) for i, spec in enumerate(specs))
    return more(shown, at_most=_METRICS_SHOWN, separator=", ")


def _cpu_only(obj: Obj) -> tuple[list[Obj], list[Obj]]:
    """The one target the first version of the API knows, in the shape of the second."""
    target = {"averageUtilization": dig(obj, "spec", "targetCPUUtilizationPercentage")}
    current = {"averageUtilization": dig(obj, "status", "currentCPUUtilizationPercentage")}
    specs = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return specs, [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]


def _metric(spec: Obj, status: Obj) -> str:
    source = _SOURCES.get(text(spec, "type"))
    if source is None:
        return "<unknown type>"
    key, named = source
    target = mapping(spec, key, "target")
    known = isinstance(dig(status, key), dict)
    current = mapping(status, key, "current")
    if named:
        return f"{text(spec, key, 'name')}: {_resource_figures(target, current, known)}"
    if key == "pods":
        return _figures(target, current, "averageValue", _NIL if known else UNKNOWN)
    if target.get("averageValue") is not None:
        return f"{_figures(target, current, 'averageValue', UNKNOWN)} (avg)"
    return _figures(target, current, "value", _NIL if known else UNKNOWN)


def _figures(target: Any, current: Any, key: str, missing: str) -> str:
    return f"{quantity_text(current.get(key), missing)}/{quantity_text(target.get(key), _NIL)}"


def _resource_figures(target: Any, current: Any, known: bool) -> str:
    if target.get("averageValue") is not None:
        return _figures(target, current, "averageValue", _NIL if known else UNKNOWN)
    return f"{_percent(current, UNKNOWN)}/{_percent(target, '<auto>')}"


def _percent(side: Any, missing: str) -> str:
    value = side.get("averageUtilization")
    return f"{value}%" if type(value) is int else missing


def _scaled(obj: Obj, now: float) -> str:
    return f"{text(obj, 'spec', 'scaleTargetRef', 'kind')}/{text(obj, 'spec', 'scaleTargetRef', 'name')}"


HORIZONTAL_POD_AUTOSCALERS: Final = printer(
    NAME,
    Column("Reference", "string", "What is scaled.", _scaled),
    Column("Targets", "string", "Current and wanted figures of each metric.", _targets),
    Column(
        "MinPods",
        "string",
        "Fewest pods.",
        lambda obj, now: int_or_string(obj, "spec", "minReplicas", missing=UNSET),
    ),
    Column("MaxPods", "string", "Most pods.", number_at("spec", "maxReplicas")),
    Column("Replicas", "string", "Pods at the last look.", number_at("status", "currentReplicas")),
    AGE,
)

POD_DISRUPTION_BUDGETS: Final = printer(
    NAME,
    Column(
        "Min Available",
        "string",
        "Pods that must stay available.",
        lambda obj, now: int_or_string(obj, "spec", "minAvailable", missing="N/A"),
    ),
    Column(
        "Max Unavailable",
        "string",
        "Pods that may be unavailable.",
        lambda obj, now: int_or_string(obj, "spec", "maxUnavailable", missing="N/A"),
    ),
    Column("Allowed Disruptions", "integer", "Pods that may go now.", number_at("status", "disruptionsAllowed")),
    AGE,
)

PRIORITY_CLASSES: Final = printer(
    NAME,
    Column("Value", "integer", "Priority of the pods of this class.", number_at("value")),
    Column("Global-Default", "boolean", "Whether pods without a class get this one.", flag_at("globalDefault")),
    AGE,
    Column("PreemptionPolicy", "string", "Whether they may evict others.", text_at("preemptionPolicy")),
)

RUNTIME_CLASSES: Final = printer(
    NAME, Column("Handler", "string", "Configuration of the runtime.", text_at("handler")), AGE
)

LEASES: Final = printer(NAME, Column("Holder", "string", "Who holds it.", text_at("spec", "holderIdentity")), AGE)

LEASE_CANDIDATES: Final = printer(
    NAME,
    Column("LeaseName", "string", "The lease it stands for.", text_at("spec", "leaseName")),
    Column("BinaryVersion", "string", "Version of the candidate.", text_at("spec", "binaryVersion")),
    Column("EmulationVersion", "string", "Version it behaves as.", text_at("spec", "emulationVersion")),
    AGE,
)


def _claim_state(obj: Obj, now: float) -> str:
    deleted = bool(dig(obj, "metadata", "deletionTimestamp"))
    states = ["deleted"] if deleted else []
    if dig(obj, "status", "allocation") is not None:
        states.append("allocated")
        if count(obj, "status", "reservedFor"):
            states.append("reserved")
    elif not deleted:
        states.append("pending")
    return ",".join(states)


RESOURCE_CLAIMS: Final = printer(NAME, Column("State", "string", "Whether devices are set aside.", _claim_state), AGE)

RESOURCE_SLICES: Final = printer(
    NAME,
    Column("Node", "string", "Node the devices are on.", text_at("spec", "nodeName")),
    Column("Driver", "string", "Driver that offers them.", text_at("spec", "driver")),
    Column("Pool", "string", "Pool they belong to.", text_at("spec", "pool", "name")),
    AGE,
)

PRINTERS: Final = {
    ("autoscaling", "horizontalpodautoscalers"): HORIZONTAL_POD_AUTOSCALERS,
    ("coordination.k8s.io", "leasecandidates"): LEASE_CANDIDATES,
    ("coordination.k8s.io", "leases"): LEASES,
    ("node.k8s.io", "runtimeclasses"): RUNTIME_CLASSES,
    ("policy", "poddisruptionbudgets"): POD_DISRUPTION_BUDGETS,
    ("resource.k8s.io", "deviceclasses"): NAME_AND_AGE,
    ("resource.k8s.io", "resourceclaims"): RESOURCE_CLAIMS,
    ("resource.k8s.io", "resourceclaimtemplates"): NAME_AND_AGE,
    ("resource.k8s.io", "resourceslices"): RESOURCE_SLICES,
    ("scheduling.k8s.io", "priorityclasses"): PRIORITY_CLASSES,
}
