"""The system of a finished trial: its graph when the agent started and at the end, signals, alerts and marks.

Made from the signals that are kept with a result (`srearena.conductor.results.signals`); the baseline is the time
before the fault. The file may be incomplete or hostile: what cannot be read is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from srearena.view.incidents.signals import Key, Signals
from srearena.view.incidents.summary import graph
from srearena.view.incidents.topology import Topology, TracedSpan

SCHEMA = "srearena.signals/1"
_MOST_POINTS = 2_000
_MOST_SERIES = 5_000
_MOST_COPIES = 1_000
"""Of one shape of trace: their number is a weight."""


def finished_system(document: Mapping[str, Any]) -> dict[str, Any] | None:
    """The document for the pages; None where the signals cannot be read."""
    try:
        return _system(document) if document.get("schema") == SCHEMA else None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def _system(document: Mapping[str, Any]) -> dict[str, Any]:
    first, step, points = (int(document[name]) for name in ("first", "step", "points"))
    times = range(first, first + step * min(points, _MOST_POINTS), step)
    if step < 1 or not times:
        raise ValueError("no time at all")
    values = dict(_values(document["measures"], times))
    topology = _topology(document["traces"])
    handed_over, ended = float(document["handed_over"]), float(document["ended"])
    fault = document.get("fault")
    healthy_until = float(fault) if fault is not None else handed_over
    start = _signals(values, _until(times, handed_over), healthy_until)
    end = _signals(values, times, healthy_until)
    begun, over = graph(start, topology), graph(end, topology)
    marks = [{"at": handed_over, "text": "the agent starts", "kind": "phase"}]
    marks.append({"at": ended, "text": "the agent's part ends", "kind": "phase"})
    if fault is not None:
        marks.append({"at": float(fault), "text": "the fault", "kind": "fault"})
    return {
        "step": step,
        "times": over["times"],
        "baseline": end.baseline_span,
        "marks": marks,
        "start": {"services": begun["services"], "edges": begun["edges"]},
        "end": {"services": over["services"], "edges": over["edges"]},
        "alerts": [_alert(alert) for alert in document["alerts"][:_MOST_SERIES]],
    }


def _values(measures: Mapping[str, Any], times: range) -> Iterator[tuple[tuple[str, Key], dict[int, float]]]:
    for measure, found in measures.items():
        for series in found[:_MOST_SERIES]:
            key = tuple(str(label) for label in series["key"])
            points = zip(times, series["values"], strict=False)
            yield (str(measure), key), {time: float(value) for time, value in points if value is not None}


def _until(times: range, moment: float) -> range:
    end = next((time for time in times if time > moment), times.stop)
    return range(times.start, max(end, times.start + times.step), times.step)


def _signals(values: Mapping[tuple[str, Key], Mapping[int, float]], times: range, healthy_until: float) -> Signals:
    signals = Signals(healthy_until=healthy_until)
    signals.extend(times, values)
    return signals


def _topology(shapes: list[Any]) -> Topology:
    topology = Topology()
    for shape in shapes[:_MOST_SERIES]:
        spans = [
            TracedSpan(
                str(place),
                "" if span["parent"] is None else str(int(span["parent"])),
                str(span["service"]),
                str(span["name"]),
                str(span["kind"]),
                {str(key): str(value) for key, value in span["tags"].items()},
            )
            for place, span in enumerate(shape["spans"][:_MOST_SERIES])
        ]
        for _ in range(min(int(shape["count"]), _MOST_COPIES)):
            topology.learn(spans)
    return topology


def _alert(alert: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": str(alert["name"]),
        "severity": str(alert["severity"]),
        "labels": {str(key): str(value) for key, value in alert["labels"].items()},
        "first": float(alert["first"]),
        "last": float(alert["last"]),
    }
