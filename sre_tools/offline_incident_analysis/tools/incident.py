"""incident_timeline and change_impact: all sources together, in order of time and of suspicion."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from pydantic import Field

from sre_tools.offline_incident_analysis.arguments import Arguments, Paged, instant
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions
from sre_tools.offline_incident_analysis.identity import entity_id
from sre_tools.offline_incident_analysis.log_patterns import find_lines
from sre_tools.offline_incident_analysis.metric_series import NO_BUCKETS, SeriesReader, moment, prepared
from sre_tools.offline_incident_analysis.object_versions import Change, all_changes, change_text
from sre_tools.offline_incident_analysis.replies import Answer, Row, reply_schema, when
from sre_tools.offline_incident_analysis.statistics import judged
from sre_tools.offline_incident_analysis.tools.alerts import first_capture
from sre_tools.offline_incident_analysis.tools.traces import error_onset, failing_services
from sre_tools.offline_incident_analysis.topology import Topology, topology_of
from sre_tools.registry import tool
from srearena.snapshots import Snapshot

_MOST_SAMPLES = 3_000_000  # beyond this, metrics are left to get_metric_anomalies
_WEIGHT = {"ConfigMap": 1.0, "Secret": 1.0, "Deployment": 1.0, "Service": 1.0, "Pod": 0.3, "ReplicaSet": 0.3}
_SOURCES = Literal["change", "alert", "event", "log", "trace", "metric"]


def _alerts(snapshot: Snapshot) -> Iterator[Row]:
    rows = (
        snapshot.rows(
            """WITH edge AS (SELECT min(observed_at) AS began FROM alerts)
           SELECT alertname, entity, namespace, severity, coalesce(min(active_at), min(observed_at)) AS began,
             any_value(edge.began) AS edge FROM alerts, edge WHERE state = 'firing' GROUP BY ALL"""
        )
        if snapshot.layout.alerts
        else []
    )
    for row in rows:
        if row["began"] and row["edge"] and row["began"] >= row["edge"] - timedelta(hours=1):
            about = row["entity"] or "cluster-wide"
            text = f"alert {row['alertname']} ({row['severity']}) became active"
            yield {"time": row["began"], "source": "alert", "entity": about, "what": text, "symptom": True}


def _changes(snapshot: Snapshot) -> Iterator[Row]:
    for change in all_changes(snapshot):
        yield {
            "time": change.time,
            "source": "change",
            "entity": entity_id(change.namespace, change.kind, change.name),
            "what": change_text(change) + ("" if change.exact else " (time: first seen so)"),
            "symptom": False,
        }


def _events(snapshot: Snapshot) -> Iterator[Row]:
    for row in snapshot.rows(
        """SELECT kind, namespace, name, reason, min(coalesce(first_time, time)) AS began, sum(count) AS n,
             arg_min(message, time) AS message FROM events WHERE type = 'Warning' GROUP BY ALL"""
    ):
        text = f"{row['reason']} ×{row['n']}: {(row['message'] or '')[:160]}"
        about = entity_id(row["namespace"], row["kind"], row["name"] or "")
        yield {"time": row["began"], "source": "event", "entity": about, "what": text, "symptom": True}


def _logs(snapshot: Snapshot) -> Iterator[Row]:
    rows = snapshot.rows(
        """SELECT service, template, min(time) AS began, count(*) AS n FROM logs
           WHERE severity IN ('ERROR', 'FATAL') GROUP BY service, template
           QUALIFY row_number() OVER (PARTITION BY service ORDER BY n DESC, began) <= 3"""
    )
    lines = find_lines(snapshot, ((row["template"], row["began"]) for row in rows))
    for row in rows:
        line = lines.get((row["template"], row["began"]), row["template"] or "")
        text = f"first of {row['n']} error lines: {line[:160]}"
        yield {"time": row["began"], "source": "log", "entity": row["service"], "what": text, "symptom": True}


def _traces(snapshot: Snapshot) -> Iterator[Row]:
    for service in failing_services(snapshot):
        onset = error_onset(snapshot, service)
        if onset:
            text = f"{onset[1]} of requests rose"
            yield {"time": onset[0], "source": "trace", "entity": service, "what": text, "symptom": True}


_SHIFTS: dict[str, tuple[Any, list[Row]]] = {}


def _metrics(snapshot: Snapshot) -> Iterator[Row]:
    """Lasting steps of metrics; worked out once while the source is the same."""
    key = snapshot.table("metrics")
    known = _SHIFTS.get(str(snapshot.root))
    if known is None or known[0] != key:
        known = (key, list(_find_shifts(snapshot)))
        _SHIFTS[str(snapshot.root)] = known
    yield from known[1]


def _find_shifts(snapshot: Snapshot) -> Iterator[Row]:
    where = Conditions()
    where.add(NO_BUCKETS)
    every = list(SeriesReader(snapshot, where, most=_MOST_SAMPLES))
    looked_at = prepared(every)
    verdicts = judged([values for _, values, _ in looked_at])
    for series, (times, _, unit), found in zip(every, looked_at, verdicts, strict=True):
        if found.shift and found.score >= 10:
            text = f"{series.metric} went from {found.shift.before:.4g} to {found.shift.after:.4g} ({unit})"
            about = f"{series.kind.title()}/{series.object}"
            yield {
                "time": moment(times[found.shift.index]),
                "source": "metric",
                "entity": about,
                "what": text,
                "symptom": True,
            }


_READERS = {
    "change": _changes,
    "alert": _alerts,
    "event": _events,
    "log": _logs,
    "trace": _traces,
    "metric": _metrics,
}


class TimelineArguments(Paged):
    snapshot_dir: str | None = Field(None, description="leave out for the server's snapshot")
    sources: list[_SOURCES] | None = Field(None, description=f"some of {', '.join(_READERS)}; all by default")
    entity: str | None = Field(None, description="only what is about names that contain this")


@tool(
    title="What happened, in order",
    order=130,
    output_schema=reply_schema(
        {
            "time": "when it began",
            "source": f"one of {', '.join(_READERS)}",
            "entity": "what it is about",
            "what": "in one line",
            "symptom": "false for changes: causes are among them",
        }
    ),
)
def incident_timeline(call: Call, arguments: TimelineArguments) -> Answer:
    """What changed, fired, failed and shifted, across alerts, events, objects, logs, traces and metrics, in order of
    time. Example: incident_timeline(start_time="2025-06-01T10:00:00Z", sources=["change", "alert"])."""
    start, end = instant(arguments.start_time, "start_time"), instant(arguments.end_time, "end_time")
    chosen: list[str] = list(arguments.sources or _READERS)
    notes = []
    if "metric" in chosen and call.snapshot.count("metrics") > _MOST_SAMPLES:
        chosen = [source for source in chosen if source != "metric"]
        notes.append("metrics are left out here for their number; use get_metric_anomalies on suspects")
    rows = [row for source in chosen for row in _READERS[source](call.snapshot) if row["time"]]
    kept = [
        row
        for row in rows
        if (start is None or row["time"].replace(tzinfo=None) >= start)
        and (end is None or row["time"].replace(tzinfo=None) <= end)
        and (not arguments.entity or arguments.entity.lower() in str(row["entity"]).lower())
    ]
    order = list(_READERS)
    kept.sort(key=lambda row: (row["time"], order.index(row["source"]), str(row["entity"]), row["what"]))
    counts = {source: sum(row["source"] == source for row in kept) for source in chosen}
    return Answer(kept, {"by_source": counts}, notes)


def first_symptom(snapshot: Snapshot) -> Row | None:
    """The earliest of what alerts and traces show, or, failing both, error logs and warnings.

    What was there before the recording began counts only where nothing began during it.
    """
    text = first_capture(snapshot)
    began = datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    for readers in ((_alerts, _traces), (_logs, _events)):
        rows = [row for reader in readers for row in reader(snapshot) if row["time"]]
        rows = [row for row in rows if began is None or row["time"] >= began] or rows
        if rows:
            return min(rows, key=lambda row: (row["time"], str(row["entity"])))
    return None


class ImpactArguments(Arguments):
    snapshot_dir: str | None = Field(None, description="leave out for the server's snapshot")
    symptom_time: str | None = Field(None, description="ISO 8601; the first symptom is found if left out")
    symptom_entity: str | None = Field(None, description="what shows the symptom; found if left out")
    window_minutes: float = Field(30, gt=0, description="how long before the symptom a change may lie")
    limit: int | None = Field(20, ge=0)


def _distances(graph: Topology, entity: str) -> dict[str, int]:
    """Hops from the symptom to everything near it; one application's objects are no hop apart."""
    found: dict[str, int] = {}
    queue = [(member, 0) for hit in graph.find(entity)[:1] for member in graph.aliases(hit)]
    while queue:
        node, hops = queue.pop(0)
        if node in found or graph.nodes[node].kind in ("Namespace", "Node"):
            continue
        found[node] = hops
        if hops < 4:
            same = set(graph.aliases(node)) if graph.nodes[node].kind != "Namespace" else set()
            queue[:0] = [(other, hops) for other in sorted(same) if other not in found]
            queue += [(other, hops + 1) for other in sorted(graph.neighbours(node)) if other not in found]
            queue.sort(key=lambda item: item[1])
    return found


def _earliest(change: Change) -> datetime:
    """When a change may have happened: any time since the last look, unless the object says when."""
    return change.time if change.exact or change.not_before is None else min(change.not_before, change.time)


def _score(change: Change, symptom: datetime, window: timedelta, hops: int | None) -> float:
    """Nearer in time, nearer in the graph, and made by hand rather than by a controller: more suspicious."""
    gap = max((symptom - change.time).total_seconds(), 0.0)
    closeness = 1.0 - 0.5 * min(gap / window.total_seconds(), 1.0)
    nearness = 0.3 if hops is None else 1.0 / (1 + 0.25 * hops)
    weight = _WEIGHT.get(change.kind, 0.8 if change.type == "modified" else 0.5)
    weight *= 1.0 if change.type == "modified" else 0.8
    if "Chaos" in change.kind:
        weight = 1.2
    return round(100 * closeness * nearness * weight / 1.2, 1)


@tool(
    title="Which change is to blame",
    order=140,
    output_schema=reply_schema(
        {
            "score": "0 to 100, how suspicious",
            "entity": "what was changed",
            "change": "in one line",
            "time": "when; see time_exact",
            "time_exact": "false if only the look that first showed it is known",
            "minutes_before_symptom": "negative if it was first seen after the symptom but may have happened before",
            "hops_to_symptom": "in the topology; null if not connected",
        }
    ),
)
def change_impact(call: Call, arguments: ImpactArguments) -> Answer:
    """What changed shortly before the first symptom, most suspicious first: by nearness in time, nearness in the
    topology, and kind of change. Example: change_impact() or change_impact(symptom_entity="Service/checkout")."""
    found = first_symptom(call.snapshot)
    given = instant(arguments.symptom_time, "symptom_time")
    if given is None and found is None:
        return Answer([], {}, ["no symptom in alerts, traces, logs or events; give symptom_time"])
    changes = all_changes(call.snapshot)
    tz = found["time"].tzinfo if found else changes[0].time.tzinfo if changes else None
    symptom: datetime = given.replace(tzinfo=tz) if given else found["time"]  # type: ignore[index]
    about = arguments.symptom_entity or (str(found["entity"]) if found else "")
    window = timedelta(minutes=arguments.window_minutes)
    graph = topology_of(call.snapshot)
    hops = _distances(graph, about) if about else {}
    rows: list[Row] = []
    for change in changes:
        if change.time < symptom - window or _earliest(change) > symptom:
            continue
        entity = entity_id(change.namespace, change.kind, change.name)
        distance = hops.get(entity)
        rows.append(
            {
                "score": _score(change, symptom, window, distance),
                "entity": entity,
                "type": change.type,
                "change": change_text(change),
                "time": when(change.time),
                "time_exact": change.exact,
                "minutes_before_symptom": round((symptom - change.time).total_seconds() / 60, 1),
                "hops_to_symptom": distance,
            }
        )
    rows.sort(key=lambda row: (-float(row["score"]), str(row["entity"])))
    summary: Row = {"symptom_time": when(symptom), "symptom_entity": about or None}
    if found and not given:
        summary["symptom"] = found["what"]
    notes = [] if rows else ["nothing changed in that time; widen window_minutes, or see incident_timeline"]
    return Answer(rows, summary, notes)
