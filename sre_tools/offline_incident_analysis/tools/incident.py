"""incident_timeline and change_impact: events of all sources by time, and changes ranked by suspicion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

from pydantic import Field

from sre_tools.offline_incident_analysis.arguments import Arguments, PagedArguments, parse_time
from sre_tools.offline_incident_analysis.calls import Call
from sre_tools.offline_incident_analysis.conditions import Conditions
from sre_tools.offline_incident_analysis.deployments import mass_creations
from sre_tools.offline_incident_analysis.event_counts import EVENTS, integer_sum
from sre_tools.offline_incident_analysis.identity import entity_id
from sre_tools.offline_incident_analysis.log_patterns import find_lines
from sre_tools.offline_incident_analysis.metric_series import NO_BUCKETS, SeriesReader, to_datetime, values_or_rates
from sre_tools.offline_incident_analysis.object_versions import Change, all_changes, change_text
from sre_tools.offline_incident_analysis.replies import Answer, Row, iso_time, reply_schema
from sre_tools.offline_incident_analysis.statistics import detect_anomalies
from sre_tools.offline_incident_analysis.tools.alerts import OTHER_LABELS, captures, first_capture, telling_labels
from sre_tools.offline_incident_analysis.topology import Topology, topology_of
from sre_tools.offline_incident_analysis.trace_onsets import Onset, extent, request_onsets, service_onsets
from sre_tools.registry import tool
from srearena.snapshots import Snapshot

_MAX_SAMPLES = 3_000_000  # chosen: the timeline omits the metrics of larger snapshots
# Weight of a change by kind; chosen: what people edit counts more than what controllers create.
_WEIGHT = {"ConfigMap": 1.0, "Secret": 1.0, "Deployment": 1.0, "Service": 1.0, "Pod": 0.3, "ReplicaSet": 0.3}
_MOST_WEIGHT = 1.2  # of chaos experiments
_UNCONNECTED = 0.3  # nearness of what the topology does not connect with the symptom
_STAGED = 0.1  # weight of a change that is part of the deployment of a whole application
_SOURCES = Literal["change", "alert", "event", "log", "trace", "metric"]


def _alerts(snapshot: Snapshot) -> Iterator[Row]:
    rows = (
        snapshot.rows(
            f"""WITH edge AS (SELECT min(observed_at) AS began FROM alerts)
           SELECT alertname, entity, namespace, severity, CAST({OTHER_LABELS} AS VARCHAR) AS labels,
             coalesce(min(active_at), min(observed_at)) AS began, any_value(edge.began) AS edge
           FROM alerts, edge WHERE state = 'firing' GROUP BY ALL"""
        )
        if snapshot.layout.alerts
        else []
    )
    for row in rows:
        if row["began"] and row["edge"] and row["began"] >= row["edge"] - timedelta(hours=1):
            about = row["entity"] or "cluster-wide"
            which = "".join(f", {key}={value}" for key, value in telling_labels(row).items())
            text = f"alert {row['alertname']} ({row['severity']}{which}) became active"
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
    return _warnings(snapshot, None)


def _warnings(snapshot: Snapshot, since: datetime | None) -> Iterator[Row]:
    """Warnings of the cluster that happened at least once since a time."""
    for row in snapshot.rows(
        f"""SELECT kind, namespace, name, reason, min(first) AS began, {integer_sum("count")} AS n,
             arg_min(first_message, first) AS message FROM ({EVENTS}) WHERE type = 'Warning' GROUP BY ALL
             HAVING ? IS NULL OR max(last) >= ?""",
        [since, since],
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
    """Onsets of services; of all requests if no service by itself has enough of them to tell."""
    of_services = [_onset_row(onset, service) for service, onset in _onsets(snapshot)]
    yield from of_services or [_onset_row(onset, "all services") for onset in request_onsets(snapshot)]


def _onsets(snapshot: Snapshot) -> Iterator[tuple[str, Onset]]:
    return ((service, onset) for service, onsets in service_onsets(snapshot).items() for onset in onsets)


def _onset_row(onset: Onset, entity: str) -> Row:
    return {"time": onset.first_seen, "source": "trace", "entity": entity, "what": onset.text, "symptom": True}


def _metrics(snapshot: Snapshot) -> Iterator[Row]:
    """Steps in metrics, cached while the metrics are unchanged."""
    yield from snapshot.derived(_metric_steps, "metrics")


def _metric_steps(snapshot: Snapshot) -> list[Row]:
    rows: dict[tuple[datetime, str, str], Row] = {}
    where = Conditions()
    where.add(NO_BUCKETS)
    every = list(SeriesReader(snapshot, where, max_points=_MAX_SAMPLES))
    points = values_or_rates(every)
    results = detect_anomalies([values for _, values, _ in points])
    for series, (times, _, unit), result in zip(every, points, results, strict=True):
        if result.shift and result.score >= 10:
            text = f"{series.metric} went from {result.shift.before:.4g} to {result.shift.after:.4g} ({unit})"
            entity = f"{series.kind.title()}/{series.object}"
            time = to_datetime(times[result.shift.index])
            row = {"time": time, "source": "metric", "entity": entity, "what": text, "symptom": True}
            rows[time, entity, text] = row  # a pod's container and the pod as a whole are alike at times
    return list(rows.values())


_READERS = {
    "change": _changes,
    "alert": _alerts,
    "event": _events,
    "log": _logs,
    "trace": _traces,
    "metric": _metrics,
}


class TimelineArguments(PagedArguments):
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
    start, end = parse_time(arguments.start_time, "start_time"), parse_time(arguments.end_time, "end_time")
    chosen: list[str] = list(arguments.sources or _READERS)
    notes = []
    if arguments.sources is None and call.snapshot.observed_since is not None:
        chosen.remove("metric")
        notes.append("metrics are left out unless `sources` names them: all of a running system are many")
    if "metric" in chosen and call.snapshot.count("metrics") > _MAX_SAMPLES:
        chosen = [source for source in chosen if source != "metric"]
        notes.append("metrics are left out here for their number; use get_metric_anomalies on suspects")
    rows = [row for source in chosen for row in _READERS[source](call.snapshot) if row["time"]]
    began = _recording_began(call.snapshot)
    if start is None and began is not None and "event" in chosen:
        recent = list(_warnings(call.snapshot, began))
        before = sum(row["source"] == "event" for row in rows) - len(recent)
        if recent or len(rows) > before:  # or else they are all that there is
            rows = [row for row in rows if row["source"] != "event"] + [row for row in recent if row["time"]]
            if before:
                notes.append(f"{before} warnings were over before the recording began: give start_time to see them")
    matching = [
        row
        for row in rows
        if (start is None or row["time"].replace(tzinfo=None) >= start)
        and (end is None or row["time"].replace(tzinfo=None) <= end)
        and (not arguments.entity or arguments.entity.lower() in str(row["entity"]).lower())
    ]
    order = list(_READERS)
    matching.sort(key=lambda row: (row["time"], order.index(row["source"]), str(row["entity"]), row["what"]))
    counts = {source: sum(row["source"] == source for row in matching) for source in chosen}
    return Answer(matching, {"by_source": counts}, notes)


def _recording_began(snapshot: Snapshot) -> datetime | None:
    """The first of several captures of alerts, or the first span, in UTC; None if there is neither.

    A single capture tells when alerts were looked at, which may be at the end.
    """
    first = extent(snapshot).first
    spans = [first.replace(tzinfo=None)] if first else []
    periodic = snapshot.observed_since is not None or len(captures(snapshot)) > 1
    captured = first_capture(snapshot) if periodic else None
    return min([*spans, *([datetime.fromisoformat(captured)] if captured else [])], default=None)


Symptom = tuple[Row, timedelta]
"""A row of the timeline, and how much later than it shows the symptom may have begun."""


def _exactly(*readers: Callable[[Snapshot], Iterator[Row]]) -> Callable[[Snapshot], Iterator[Symptom]]:
    return lambda snapshot: ((row, timedelta()) for reader in readers for row in reader(snapshot))


def _trace_symptoms(snapshot: Snapshot) -> Iterator[Symptom]:
    return ((_onset_row(onset, service), onset.margin) for service, onset in _onsets(snapshot))


def first_symptom(snapshot: Snapshot) -> tuple[Symptom, bool] | None:
    """The earliest symptom in alerts and traces, or else in error logs and warnings; and whether it began meanwhile.

    Symptoms older than the recording, of the deployment for example, count only if none began during it. The earliest
    is the one that is certain first: one whose begin is known roughly comes at its latest.
    """
    text = first_capture(snapshot)
    began = datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
    older: list[Symptom] = []
    for readers in ((_exactly(_alerts), _trace_symptoms), (_exactly(_logs, _events),)):
        found = [symptom for reader in readers for symptom in reader(snapshot) if symptom[0]["time"]]
        within = [symptom for symptom in found if began is None or symptom[0]["time"] >= began]
        if within:
            return min(within, key=_certain), True
        older = older or found
    return (min(older, key=_certain), False) if older else None


def _certain(symptom: Symptom) -> tuple[datetime, str]:
    row, margin = symptom
    return row["time"] + margin, str(row["entity"])


def _changes_without_symptom(snapshot: Snapshot, changes: list[Change]) -> Answer | None:
    """The changes during a recording in which no symptom began, by kind; None without any."""
    began = _recording_began(snapshot)
    rows: list[Row] = [
        {
            "score": round(100 * _UNCONNECTED * _weight(change) / _MOST_WEIGHT, 1),
            "entity": entity_id(change.namespace, change.kind, change.name),
            "type": change.type,
            "change": change_text(change),
            "time": iso_time(change.time),
            "time_exact": change.exact,
            "minutes_before_symptom": None,
            "hops_to_symptom": None,
        }
        for change in changes
        if began is not None and change.time.replace(tzinfo=None) >= began
    ]
    if not rows:
        return None
    rows.sort(key=lambda row: (-float(row["score"]), str(row["entity"])))
    note = "no symptom began during the recording: these are its changes, and none is known to have done harm"
    return Answer(rows, {"symptom_time": None, "symptom_entity": None}, [note])


class ImpactArguments(Arguments):
    snapshot_dir: str | None = Field(None, description="leave out for the server's snapshot")
    symptom_time: str | None = Field(None, description="ISO 8601; the first symptom is found if left out")
    symptom_entity: str | None = Field(None, description="what shows the symptom; found if left out")
    window_minutes: float = Field(30, gt=0, description="how long before the symptom a change may lie")
    limit: int | None = Field(20, ge=0)


def _distances(graph: Topology, entity: str) -> dict[str, int]:
    """Hops from the symptom to the nodes near it; the objects of one application count as one node."""
    distances: dict[str, int] = {}
    queue = [(member, 0) for hit in graph.find(entity)[:1] for member in graph.aliases(hit)]
    while queue:
        node, hops = queue.pop(0)
        if node in distances or graph.nodes[node].kind in ("Namespace", "Node"):
            continue
        distances[node] = hops
        if hops < 4:
            same = set(graph.aliases(node)) if graph.nodes[node].kind != "Namespace" else set()
            queue[:0] = [(other, hops) for other in sorted(same) if other not in distances]
            queue += [(other, hops + 1) for other in sorted(graph.neighbours(node)) if other not in distances]
            queue.sort(key=lambda item: item[1])
    return distances


def _earliest(change: Change) -> datetime:
    """The earliest possible time of a change: that of the last observation before it, unless its time is exact."""
    return change.time if change.exact or change.not_before is None else min(change.not_before, change.time)


def _score(change: Change, symptom: datetime, window: timedelta, hops: int | None) -> float:
    """Suspicion from 0 to 100: higher if nearer in time and in the graph, and if not made by a controller.

    The factors are chosen; tests fix the ranking they give.
    """
    gap = max((symptom - change.time).total_seconds(), 0.0)
    closeness = 1.0 - 0.5 * min(gap / window.total_seconds(), 1.0)
    nearness = _UNCONNECTED if hops is None else 1.0 / (1 + 0.25 * hops)
    return round(100 * closeness * nearness * _weight(change) / _MOST_WEIGHT, 1)


def _weight(change: Change) -> float:
    """How suspicious a change is by its kind."""
    if "Chaos" in change.kind:
        return _MOST_WEIGHT
    weight = _WEIGHT.get(change.kind, 0.8 if change.type == "modified" else 0.5)
    return weight * (1.0 if change.type == "modified" else 0.8)


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
    first = first_symptom(call.snapshot)
    (symptom_row, margin), recent = first if first else ((None, timedelta()), False)
    requested_time = parse_time(arguments.symptom_time, "symptom_time")
    if requested_time is None and symptom_row is None:
        return Answer([], {}, ["no symptom in alerts, traces, logs or events; give symptom_time"])
    changes = all_changes(call.snapshot)
    if first is not None and requested_time is None and not recent:
        meanwhile = _changes_without_symptom(call.snapshot, changes)
        if meanwhile is not None:
            return meanwhile
    added = [change for change in changes if change.type == "added"]
    staged = {id(added[position]) for position in mass_creations([(change.time, change.kind) for change in added])}
    tz = symptom_row["time"].tzinfo if symptom_row else changes[0].time.tzinfo if changes else None
    symptom: datetime = requested_time.replace(tzinfo=tz) if requested_time else symptom_row["time"]  # type: ignore[index]
    latest = symptom if requested_time else symptom + margin
    symptom_entity = arguments.symptom_entity or (str(symptom_row["entity"]) if symptom_row else "")
    window = timedelta(minutes=arguments.window_minutes)
    graph = topology_of(call.snapshot)
    hops = _distances(graph, symptom_entity) if symptom_entity else {}
    rows: list[Row] = []
    for change in changes:
        if change.time < symptom - window or _earliest(change) > latest:
            continue
        entity = entity_id(change.namespace, change.kind, change.name)
        distance = hops.get(entity)
        rows.append(
            {
                "score": round(
                    _score(change, symptom, window, distance) * (_STAGED if id(change) in staged else 1.0), 1
                ),
                "entity": entity,
                "type": change.type,
                "change": change_text(change),
                "time": iso_time(change.time),
                "time_exact": change.exact,
                "minutes_before_symptom": round((symptom - change.time).total_seconds() / 60, 1),
                "hops_to_symptom": distance,
            }
        )
    rows.sort(key=lambda row: (-float(row["score"]), str(row["entity"])))
    summary: Row = {"symptom_time": iso_time(symptom), "symptom_entity": symptom_entity or None}
    if symptom_row and not requested_time:
        summary["symptom"] = symptom_row["what"]
    notes = [] if rows else ["nothing changed in that time; widen window_minutes, or see incident_timeline"]
    if not requested_time and not recent:
        notes.append("no symptom began during the recording: this one is older, and may be none of an incident")
    return Answer(rows, summary, notes)
