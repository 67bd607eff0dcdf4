"""Spans aggregated by call path: spans, errors, self time, and the services where failures start.

Spans are identified by hashes of their ids and processed as columns, level by level from the roots. Beyond `MAX_SPANS`
only one in `share` traces is read, selected by its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from sre_tools.offline_incident_analysis.replies import Row
from srearena.snapshots import Snapshot

MAX_SPANS = 200_000  # per call; chosen: under a second
_MAX_DEPTH = 60  # calls; chosen: deeper traces are loops
_MAX_MESSAGES = 3  # per path
ARROW = " → "

# -1 stands for NULL durations.
_SPANS = """
SELECT span_key AS span, coalesce(parent_key, 0) AS parent, hash(service) AS service,
  time >= ? AS later, coalesce(status = 'Error', false) AS failed,
  coalesce(duration_ns, -1) AS duration, ? IS NULL OR coalesce(lower(kind) = lower(?), false) AS counted,
  CASE WHEN status = 'Error' AND status_message IS NOT NULL THEN hash(status_message) ELSE 0 END AS message
FROM spans WHERE time >= ? AND time < ? AND service IS NOT NULL AND trace_key % ? = 0
"""


@dataclass(frozen=True, slots=True)
class Tree:
    rows: list[Row]
    """For each path and side (`pre`, `post`): spans, errors, own_errors, p50, p99 and self_ms, messages."""
    share: int
    """One in `share` traces was read."""


def call_tree(
    snapshot: Snapshot, services: Sequence[str], pivot: datetime, begin: datetime, end: datetime, kind: str | None
) -> Tree:
    """The call tree of the spans in a time range; `services` are the names of all services."""
    inside = "FROM spans WHERE time >= ? AND time < ? AND service IS NOT NULL"
    count = snapshot.rows(f"SELECT count(*) AS n {inside}", [begin, end])[0]["n"]
    share = max(1, -(-count // MAX_SPANS))
    spans = snapshot.arrays(_SPANS, [pivot, kind, kind, begin, end, share])
    if not len(spans["span"]):
        return Tree([], share)
    codes = snapshot.rows("SELECT hash(name) AS code, name FROM unnest(?) AS every(name)", [list(services)])
    names = {row["code"]: row["name"] for row in codes}
    parents = _positions(spans["span"], spans["parent"])
    path, paths = _paths(parents, spans["service"], names)
    rows = _aggregated(spans, parents, path, paths)
    texts = _texts(snapshot, {code for row in rows for code in row["messages"]}, begin, end)
    for row in rows:
        row["messages"] = sorted(texts[code] for code in row["messages"] if code in texts)
    return Tree(rows, share)


def _positions(keys: Any, parent: Any) -> Any:
    """For each span the index of its parent; -1 if the parent is not among the spans."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    index = np.minimum(np.searchsorted(ordered, parent), len(keys) - 1)
    return np.where((parent != 0) & (ordered[index] == parent), order[index], -1)


def _paths(parents: Any, services: Any, names: dict[int, str]) -> tuple[Any, list[tuple[str, str]]]:
    """For each span the number of its path (-1 if it has no root), and the paths with their last services."""
    codes, service = np.unique(services, return_inverse=True)
    path = np.full(len(parents), -1)
    paths: list[tuple[str, str]] = []
    numbers_by_pair: dict[tuple[int, int], int] = {}
    children = np.argsort(parents, kind="stable")
    sorted_parents = parents[children]
    level = children[: np.searchsorted(sorted_parents, 0)]  # parent is -1: the roots
    above = np.full(len(level), -1)
    for _ in range(_MAX_DEPTH):
        pairs, which = np.unique((above + 1) * len(codes) + service[level], return_inverse=True)
        numbers = []
        for pair in pairs.tolist():
            before, last = pair // len(codes) - 1, pair % len(codes)
            name = names[int(codes[last])]
            if before >= 0 and paths[before][1] == name:
                numbers.append(before)  # calls within a service are not part of the path
                continue
            if (before, last) not in numbers_by_pair:
                numbers_by_pair[before, last] = len(paths)
                paths.append((paths[before][0] + ARROW + name if before >= 0 else name, name))
            numbers.append(numbers_by_pair[before, last])
        path[level] = np.asarray(numbers)[which]
        first, last_child = np.searchsorted(sorted_parents, level), np.searchsorted(sorted_parents, level, "right")
        sizes = last_child - first
        if not sizes.sum():
            break
        starts = np.repeat(first - np.concatenate(([0], np.cumsum(sizes)[:-1])), sizes)
        above = np.repeat(path[level], sizes)
        level = children[starts + np.arange(sizes.sum())]
    return path, paths


def _aggregated(spans: dict[str, Any], parents: Any, path: Any, paths: list[tuple[str, str]]) -> list[Row]:
    duration = spans["duration"].astype(float)
    timed = duration >= 0
    called = parents >= 0
    spent = np.bincount(parents[called], np.where(timed, duration, 0.0)[called], len(path))
    failed_child = np.bincount(parents[called], spans["failed"][called], len(path)) > 0
    self_time = np.maximum(duration - spent, 0.0)
    counted = np.flatnonzero(spans["counted"] & (path >= 0))
    if not len(counted):
        return []
    group = path[counted] * 2 + spans["later"][counted]
    order = np.lexsort((np.where(timed, duration, np.inf)[counted], group))
    counted, group = counted[order], group[order]
    numbers, starts = np.unique(group, return_index=True)
    ends = np.append(starts[1:], len(group))
    rows = []
    for number, begin, end in zip(numbers.tolist(), starts.tolist(), ends.tolist(), strict=True):
        members = counted[begin:end]
        failed = spans["failed"][members]
        durations = members[timed[members]]  # sorted by duration, like the group
        text, service = paths[number // 2]
        messages = np.unique(spans["message"][members[failed]])
        rows.append(
            {
                "path": text,
                "service": service,
                "side": "post" if number % 2 else "pre",
                "spans": end - begin,
                "errors": int(failed.sum()),
                "own_errors": int((failed & ~failed_child[members]).sum()),
                "p50": _quantile(duration[durations], 0.5),
                "p99": _quantile(duration[durations], 0.99),
                "self_ms": float(self_time[durations].mean()) / 1e6 if len(durations) else None,
                "messages": [int(code) for code in messages if code][:_MAX_MESSAGES],
            }
        )
    return rows


def _quantile(ordered: Any, share: float) -> float | None:
    """A quantile of sorted nanoseconds, in milliseconds."""
    if not len(ordered):
        return None
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return float(ordered[low] + (ordered[high] - ordered[low]) * (place - low)) / 1e6


def _texts(snapshot: Snapshot, codes: set[int], begin: datetime, end: datetime) -> dict[int, str]:
    if not codes:
        return {}
    marks = ", ".join(str(code) for code in sorted(codes))
    rows = snapshot.rows(
        f"""SELECT hash(status_message) AS code, any_value(status_message) AS text FROM spans
            WHERE time >= ? AND time < ? AND status = 'Error' AND hash(status_message) IN ({marks}) GROUP BY code""",
        [begin, end],
    )
    return {row["code"]: row["text"] for row in rows}
