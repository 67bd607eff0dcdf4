"""Spans as a tree of services: which path of calls led to each, what it spent itself, where failures begin.

Spans are told apart by the numbers that stand for their ids, and worked on as whole columns, level by level from the
roots. Where there are more, one trace in so many stands for all, chosen by its id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from sre_tools.offline_incident_analysis.replies import Row
from srearena.snapshots import Snapshot

MOST_SPANS = 200_000
_MOST_DEPTH = 60
_MESSAGES = 3
ARROW = " → "

# NULL durations are told by -1, which no span takes.
_SPANS = """
SELECT span_key AS own, coalesce(parent_key, 0) AS parent, hash(service) AS service,
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
    """One in so many traces was looked at."""


def call_tree(
    snapshot: Snapshot, services: Sequence[str], pivot: datetime, begin: datetime, end: datetime, kind: str | None
) -> Tree:
    """The tree of the spans of a time range; `services` has the names of all there are."""
    inside = "FROM spans WHERE time >= ? AND time < ? AND service IS NOT NULL"
    count = snapshot.rows(f"SELECT count(*) AS n {inside}", [begin, end])[0]["n"]
    share = max(1, -(-count // MOST_SPANS))
    spans = snapshot.arrays(_SPANS, [pivot, kind, kind, begin, end, share])
    if not len(spans["own"]):
        return Tree([], share)
    codes = snapshot.rows("SELECT hash(name) AS code, name FROM unnest(?) AS every(name)", [list(services)])
    names = {row["code"]: row["name"] for row in codes}
    parents = _positions(spans["own"], spans["parent"])
    path, paths = _paths(parents, spans["service"], names)
    rows = _aggregated(spans, parents, path, paths)
    texts = _texts(snapshot, {code for row in rows for code in row["messages"]}, begin, end)
    for row in rows:
        row["messages"] = sorted(texts[code] for code in row["messages"] if code in texts)
    return Tree(rows, share)


def _positions(own: Any, parent: Any) -> Any:
    """For each span where its parent is; -1 where that is not among them."""
    order = np.argsort(own, kind="stable")
    ordered = own[order]
    found = np.minimum(np.searchsorted(ordered, parent), len(own) - 1)
    return np.where((parent != 0) & (ordered[found] == parent), order[found], -1)


def _paths(parents: Any, services: Any, names: dict[int, str]) -> tuple[Any, list[tuple[str, str]]]:
    """For each span the number of its path (-1 if no root leads to it), and the paths with their last services."""
    codes, service = np.unique(services, return_inverse=True)
    path = np.full(len(parents), -1)
    paths: list[tuple[str, str]] = []
    known: dict[tuple[int, int], int] = {}
    children = np.argsort(parents, kind="stable")
    sorted_parents = parents[children]
    level = children[: np.searchsorted(sorted_parents, 0)]  # whose parent is -1: the roots
    above = np.full(len(level), -1)
    for _ in range(_MOST_DEPTH):
        pairs, which = np.unique((above + 1) * len(codes) + service[level], return_inverse=True)
        numbers = []
        for pair in pairs.tolist():
            before, last = pair // len(codes) - 1, pair % len(codes)
            name = names[int(codes[last])]
            if before >= 0 and paths[before][1] == name:
                numbers.append(before)  # a call within a service does not lengthen the path
                continue
            if (before, last) not in known:
                known[before, last] = len(paths)
                paths.append((paths[before][0] + ARROW + name if before >= 0 else name, name))
            numbers.append(known[before, last])
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
    below = np.bincount(parents[called], spans["failed"][called], len(path)) > 0
    own_time = np.maximum(duration - spent, 0.0)
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
        known = members[timed[members]]  # by duration: that is how the group is sorted
        text, service = paths[number // 2]
        messages = np.unique(spans["message"][members[failed]])
        rows.append(
            {
                "path": text,
                "service": service,
                "side": "post" if number % 2 else "pre",
                "spans": end - begin,
                "errors": int(failed.sum()),
                "own_errors": int((failed & ~below[members]).sum()),
                "p50": _quantile(duration[known], 0.5),
                "p99": _quantile(duration[known], 0.99),
                "self_ms": float(own_time[known].mean()) / 1e6 if len(known) else None,
                "messages": [int(code) for code in messages if code][:_MESSAGES],
            }
        )
    return rows


def _quantile(ordered: Any, share: float) -> float | None:
    """Of nanoseconds in order, in milliseconds."""
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
