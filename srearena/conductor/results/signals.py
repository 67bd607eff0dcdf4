"""What an episode looked like: golden signals, sampled traces and alerts, kept with the result for those who view it.

Read once, after grading, through the same HTTP APIs that agents use. The document holds measurements only; what they
mean is decided by the view. It is bounded: a few hundred series of at most `_MOST_POINTS` points, and each
shape of trace once.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.records import seconds_of
from srearena.conductor.errors import BadAction
from srearena.errors import SreArenaError
from srearena.service.telemetry import golden_signals

SIGNALS = "signals.json"
SCHEMA = "srearena.signals/1"
_STEP = 15
"""Seconds: the interval at which metrics are scraped."""
_MOST_POINTS = 320
"""More than an hour at that interval; longer episodes have wider steps."""
_BEFORE_FAULT = 600.0
"""Seconds of the healthy system that are kept to compare with. Chosen."""
_AFTER_END = 120.0
"""Seconds after the agent's part: what its last repair led to. Chosen."""
_MOST_SERIES = 600
_MOST_TRACES = 40
"""Of each entry service, from before and from after the hand-over."""
_SPAN_TAGS = ("db.system", "db.system.name", "messaging.system", "peer.service", "server.address", "net.peer.name")
"""Tags that name the other side of a call."""


def capture_signals(episode: Episode) -> dict[str, Any] | None:
    """The signals of a graded episode; None in an environment without telemetry."""
    handed_over = seconds_of(episode.handed_over_at)
    if handed_over is None:
        return None
    fault = seconds_of(episode.problem.injected_at) if episode.problem.fault_injected else None
    telemetry = Telemetry(episode.cluster)
    try:
        return _capture(telemetry, fault, handed_over, handed_over + episode.usage.virtual_seconds)
    except (SreArenaError, BadAction, LookupError, TypeError, ValueError):
        return None  # a view shows the trial without them
    finally:
        telemetry.close()


def _capture(telemetry: Telemetry, fault: float | None, handed_over: float, ended: float) -> dict[str, Any]:
    start = (handed_over if fault is None else min(fault, handed_over)) - _BEFORE_FAULT
    end = min(ended + _AFTER_END, telemetry.now())
    step = _STEP * max(1, math.ceil((end - start) / _STEP / _MOST_POINTS))
    first, last = math.ceil(start / step) * step, int(end // step) * step
    times = range(first, last + 1, step)
    measures = {
        name: _series(telemetry.series(query, first, last, step), labels, times)
        for name, (query, labels) in golden_signals.measures("1m").items()
    }
    halves = (start, handed_over), (handed_over, end)
    traces = [trace for half in halves for trace in telemetry.trace_documents(*half, _MOST_TRACES)]
    firing = telemetry.series('ALERTS{alertstate="firing"}', first, last, step)
    return {
        "schema": SCHEMA,
        "first": first,
        "step": step,
        "points": len(times),
        "fault": fault,
        "handed_over": handed_over,
        "ended": ended,
        "measures": measures,
        "traces": _shapes(traces),
        "alerts": [_alert(labels, points) for labels, points in firing if points],
    }


def _series(
    found: Iterable[tuple[Mapping[str, str], list[tuple[float, float]]]], labels: tuple[str, ...], times: range
) -> list[dict[str, Any]]:
    series: list[dict[str, Any]] = []
    for metric, points in found:
        known = {round(time): value for time, value in points if math.isfinite(value)}
        if known and len(series) < _MOST_SERIES:
            values = [None if time not in known else float(f"{known[time]:.4g}") for time in times]
            series.append({"key": [str(metric.get(label, "")) for label in labels], "values": values})
    return series


def _alert(labels: Mapping[str, str], points: list[tuple[float, float]]) -> dict[str, Any]:
    hidden = ("__name__", "alertname", "alertstate", "severity")
    return {
        "name": labels.get("alertname", ""),
        "severity": labels.get("severity", ""),
        "labels": {key: value for key, value in labels.items() if key not in hidden},
        "first": round(points[0][0]),
        "last": round(points[-1][0]),
    }


def _shapes(traces: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The traces without times, each shape once with its number."""
    counted = Counter(json.dumps(_shape(trace)) for trace in traces)
    return [{"count": count, "spans": json.loads(shape)} for shape, count in counted.items()]


def _shape(trace: Mapping[str, Any]) -> list[dict[str, Any]]:
    spans = trace.get("spans") or []
    places = {span["spanID"]: place for place, span in enumerate(spans)}
    shape = []
    for span in spans:
        tags = {str(tag["key"]): str(tag.get("value")) for tag in span.get("tags") or []}
        parents = [ref["spanID"] for ref in span.get("references") or [] if ref.get("refType") == "CHILD_OF"]
        shape.append(
            {
                "service": str(trace["processes"][span["processID"]]["serviceName"]),
                "name": str(span["operationName"]),
                "kind": tags.get("span.kind", "internal"),
                "parent": places.get(parents[0]) if parents else None,
                "tags": {key: tags[key] for key in _SPAN_TAGS if key in tags},
            }
        )
    return shape


def write_signals(folder: Path, document: dict[str, Any]) -> None:
    """Store the signals in the folder of the trial."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SIGNALS).write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
