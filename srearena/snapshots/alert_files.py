"""Reader of alert captures: one JSON file per observation, in any envelope that Prometheus or a recorder writes.

A file that cannot be read is reported and skipped. The time of a capture is its `timestamp` field, or else the time in
its file name, or else unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

# Labels that name the subject of an alert, the most specific first.
_ENTITY_LABELS = (
    "service_name",
    "service",
    "pod",
    "deployment",
    "statefulset",
    "daemonset",
    "job_name",
    "cronjob",
    "horizontalpodautoscaler",
    "persistentvolumeclaim",
    "node",
    "instance",
    "job",
    "namespace",
)
_SCRAPED = frozenset({"service", "instance", "job"})
"""Labels of the target that was scraped."""
_STATE_METRICS = "kube-state-metrics"
"""Reports on every object: what was scraped is not what its alerts are about."""
_STAMP = re.compile(r"(\d{4}-\d{2}-\d{2})[T_ ](\d{2})[-:]?(\d{2})[-:]?(\d{2})((?:\.\d+)?)")


def time_in_name(name: str) -> str | None:
    """The time in a capture's file name, as ISO 8601."""
    match = _STAMP.search(name)
    return f"{match[1]}T{match[2]}:{match[3]}:{match[4]}{match[5]}Z" if match else None


def _alerts_of(document: object) -> list[Any] | None:
    if isinstance(document, list):
        return document
    if not isinstance(document, Mapping):
        return None
    data = document.get("data")
    inner = data.get("alerts") if isinstance(data, Mapping) else data
    alerts = document.get("alerts", inner)
    return alerts if isinstance(alerts, list) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _entity(labels: Mapping[str, Any]) -> str | None:
    """What an alert is about, by its labels."""
    about_others = any(_STATE_METRICS in str(labels.get(key)) for key in _SCRAPED)
    names = [
        labels.get(f"exported_{label}") or (None if about_others and label in _SCRAPED else labels.get(label))
        for label in _ENTITY_LABELS
    ]
    return next((str(name) for name in names if name), None)


def read_alerts(path: Path, oddities: list[str]) -> Iterator[dict[str, Any]]:
    """The alerts of one capture as rows of the table, with times as text; problems are appended to `oddities`."""
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
        try:
            yield _row(alert, observed, path.name)
        except TypeError:  # of orjson: nested more deeply than it writes
            oddities.append(f"{path.name}: an alert that is nested too deeply")


def _row(alert: Mapping[str, Any], observed: str | None, file: str) -> dict[str, str | None]:
    labels = _mapping(alert.get("labels"))
    status = _mapping(alert.get("status"))
    return {
        "observed_at": observed,
        "alertname": str(labels.get("alertname") or alert.get("name") or "unnamed"),
        "state": str(alert.get("state") or status.get("state") or "firing"),
        "severity": _text(labels.get("severity")),
        "namespace": _text(labels.get("namespace")),
        "entity": _entity(labels),
        "active_at": _text(alert.get("activeAt") or alert.get("startsAt")),
        "value": _text(alert.get("value")),
        "labels": orjson.dumps(labels).decode(),
        "annotations": orjson.dumps(_mapping(alert.get("annotations"))).decode(),
        "file": file,
    }


def _text(value: object) -> str | None:
    """A value as the text of a cell; what is no scalar, as JSON."""
    return value if isinstance(value, str | None) else orjson.dumps(value).decode()
