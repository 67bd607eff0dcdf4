"""Suspects of a recorded incident, ranked by what the diagnostic tools say about each component.

Four kinds of evidence are added up per component: a change shortly before the first symptom, failures or delays that
start there, warnings of the cluster about it, and alerts. An alert about a workload itself weighs more than one about
its requests, which may be a dependency's fault. The weights are chosen;
`benchmarks/sre_tools_diagnosis.py` measures them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sre_tools.offline_incident_analysis.workloads import is_numbered, workload_of

Row = dict[str, Any]
Question = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""
Ask = Callable[[str, Mapping[str, Any]], Row]
"""Calls a tool by name with arguments; returns its reply."""
TOOLS = ("change_impact", "get_trace_error_tree", "event_analysis", "alert_summary")
"""The tools that are asked."""

_CHANGE, _TRACE, _WARNING, _ALERT, _REQUEST_ALERT = 60.0, 40.0, 25.0, 20.0, 5.0
_MOST_ALERTS, _MOST_EVENTS = 60, 60  # chosen: the reply stays below what a leaderboard's agent is shown
_CONTROLLED = frozenset({"Pod", "ReplicaSet", "EndpointSlice", "Endpoints", "Event", "Lease", "Job"})
"""Kinds that controllers write: their changes are effects."""
_OF_REQUESTS = re.compile(r"Request|Latency|Operations|ErrorRate|Connection", re.IGNORECASE)


@dataclass(slots=True)
class Suspect:
    """A component or changed object, and why it is suspected."""

    entity: str
    """namespace/Kind/name as far as known."""
    score: float = 0.0
    reasons: list[str] = field(default_factory=list)

    def add(self, score: float, reason: str) -> None:
        self.score += score
        if reason not in self.reasons:
            self.reasons.append(reason)


@dataclass(slots=True)
class Verdict:
    """What the replies amount to."""

    suspects: list[Suspect]
    """Most suspicious first."""
    alerts: list[Row]
    """Alerts about components that began with the incident."""


def investigation() -> Generator[Question, Row, Verdict]:
    """Yield questions to the tools, receive their replies (empty where a tool has none), return the suspects."""
    found: dict[str, Suspect] = {}

    def suspect(entity: str) -> Suspect:
        path, _, name = entity.rpartition("/")
        namespace, _, kind = path.rpartition("/")
        key = workload_of(name, kind)
        if path and key != name:
            entity = "/".join(filter(None, (namespace, "StatefulSet" if is_numbered(name) else "Deployment", key)))
        known = found.setdefault(key, Suspect(entity if path else key))
        if path and "/" not in known.entity:
            known.entity = entity
        return known

    for row in _rows((yield "change_impact", {"limit": 20})):
        if not _by_controller(row["entity"]):
            suspect(row["entity"]).add(_CHANGE * float(row.get("score") or 0) / 100, str(row.get("change"))[:200])
    _traces((yield "get_trace_error_tree", {"limit": 1}).get("summary") or {}, suspect)
    reply = yield "alert_summary", {"limit": _MOST_ALERTS}
    alerts = [row for row in _rows(reply) if row.get("began_during_recording") and row.get("entity") != "cluster-wide"]
    begin = (reply.get("summary") or {}).get("recording_began")
    since = {"start_time": begin} if begin else {}
    _warnings(
        _rows((yield "event_analysis", {"filters": {"event_kind": "Warning"}, "limit": _MOST_EVENTS, **since})), suspect
    )
    _alerts(alerts, suspect)
    return Verdict(sorted(found.values(), key=lambda entry: (-entry.score, entry.entity)), alerts)


def rank(ask: Ask) -> list[Suspect]:
    """The suspects, most suspicious first."""
    questions = investigation()
    try:
        question = next(questions)
        while True:
            question = questions.send(ask(*question))
    except StopIteration as end:
        verdict: Verdict = end.value
        return verdict.suspects


def _rows(reply: Row) -> list[Row]:
    return [row for row in reply.get("data") or () if isinstance(row, dict)]


def _kind(entity: str) -> str:
    parts = entity.split("/")
    return parts[-2] if len(parts) > 1 else ""


def _by_controller(entity: str) -> bool:
    """Whether a change is an effect: of Jobs, those whose name has the time of a schedule."""
    kind, name = _kind(entity), entity.rpartition("/")[2]
    return kind in _CONTROLLED and not (kind == "Job" and workload_of(name, kind) == name)


def _traces(summary: Mapping[str, Any], suspect: Callable[[str], Suspect]) -> None:
    if not summary.get("pivot_time"):
        return  # failures all along belong to no incident
    first = summary.get("root_cause_suspect")
    for place, row in enumerate([*([first] if first else []), *summary.get("other_suspects", ())], 1):
        suspect(str(row["service"])).add(_TRACE / place, str(row["reason"])[:200])


def _warnings(rows: Iterable[Row], suspect: Callable[[str], Suspect]) -> None:
    counts: dict[str, tuple[int, str]] = {}
    for row in rows:
        if row.get("object_name"):
            entity = "/".join(filter(None, (row.get("namespace"), row.get("object_kind"), row["object_name"])))
            key = f"{row.get('object_kind')}/{workload_of(row['object_name'], row.get('object_kind') or '')}"
            count = counts.get(key, (0, entity))[0]
            counts[key] = (count + int(row.get("count") or 1), entity)
            suspect(entity).add(0.0, f"{row.get('reason')}: {str(row.get('message'))[:150]}")
    ranked = sorted(counts.values(), reverse=True)
    for place, (_, entity) in enumerate(ranked, 1):
        suspect(entity).add(_WARNING / place, "the cluster warns about it")


def _alerts(rows: Iterable[Row], suspect: Callable[[str], Suspect]) -> None:
    named: set[tuple[str, str]] = set()
    for row in sorted(rows, key=lambda row: str(row.get("active_since"))):
        about_requests = bool(_OF_REQUESTS.search(str(row["alertname"])))
        key = (workload_of(str(row["entity"])), "requests" if about_requests else "itself")
        if key in named:
            continue
        named.add(key)
        earlier = sum(kind == key[1] for _, kind in named)
        suspect(str(row["entity"])).add(
            (_REQUEST_ALERT if about_requests else _ALERT) / earlier, f"alert {row['alertname']}"
        )
