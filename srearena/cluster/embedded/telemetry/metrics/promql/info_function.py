"""The function info(): labels of info metrics, added to the series of the same target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, keeping, value_of, with_labels, written
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import (
    MATRIX,
    VECTOR,
    Call,
    Moment,
    Node,
    Selector,
    Subquery,
    children,
    value_type,
)
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector

_IDENTIFYING = frozenset(("instance", "job"))
_DEFAULT = Matcher(NAME, "=", "target_info")


class Selecting(Protocol):
    """An evaluation: selects the latest samples."""

    def selected_at(self, node: Selector, at: Integers, timestamps: bool = False) -> Vector: ...


def reference_of(node: Node, resolved: Callable[..., int]) -> Moment:
    """Return the time that all selectors of an expression share, or the step."""
    found = list(_references(node, (), resolved))
    if not found or any(moment is None or not _same(moment, found[0]) for moment in found):
        return Moment()
    assert found[0] is not None
    return found[0]


def _same(one: Moment, other: Moment | None) -> bool:
    if other is None:
        return False
    if isinstance(one.at, int) and isinstance(other.at, int):
        assert isinstance(one.offset, int) and isinstance(other.offset, int)
        return one.at - one.offset == other.at - other.offset
    return one == other


def _references(node: Node, outer: tuple[Subquery, ...], resolved: Callable[..., int]) -> Iterator[Moment | None]:
    """Yield the time of each selector; None for a vector that no selector gives."""
    if value_type(node) not in (VECTOR, MATRIX):
        return
    if isinstance(node, Selector):
        offset, at = resolved(node.moment.offset, negative=True), node.moment.at
        for subquery in reversed(outer):
            if at is not None:
                break
            offset, at = offset + resolved(subquery.moment.offset, negative=True), subquery.moment.at
        yield Moment(offset, at)
        return
    inside = (*outer, node) if isinstance(node, Subquery) else outer
    parts = node.arguments[:1] if isinstance(node, Call) and node.function == "info" else tuple(children(node))
    found = [moment for part in parts for moment in _references(part, inside, resolved)]
    yield from found or [None]


def enriched(base: Vector, matchers: Sequence[Matcher], evaluation: Selecting, at: Integers) -> Vector:
    names = _name_matchers([matcher for matcher in matchers if matcher.name == NAME])
    wanted = [matcher for matcher in matchers if matcher.name != NAME]
    ignored = [all(matcher.holds(value_of(labels, NAME)) for matcher in names) for labels in base.series]
    info = evaluation.selected_at(Selector((*names, *wanted)), at, timestamps=True)
    info = info.only([row for row, labels in enumerate(info.series) if keeping(labels, _IDENTIFYING)])
    newest = _newest(info, [labels for labels, skip in zip(base.series, ignored, strict=True) if not skip])
    data_labels = {matcher.name for matcher in wanted}
    needs_match = not all(matcher.holds("") for matcher in wanted)
    series: list[Labels] = []
    rows: list[int] = []
    present: list[Flags] = []
    for row, (labels, skip) in enumerate(zip(base.series, ignored, strict=True)):
        target = keeping(labels, _IDENTIFYING)
        matches = [] if skip else [entry for key, entries in newest.items() if key[1] == target for entry in entries]
        for steps, chosen in _combinations(base.present[row], matches):
            if not chosen and needs_match and not skip:
                continue
            series.append(_with_info(labels, [info.series[number] for number in chosen], data_labels))
            rows.append(row)
            present.append(steps)
    if not rows:
        return Vector.empty(base.steps)
    return Vector(series, base.values[rows], np.stack(present)).pruned().unified()


def _name_matchers(matchers: list[Matcher]) -> list[Matcher]:
    if any(matcher.operator in ("=", "=~") for matcher in matchers):
        return matchers
    return [Matcher(NAME, "=~", ".+_info"), *matchers] if matchers else [_DEFAULT]


def _newest(info: Vector, base: list[Labels]) -> dict[tuple[str, Labels], list[tuple[int, Flags]]]:
    """Per metric and target: info series, and the steps at which each is the newest."""
    targets = {keeping(labels, _IDENTIFYING) for labels in base}
    groups: dict[tuple[str, Labels], list[int]] = {}
    for row, labels in enumerate(info.series):
        key = (value_of(labels, NAME), keeping(labels, _IDENTIFYING))
        if key[1] in targets:
            groups.setdefault(key, []).append(row)
    found: dict[tuple[str, Labels], list[tuple[int, Flags]]] = {}
    for key, rows in groups.items():
        times = np.where(info.present[rows], info.values[rows], -np.inf)
        newest = times == times.max(axis=0)
        newest &= info.present[rows]
        twice = np.flatnonzero(newest.sum(axis=0) > 1)
        if len(twice):
            one, other = np.flatnonzero(newest[:, twice[0]])[:2]
            moment = int(times[one, twice[0]] * 1000)
            raise QueryError(
                f"found duplicate series for info metric: existing {written(info.series[rows[one]])} @ {moment}, "
                f"new {written(info.series[rows[other]])} @ {moment}"
            )
        found[key] = [(row, newest[number]) for number, row in enumerate(rows)]
    return found


def _combinations(steps: Flags, matches: list[tuple[int, Flags]]) -> Iterator[tuple[Flags, list[int]]]:
    """Yield the steps at which the same info series match, and those."""
    if not matches:
        yield steps, []
        return
    stacked = np.stack([where & steps for _, where in matches])
    patterns, which = np.unique(stacked, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T):
        yield steps & (which.ravel() == number), [matches[i][0] for i in np.flatnonzero(pattern)]


def _with_info(labels: Labels, info: list[Labels], chosen: set[str]) -> Labels:
    names = {name for name, _ in labels}
    added: dict[str, str] = {}
    for each in info:
        for name, value in each:
            if name == NAME or (chosen and name not in chosen):
                continue
            if added.get(name, value) != value:
                raise QueryError(f"conflicting label: {name}")
            if name not in names:
                added[name] = value
    return with_labels(labels, added) if added else labels
