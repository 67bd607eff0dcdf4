"""Alert captures: one JSON file per observation, in any of the envelopes Prometheus and the recorders give them.

A file that cannot be read is told and passed over; the others still count. When a file was taken is, in this order:
its own `timestamp`, the time in its name, nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

# In order: what an alert is about, from the most telling label to the least.
ENTITY_LABELS = (
    "service_name",
    "service",
    "pod",
    "deployment",
    "statefulset",
    "daemonset",
    "horizontalpodautoscaler",
    "node",
    "instance",
    "job",
    "namespace",
)
_STAMP = re.compile(r"(\d{4}-\d{2}-\d{2})[T_ ](\d{2})[-:]?(\d{2})[-:]?(\d{2})((?:\.\d+)?)")


def time_in_name(name: str) -> str | None:
    match = _STAMP.search(name)
    return f"{match[1]}T{match[2]}:{match[3]}:{match[4]}{match[5]}Z" if match else None


def _alerts_of(document: object) -> list[Any] | None:
    if isinstance(document, list):
        return document
    if not isinstance(document, Mapping):
        return None
    data = document.get("data")
    inner = data.get("alerts") if isinstance(data, Mapping) else data
    found = document.get("alerts", inner)
    return found if isinstance(found, list) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def read_alerts(path: Path, oddities: list[str]) -> Iterator[dict[str, Any]]:
    """The alerts of one capture, as rows of the table (times still as text)."""
    try:
        document = orjson.loads(path.read_bytes())
    except (OSError, orjson.JSONDecodeError) as problem:
        oddities.append(f"{path.name}: not readable as JSON ({problem})")
        return
    alerts = _alerts_of(document)
    if alerts is None:
        oddities.append(f"{path.name}: holds no list of alerts")
        return
    stamp = document.get("timestamp") if isinstance(document, Mapping) else None
    observed = str(stamp) if stamp else time_in_name(path.name)
    for alert in alerts:
        if not isinstance(alert, Mapping):
            oddities.append(f"{path.name}: an alert that is no object")
            continue
        labels = _mapping(alert.get("labels"))
        status = _mapping(alert.get("status"))
        yield {
            "observed_at": observed,
            "alertname": str(labels.get("alertname") or alert.get("name") or "unnamed"),
            "state": str(alert.get("state") or status.get("state") or "firing"),
            "severity": labels.get("severity"),
            "namespace": labels.get("namespace"),
            "entity": next((str(labels[key]) for key in ENTITY_LABELS if labels.get(key)), None),
            "active_at": alert.get("activeAt") or alert.get("startsAt"),
            "value": alert.get("value"),
            "labels": orjson.dumps(labels).decode(),
            "annotations": orjson.dumps(_mapping(alert.get("annotations"))).decode(),
            "file": path.name,
        }
