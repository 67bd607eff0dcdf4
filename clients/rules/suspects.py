"""Suspects of a recorded incident, ranked by what the diagnostic tools say about each component.

Four kinds of evidence are added up per component: a change shortly before the first symptom, failures or delays that
start there, warnings of the cluster about it, and alerts. An alert about a workload itself weighs more than one about
its requests, which may be a dependency's fault. The weights are chosen;
`benchmarks/sre_tools_diagnosis.py` measures them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[str, Any]
Ask = Callable[[str, Mapping[str, Any]], Row]
"""Calls a tool by name with arguments; returns its reply."""

_CHANGE, _TRACE, _WARNING, _ALERT, _REQUEST_ALERT = 60.0, 40.0, 25.0, 20.0, 5.0
_CONTROLLED = frozenset({"Pod", "ReplicaSet", "EndpointSlice", "Endpoints", "Event", "Lease", "Job"})
"""Kinds that controllers write: their changes are effects."""
_OF_REQUESTS = re.compile(r"Request|Latency|Operations|ErrorRate|Connection", re.IGNORECASE)
_SAFE = "[bcdfghjklmnpqrstvwxz2456789]"  # the alphabet of names that Kubernetes generates: no vowels, no words
_POD = re.compile(rf"-{_SAFE}{{6,10}}-{_SAFE}{{5}}$")
_REPLICA_SET = re.compile(rf"-{_SAFE}{{6,10}}$")
_MEMBER = re.compile(rf"-(\d{{1,3}}|{_SAFE}{{5}})$")  # pods of StatefulSets; of DaemonSets and Jobs


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


def component(name: str, kind: str = "") -> str:
    """The workload that an object's name points to."""
    if kind == "ReplicaSet":
        return _REPLICA_SET.sub("", name)
    plain = _POD.sub("", name)
    return _MEMBER.sub("", plain) if kind == "Pod" and plain == name else plain


def rank(ask: Ask) -> list[Suspect]:
    """The suspects, most suspicious first."""
    found: dict[str, Suspect] = {}

    def suspect(entity: str) -> Suspect:
        kind, _, name = entity.rpartition("/")
        key = component(name, kind.rpartition("/")[2])
        return found.setdefault(key, Suspect(entity if key == name else key))

    for row in ask("change_impact", {"limit": 20})["data"]:
        if _kind(row["entity"]) not in _CONTROLLED:
            suspect(row["entity"]).add(_CHANGE * float(row["score"]) / 100, str(row["change"])[:200])
    _traces(ask("get_trace_error_tree", {"limit": 1})["summary"], suspect)
    begin = ask("alert_summary", {"limit": 1})["summary"].get("recording_began")
    warnings = {"filters": {"event_kind": "Warning"}, "limit": 200, **({"start_time": begin} if begin else {})}
    _warnings(ask("event_analysis", warnings)["data"], suspect)
    _alerts(ask("alert_summary", {"limit": 100})["data"], suspect)
    return sorted(found.values(), key=lambda entry: (-entry.score, entry.entity))


def _kind(entity: str) -> str:
    parts = entity.split("/")
    return parts[-2] if len(parts) > 1 else ""


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
            key = f"{row.get('object_kind')}/{component(row['object_name'], row.get('object_kind') or '')}"
            count = counts.get(key, (0, entity))[0]
            counts[key] = (count + int(row.get("count") or 1), entity)
            suspect(entity).add(0.0, f"{row.get('reason')}: {str(row.get('message'))[:150]}")
    ranked = sorted(counts.values(), reverse=True)
    for place, (_, entity) in enumerate(ranked, 1):
        suspect(entity).add(_WARNING / place, "the cluster warns about it")


def _alerts(rows: Iterable[Row], suspect: Callable[[str], Suspect]) -> None:
    named: set[tuple[str, str]] = set()
    fresh = [row for row in rows if row.get("began_during_recording") and row.get("entity") != "cluster-wide"]
    for row in sorted(fresh, key=lambda row: str(row.get("active_since"))):
        about_requests = bool(_OF_REQUESTS.search(str(row["alertname"])))
        key = (component(str(row["entity"])), "requests" if about_requests else "itself")
        if key in named:
            continue
        named.add(key)
        earlier = sum(kind == key[1] for _, kind in named)
        suspect(str(row["entity"])).add(
            (_REQUEST_ALERT if about_requests else _ALERT) / earlier, f"alert {row['alertname']}"
        )
