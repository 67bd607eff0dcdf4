"""Tables of the core kinds that are neither workloads, network nor storage: nodes, events, configuration, quota."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from srearena.cluster.embedded.api.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    Printer,
    as_map,
    condition,
    count,
    count_at,
    flag,
    items,
    mapping,
    number,
    printer,
    quantity_text,
    text,
    text_at,
    wide,
)
from srearena.cluster.embedded.durations import age
from srearena.cluster.embedded.objects import Obj, dig

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_ROLE_LABEL: Final = "kubernetes.io/role"


def _node_status(obj: Obj, now: float) -> str:
    ready = condition(obj, "Ready")
    state = "Unknown" if ready is None else "Ready" if ready.get("status") == "True" else "NotReady"
    return f"{state},SchedulingDisabled" if flag(obj, "spec", "unschedulable") else state


def _node_roles(obj: Obj, now: float) -> str:
    roles = set()
    for key, value in mapping(obj, "metadata", "labels").items():
        if key.startswith(_ROLE_PREFIX):
            roles.add(key[len(_ROLE_PREFIX) :])
        elif key == _ROLE_LABEL and isinstance(value, str):
            roles.add(value)
    return ",".join(sorted(roles - {""})) or NONE


def _node_address(kind: str) -> Any:
    def cell(obj: Obj, now: float) -> str:
        addresses = items(obj, "status", "addresses")
        return next((text(entry, "address") for entry in addresses if entry.get("type") == kind), NONE)

    return cell


NODES: Final = printer(
    NAME,
    Column("Status", "string", "Whether the node is ready and takes new pods.", _node_status),
    Column("Roles", "string", "What the node is for.", _node_roles),
    AGE,
    Column("Version", "string", "Version of the node's kubelet.", text_at("status", "nodeInfo", "kubeletVersion")),
    wide("Internal-IP", "Address inside the cluster.", _node_address("InternalIP")),
    wide("External-IP", "Address outside the cluster.", _node_address("ExternalIP")),
    wide("OS-Image", "Operating system.", text_at("status", "nodeInfo", "osImage", missing=UNKNOWN)),
    wide("Kernel-Version", "Kernel.", text_at("status", "nodeInfo", "kernelVersion", missing=UNKNOWN)),
    wide(
        "Container-Runtime",
        "What runs the containers.",
        text_at("status", "nodeInfo", "containerRuntimeVersion", missing=UNKNOWN),
    ),
)

NAMESPACES: Final = printer(NAME, Column("Status", "string", "Active or Terminating.", text_at("status", "phase")), AGE)

SECRETS: Final = printer(
    NAME,
    Column("Type", "string", "What the secret is for.", text_at("type")),
    Column("Data", "string", "Number of keys.", count_at("data")),
    AGE,
)

CONFIG_MAPS: Final = printer(
    NAME,
    Column("Data", "string", "Number of keys.", lambda obj, now: count(obj, "data") + count(obj, "binaryData")),
    AGE,
)

SERVICE_ACCOUNTS: Final = printer(NAME, Column("Secrets", "string", "Number of secrets.", count_at("secrets")), AGE)

COMPONENT_STATUSES: Final = printer(
    NAME,
    Column("Status", "string", "Whether the component is healthy.", lambda obj, now: _health(obj)[0]),
    Column("Message", "string", "What its health check said.", lambda obj, now: _health(obj)[1]),
    Column("Error", "string", "What its health check failed with.", lambda obj, now: _health(obj)[2]),
)


def _health(obj: Obj) -> tuple[str, str, str]:
    healthy = condition(obj, "Healthy", "conditions")
    if healthy is None:
        return "Unknown", "", ""
    state = "Healthy" if healthy.get("status") == "True" else "Unhealthy"
    return state, text(healthy, "message"), text(healthy, "error")


def _quota(obj: Obj, *, limits: bool) -> str:
    hard, used = mapping(obj, "status", "hard"), mapping(obj, "status", "used")
    return ", ".join(
        f"{name}: {quantity_text(used.get(name), '0')}/{quantity_text(hard[name], '0')}"
        for name in sorted(hard)
        if name.startswith("limits.") == limits
    )


RESOURCE_QUOTAS: Final = printer(
    NAME,
    Column(
        "Request", "string", "Used of what is allowed, requests and counts.", lambda o, now: _quota(o, limits=False)
    ),
    Column("Limit", "string", "Used of what is allowed, limits.", lambda o, now: _quota(o, limits=True)),
    AGE,
)


def _event_row(obj: Obj, now: float) -> list[Any]:
    """An event of either API: what one calls involvedObject, source and message, the other calls by newer names."""
    target = mapping(obj, "involvedObject") or mapping(obj, "regarding")
    first = dig(obj, "firstTimestamp") or dig(obj, "deprecatedFirstTimestamp") or dig(obj, "eventTime")
    last = dig(obj, "lastTimestamp") or dig(obj, "deprecatedLastTimestamp") or first
    times = number(obj, "count") or number(obj, "deprecatedCount") or 1
    series = dig(obj, "series")
    if isinstance(series, dict):
        last, times = series.get("lastObservedTime"), number(series, "count")
    kind, name = text(target, "kind").lower(), text(target, "name")
    return [
        age(last, now),
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text(target, "fieldPath"),
        _event_source(obj),
        (text(obj, "message") or text(obj, "note")).strip(),
        age(first, now),
        times,
        text(obj, "metadata", "name"),
    ]


def _event_source(obj: Obj) -> str:
    source: Mapping[str, Any] = as_map(dig(obj, "source")) or as_map(dig(obj, "deprecatedSource"))
    controller = text(obj, "reportingComponent") or text(obj, "reportingController")
    component = text(source, "component") or controller
    instance = text(source, "host") or text(obj, "reportingInstance")
    return f"{component}, {instance}" if instance else component


EVENTS: Final = Printer(
    (
        Column("Last Seen", "string", "Time since it last happened."),
        Column("Type", "string", "Normal or Warning."),
        Column("Reason", "string", "What happened, in a word."),
        Column("Object", "string", "What it happened to."),
        wide("Subobject", "Which part of the object."),
        wide("Source", "Who reports it, and from where."),
        Column("Message", "string", "What happened, in a sentence."),
        wide("First Seen", "Time since it first happened."),
        wide("Count", "How often it happened."),
        Column("Name", "string", "Name of the event.", priority=1, format="name"),
    ),
    _event_row,
)

PRINTERS: Final = {
    ("", "componentstatuses"): COMPONENT_STATUSES,
    ("", "configmaps"): CONFIG_MAPS,
    ("", "events"): EVENTS,
    ("", "namespaces"): NAMESPACES,
    ("", "nodes"): NODES,
    ("", "resourcequotas"): RESOURCE_QUOTAS,
    ("", "secrets"): SECRETS,
    ("", "serviceaccounts"): SERVICE_ACCOUNTS,
    ("events.k8s.io", "events"): EVENTS,
}
