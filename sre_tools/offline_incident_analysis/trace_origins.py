"""Services in which failures and delays start: the deepest callee that explains those of its callers.

A failed span none of whose children failed is where a failure starts. If it is a call (client or producer span), the
failure lies behind it: in the callee, which has no span when it refuses connections. The callee is that of the call's
child, or else of other calls of the same name, or else the peer named by the attributes. A service whose calls to most
of its callees fail, or take longer while those do not, is an origin itself: its configuration, its name resolution or
its network. So is one that calls a host that no Service in the recording is named like.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime

from sre_tools.offline_incident_analysis.replies import Row
from srearena.snapshots import Snapshot

# Attributes that name the peer of a call, most specific first (OpenTelemetry semantic conventions, old and new).
_ADDRESS_KEYS = r"peer\.service|server\.address|net\.peer\.name"
_PEER_KEYS = rf"{_ADDRESS_KEYS}|messaging\.system|db\.system"
_PEER, _ADDRESS = (rf"""['" \[](?:{keys})['"]?\s*:\s*['"]?([A-Za-z][\w-]*)""" for keys in (_PEER_KEYS, _ADDRESS_KEYS))
_OUTGOING = "lower(kind) IN ('client', 'producer')"
_MOST_CALLEES = 0.75  # of those that a service calls fail or are late: the service is at fault; chosen
_MIN_CALLEES = 2
_LATE, _LATE_MS = 2.0, 1.0  # a call is late if it takes twice as long as before, and a millisecond more; chosen

_ORIGINS = f"""
WITH spans_in AS (SELECT span_key, parent_key, trace_key, service, name, {_OUTGOING} AS outgoing, attributes,
    coalesce(status = 'Error', false) AS failed, status_message, greatest(duration_ns, 0) AS duration,
    time >= ? AS later FROM spans WHERE time >= ? AND time < ? AND service IS NOT NULL AND trace_key % ? = 0),
children AS (SELECT parent_key AS span_key, sum(duration) AS spent, bool_or(failed) AS failed_below,
    arg_max(service, duration) AS callee FROM spans_in WHERE parent_key IS NOT NULL GROUP BY parent_key),
joined AS (SELECT s.*, coalesce(spent, 0) AS spent, coalesce(failed_below, false) AS failed_below,
    CASE WHEN outgoing AND callee <> service THEN callee END AS callee
  FROM spans_in AS s LEFT JOIN children USING (span_key)),
known AS (SELECT service, name, mode(callee) AS usual FROM joined WHERE callee IS NOT NULL GROUP BY service, name)
SELECT service,
  CASE WHEN outgoing THEN coalesce(callee, usual, nullif(regexp_extract(attributes, ?, 1), '')) END AS callee, later,
  bool_or(outgoing AND regexp_matches(coalesce(attributes, ''), ?)) AS addressed, count(DISTINCT trace_key) AS requests,
  count(DISTINCT CASE WHEN failed AND NOT failed_below THEN trace_key END) AS failed,
  sum(greatest(duration - spent, 0)) / 1e6 AS self_ms,
  list(DISTINCT left(status_message, 200)) FILTER (failed AND NOT failed_below AND status_message <> '') AS messages
FROM joined LEFT JOIN known USING (service, name) GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""


@dataclass(slots=True)
class Origin:
    """A service, or the peer of calls, and what starts there after the pivot compared with before."""

    name: str
    failed: float = 0.0
    """Requests whose failure starts here, beyond those expected from before the pivot."""
    delay_ms: float = 0.0
    """Time spent here per request beyond that before the pivot, over all requests."""
    callers: set[str] = field(default_factory=set)
    messages: list[str] = field(default_factory=list)


def origins(
    snapshot: Snapshot, pivot: datetime, begin: datetime, end: datetime, share: int, scale: float
) -> list[Origin]:
    """Where failures start, most failed requests first; those with delays only come last.

    `scale` is the length of the time after the pivot divided by that before; 0 if there is no time before.
    """
    rows = snapshot.rows(_ORIGINS, [pivot, begin, end, share, _PEER, _ADDRESS])
    found: dict[str, Origin] = {}
    failing = _failing_callers(rows)
    nowhere = _unknown_hosts(snapshot, rows)
    edges: _Edges = defaultdict(dict)
    for row in rows:
        edges[row["service"], row["callee"]][row["later"]] = row
    late = _late_callers(edges)
    for (service, callee), sides in edges.items():
        name = callee if callee and service not in failing | late and callee not in nowhere else service
        origin = found.setdefault(name, Origin(name))
        before, after = sides.get(False), sides.get(True)
        if after is None:
            continue
        failed = after["failed"] - scale * (before["failed"] if before else 0)
        if failed > 0:
            origin.failed += failed
            if name != service:
                origin.callers.add(service)
            origin.messages += [text for text in after["messages"] or [] if text not in origin.messages]
        origin.delay_ms += max(_growth(sides), 0.0) * after["requests"]
    ranked = [origin for origin in found.values() if origin.failed >= 1 or origin.delay_ms > 0]
    return sorted(ranked, key=lambda origin: (-round(origin.failed), -origin.delay_ms, origin.name))


_Edges = dict[tuple[str, str | None], dict[bool, Row]]
"""What a service and its calls of a callee took, before and after the pivot."""


def _mean_ms(row: Row | None) -> float:
    return float(row["self_ms"] / row["requests"]) if row and row["requests"] else 0.0


def _growth(sides: dict[bool, Row]) -> float:
    """By how many milliseconds per request the own time grew; 0 without requests before."""
    return _mean_ms(sides.get(True)) - _mean_ms(sides.get(False)) if False in sides and True in sides else 0.0


def _late_callers(edges: _Edges) -> set[str]:
    """Services whose calls to most of their callees are late on the way, not in the callees."""
    calls: dict[str, list[bool]] = defaultdict(list)
    for (caller, callee), sides in edges.items():
        if callee is None or (callee, None) not in edges or len(sides) < 2:
            continue
        growth, own = _growth(sides), _growth(edges[callee, None])
        calls[caller].append(
            growth > _LATE_MS and _mean_ms(sides[True]) > _LATE * _mean_ms(sides[False]) and own < growth / 2
        )
    return {
        caller for caller, late in calls.items() if sum(late) >= _MIN_CALLEES and sum(late) >= _MOST_CALLEES * len(late)
    }


def _unknown_hosts(snapshot: Snapshot, rows: list[Row]) -> set[str]:
    """Hosts that are called by name and that nothing in the recording is named like."""
    traced = {row["service"] for row in rows}
    called = {row["callee"] for row in rows if row["addressed"] and row["callee"]} - traced
    if not called:
        return set()
    named = {row["name"] for row in snapshot.rows("SELECT DISTINCT name FROM objects WHERE name IS NOT NULL")}
    return called - named if named else set()


def _failing_callers(rows: list[Row]) -> set[str]:
    """Services whose calls to most of their callees fail while others reach those callees."""
    calls: dict[str, dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row["later"] and row["callee"]:
            calls[row["service"]][row["callee"]] = row["failed"] / row["requests"]
    found = set()
    for caller, shares in calls.items():
        failing = [callee for callee, share in shares.items() if share > 0.5]
        if len(failing) >= _MIN_CALLEES and len(failing) >= _MOST_CALLEES * len(shares):
            found.add(caller)
    return found
