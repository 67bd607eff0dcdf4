"""The agent on a recorded incident: which tools it asks, and what it concludes from their replies.

Candidates in order: changes shortly before the first symptom, the service whose own calls began to fail, workloads that
the cluster warns about, and what alerts name. The first one is blamed; alerts name what was affected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

TOOLS = ("change_impact", "get_trace_error_tree", "event_analysis", "alert_summary")
"""In the order in which they are asked."""
_CALLS = {
    "change_impact": "change_impact(limit=8)",
    "get_trace_error_tree": "get_trace_error_tree(limit=20)",
    "event_analysis": 'event_analysis(filters={"event_kind": "Warning"}, limit=20)',
    "alert_summary": "alert_summary(limit=20)",
}
_CONTROLLED = frozenset({"Pod", "ReplicaSet", "EndpointSlice", "Endpoints", "Event", "Lease"})
"""Kinds that controllers write: their changes are effects."""
_GENERATED = re.compile(r"-[a-z0-9]{5,10}(-[a-z0-9]{5})?$")
Row = dict[str, Any]


def investigate() -> Generator[str, str, None]:
    """Ask each tool once, then submit."""
    replies: dict[str, list[Row]] = {}
    for tool in TOOLS:
        replies[tool] = _rows((yield _block(_CALLS[tool])))
    answer = diagnose(replies)
    while True:
        yield _block(f"submit({json.dumps(json.dumps(answer))})")


def diagnose(replies: dict[str, list[Row]]) -> Row:
    """The diagnosis by the tools' replies: one cause, and what it affected."""
    alerts = [row for row in replies.get("alert_summary", ()) if row.get("began_during_recording")]
    explained = [
        {"alert": str(row.get("alertname")), "explanation": "caused by it", "explained": True} for row in alerts
    ]
    candidates = [*_changed(replies), *_failing(replies, alerts), *_warned(replies), *_alerted(alerts)]
    if not candidates:
        return {"entities": [], "propagations": [], "alerts_explained": []}
    cause, why = candidates[0]
    affected = [name for name, _ in _alerted(alerts) if name.rpartition("/")[2] != cause.rpartition("/")[2]]
    entities = [{"name": cause, "contributing_factor": True, "reasoning": why, "evidence": why}]
    entities += [
        {"name": name, "contributing_factor": False, "reasoning": "an alert fired for it", "evidence": "alert_summary"}
        for name in dict.fromkeys(affected)
    ]
    propagations = [
        {"source": cause, "target": name, "condition": why, "effect": "errors or latency, by its alerts"}
        for name in dict.fromkeys(affected)
    ]
    return {"entities": entities, "propagations": propagations, "alerts_explained": explained}


def _changed(replies: dict[str, list[Row]]) -> list[tuple[str, str]]:
    rows = [row for row in replies.get("change_impact", ()) if _kind(row) not in _CONTROLLED]
    return [(str(row["entity"]), str(row.get("change") or "it changed")) for row in rows if row.get("entity")]


def _kind(row: Row) -> str:
    parts = str(row.get("entity", "")).split("/")
    return parts[-2] if len(parts) > 1 else ""


def _failing(replies: dict[str, list[Row]], alerts: list[Row]) -> list[tuple[str, str]]:
    namespace = next((str(row["namespace"]) for row in alerts if row.get("namespace")), "")
    failing = [row for row in replies.get("get_trace_error_tree", ()) if int(row.get("own_errors") or 0) > 0]
    failing.sort(key=lambda row: -int(row["own_errors"]))
    return [(_name(namespace, "Deployment", str(row["service"])), "its own calls fail") for row in failing]


def _warned(replies: dict[str, list[Row]]) -> list[tuple[str, str]]:
    found = []
    for row in replies.get("event_analysis", ()):
        name = row.get("deployment") or _GENERATED.sub("", str(row.get("object_name") or ""))
        if name:
            found.append((_name(str(row.get("namespace") or ""), "Deployment", str(name)), str(row.get("message"))))
    return found


def _alerted(alerts: list[Row]) -> list[tuple[str, str]]:
    names = [
        (str(row.get("namespace") or ""), str(row.get("entity") or ""), str(row.get("alertname"))) for row in alerts
    ]
    return [(_name(namespace, "Service", name), alert) for namespace, name, alert in names if name]


def _name(namespace: str, kind: str, name: str) -> str:
    return "/".join(filter(None, (namespace, kind, name)))


def _rows(reply: str) -> list[Row]:
    """The rows of a reply; none where the tool could not answer or the reply was cut."""
    try:
        data = json.loads(reply).get("data")
    except (ValueError, AttributeError):
        return []
    return [row for row in data or () if isinstance(row, dict)]


def _block(text: str) -> str:
    return f"```\n{text}\n```"
