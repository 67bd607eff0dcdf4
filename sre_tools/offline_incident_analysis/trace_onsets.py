"""When requests began to fail, to take longer or to stay away, of each service and of all together.

The unit is a trace through a service, not a span: retries and nested calls of one failed request are one failure. A
trace is slow if one of its spans takes as long as the slowest tenth of the same operation in the whole recording, so
that latency is a share of requests as well, and a change in the mix of operations is no change of latency. It is very
slow if one takes five times the median of its operation: a few lost packets delay a few requests by much.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from sre_tools.offline_incident_analysis.change_points import (
    FALSE_ALARMS,
    RateChange,
    binomial_changes,
    poisson_changes,
)
from srearena.snapshots import Snapshot

_BUCKETS = 120  # chosen: 10 s each for twenty minutes of traces
_MIN_WIDTH = 10.0  # seconds
_MAX_SPANS = 1_000_000  # read; chosen: about a second. Beyond it one in several traces is read
# Smallest changes that count; chosen: a hundredth of the requests fail, the 95th percentile grows by a quarter,
# requests fall to a third.
_RISE, _SLOWER, _FALL = 0.01, 1.25, 1 / 3
_VERY_SLOW = 5  # times the median; chosen
ERRORS, LATENCY, DELAYS, TRAFFIC = "error rate", "latency", "share of very slow requests", "request rate"

_BUCKETED = f"""
WITH usual AS (SELECT service, name, quantile_cont(duration_ns, 0.9) AS slow, quantile_cont(duration_ns, 0.1) AS quick,
    quantile_cont(duration_ns, 0.5) AS middle FROM spans GROUP BY service, name),
judged AS (SELECT *, time + to_microseconds(duration_ns // 1000) AS end_time,
    duration_ns > slow OR (duration_ns = slow AND slow > quick) AS slow_span,
    duration_ns > {_VERY_SLOW} * middle AS very_slow_span
  FROM spans JOIN usual USING (service, name) WHERE time IS NOT NULL AND trace_key % ? = 0),
visits AS (SELECT service, trace_key, floor(epoch(min(time) - ?) / ?) AS bucket, bool_or(status = 'Error') AS failed,
    bool_or(slow_span) AS slow, bool_or(very_slow_span) AS very_slow, max(duration_ns) AS longest,
    min(CASE WHEN status = 'Error' THEN end_time END) AS failed_at,
    min(CASE WHEN slow_span THEN end_time END) AS slow_at,
    min(CASE WHEN very_slow_span THEN end_time END) AS very_slow_at
  FROM judged GROUP BY GROUPING SETS ((service, trace_key), (trace_key)))
SELECT service, CAST(bucket AS INTEGER) AS bucket, count(*) AS requests, count_if(failed) AS failed,
  count_if(slow) AS slow, count_if(very_slow) AS very_slow, quantile_cont(longest, 0.95) / 1e6 AS p95_ms,
  min(failed_at) AS failed_at, min(slow_at) AS slow_at, min(very_slow_at) AS very_slow_at
FROM visits GROUP BY service, bucket ORDER BY service, bucket
"""


@dataclass(frozen=True, slots=True)
class Extent:
    first: datetime | None
    last: datetime | None
    services: list[str]


@dataclass(frozen=True, slots=True)
class Onset:
    time: datetime
    """The begin of the bucket in which it began."""
    what: str
    before: float
    after: float
    evidence: float
    first_seen: datetime
    """When the first request failed or was slow."""
    margin: timedelta
    """How much later than `first_seen` it may have begun."""

    @property
    def text(self) -> str:
        """What changed, from and to."""
        if self.what == ERRORS:
            return f"error rate rose from {100 * self.before:.1f} % to {100 * self.after:.1f} % of requests"
        if self.what == LATENCY:
            return f"latency rose (p95 from {self.before:.4g} ms to {self.after:.4g} ms)"
        if self.what == DELAYS:
            return (
                f"requests that take {_VERY_SLOW} times the usual rose from {100 * self.before:.1f} % to "
                f"{100 * self.after:.1f} %"
            )
        return f"request rate fell from {self.before:.3g} to {self.after:.3g} a second"


def extent(snapshot: Snapshot) -> Extent:
    """The first and last time of spans, and the services with spans."""
    return snapshot.derived(_extent, "spans")


def _extent(snapshot: Snapshot) -> Extent:
    edge = snapshot.rows("SELECT min(time) AS first, max(time) AS last FROM spans")[0]
    services = snapshot.rows("SELECT DISTINCT service FROM spans WHERE service IS NOT NULL ORDER BY 1")
    return Extent(edge["first"], edge["last"], [row["service"] for row in services])


def request_onsets(snapshot: Snapshot) -> list[Onset]:
    """The onsets of all requests together, errors before latency before traffic."""
    return snapshot.derived(_onsets, "spans").get(None, [])


def service_onsets(snapshot: Snapshot) -> dict[str, list[Onset]]:
    """The onsets of each service, errors before latency before traffic; services without one are left out."""
    return {name: onsets for name, onsets in snapshot.derived(_onsets, "spans").items() if name is not None}


def pivot(snapshot: Snapshot, service: str | None = None) -> tuple[datetime, str] | None:
    """When the incident began, and how that is known.

    That is the onset of errors of all requests, or else of latency; if all requests together show neither, the earliest
    onset of a service. Where only the share of very slow requests rose, it is that of all requests, or else of a
    service. For one service, its own onset.
    """
    every = snapshot.derived(_onsets, "spans")
    if service is not None:
        return next(((onset.time, onset.text) for onset in every.get(service, [])), None)
    of_all = {onset.what: (onset.time, onset.text) for onset in every.get(None, [])}
    first = [(name, onsets[0]) for name, onsets in every.items() if name is not None]
    plain = [(onset.time, f"{onset.text}, of {name}") for name, onset in first if onset.what != DELAYS]
    delays = [(onset.time, f"{onset.text}, of {name}") for name, onset in first if onset.what == DELAYS]
    return (
        of_all.get(ERRORS)
        or of_all.get(LATENCY)
        or min(plain, default=None)
        or of_all.get(DELAYS)
        or min(delays, default=None)
    )


def _onsets(snapshot: Snapshot) -> dict[str | None, list[Onset]]:
    span = extent(snapshot)
    if span.first is None or span.last is None:
        return {}
    seconds = (span.last - span.first).total_seconds()
    width = max(_MIN_WIDTH, seconds / _BUCKETS)
    share = max(1, -(-snapshot.count("spans") // _MAX_SPANS))
    rows = snapshot.rows(_BUCKETED, [share, span.first.replace(tzinfo=None), width])
    by_service: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by_service[row.pop("service")].append(row)
    found = {}
    for service, buckets in by_service.items():
        chance = FALSE_ALARMS if service is None else FALSE_ALARMS / len(span.services)
        onsets = _onsets_in(buckets, int(seconds // width), chance)
        if onsets:
            found[service] = [_timed(onset, span.first, width) for onset in onsets]
    return found


@dataclass(frozen=True, slots=True)
class _BucketOnset:
    bucket: int
    what: str
    change: RateChange
    before: float
    after: float
    first_seen: datetime | None = None


def _timed(onset: _BucketOnset, first: datetime, width: float) -> Onset:
    time = first + timedelta(seconds=onset.bucket * width)
    before, after, margin = onset.before, onset.after, width
    if onset.what == TRAFFIC:
        # Requests that come at random stay away for thrice their mean interval at times: chosen.
        margin += 3 * width / before
        before, after = before / width, after / width
    elif not onset.change.before:
        margin = 0.0  # the first one of all
    evidence = onset.change.evidence
    return Onset(time, onset.what, before, after, evidence, onset.first_seen or time, timedelta(seconds=margin))


def _onsets_in(buckets: Sequence[dict[str, Any]], count: int, chance: float) -> list[_BucketOnset]:
    """The first rise of errors and of latency, and fall of traffic; `count` is the number of whole buckets."""
    numbers = [int(row["bucket"]) for row in buckets]
    requests = [row["requests"] for row in buckets]
    found = []

    def risen(what: str, column: str) -> list[_BucketOnset]:
        """The first rise of the share of requests that a column counts."""
        change = _first(
            binomial_changes([row[column] for row in buckets], requests, chance),
            lambda change: change.after > change.before + _RISE,
        )
        if change is None:
            return []
        seen = _first_time(buckets[change.index :], f"{column}_at")
        return [_BucketOnset(numbers[change.index], what, change, change.before, change.after, seen)]

    found += risen(ERRORS, "failed")
    for change in binomial_changes([row["slow"] for row in buckets], requests, chance):
        before, after = (
            median(row["p95_ms"] or 0.0 for row in part) for part in (buckets[: change.index], buckets[change.index :])
        )
        if change.after > change.before and after > _SLOWER * before:
            seen = _first_time(buckets[change.index :], "slow_at")
            found.append(_BucketOnset(numbers[change.index], LATENCY, change, before, after, seen))
            break
    else:
        found += risen(DELAYS, "very_slow")
    whole = [0.0] * count
    for number, row in zip(numbers, buckets, strict=True):
        if number < count:
            whole[number] = row["requests"]
    traffic = _first(poisson_changes(whole, chance), lambda change: change.after < _FALL * change.before)
    if traffic:
        found.append(_BucketOnset(traffic.index, TRAFFIC, traffic, traffic.before, traffic.after))
    return found


def _first_time(buckets: Sequence[dict[str, Any]], column: str) -> datetime | None:
    return next((row[column] for row in buckets if row[column] is not None), None)


def _first(changes: list[RateChange], accept: Callable[[RateChange], bool]) -> RateChange | None:
    return next((change for change in changes if accept(change)), None)
