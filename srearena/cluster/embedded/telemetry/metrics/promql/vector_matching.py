"""Binary operators between two vectors: matching of elements and their results.

The real server matches at every step. Here pairs of series are matched once, and a pair is valid at the steps at which
both are present; so the rules on duplicates are checked for all steps at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import (
    NAME,
    Labels,
    keeping,
    value_of,
    with_labels,
    without,
    written,
)
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError
from srearena.cluster.embedded.telemetry.metrics.promql.nodes import Matching
from srearena.cluster.embedded.telemetry.metrics.promql.operators import ARITHMETIC, COMPARISON, keeps_name
from srearena.cluster.embedded.telemetry.metrics.promql.values import Vector, joined, nameless

Rows = dict[Labels, list[int]]


def signature(matching: Matching) -> Callable[[Labels], Labels]:
    if matching.on:
        matching_labels = frozenset(matching.labels)
        return lambda labels: keeping(labels, matching_labels)
    dropped = frozenset((*matching.labels, NAME))
    return lambda labels: without(labels, dropped)


def _by_signature(vector: Vector, matching: Matching) -> Rows:
    sign = signature(matching)
    rows: Rows = {}
    for row, labels in enumerate(vector.series):
        rows.setdefault(sign(labels), []).append(row)
    return rows


# Sets


def set_operation(operator: str, left: Vector, right: Vector, matching: Matching) -> Vector:
    """Evaluate and, or, unless, which keep or drop elements."""
    steps = left.steps if left.series else right.steps
    if operator == "or":
        outside = right.present & ~_covered(right, left, matching)
        rest = Vector(right.series, right.values, outside).pruned()
        return joined((left, rest), steps).unified()
    covered = _covered(left, right, matching)
    return Vector(left.series, left.values, left.present & (covered if operator == "and" else ~covered)).pruned()


def _covered(vector: Vector, other: Vector, matching: Matching) -> Flags:
    """Where the other side has an element with the same signature."""
    covered = np.zeros(vector.present.shape, dtype=bool)
    theirs = _by_signature(other, matching)
    for key, rows in _by_signature(vector, matching).items():
        if key in theirs:
            covered[rows] = other.present[theirs[key]].any(axis=0)
    return covered


# Arithmetic and comparison


@dataclass(frozen=True, slots=True)
class _Operator:
    """An operator with its modifiers, as a major version of Prometheus evaluates it."""

    name: str
    matching: Matching
    return_bool: bool
    version: int

    def computed(self, left: Floats, right: Floats) -> tuple[Floats, Flags]:
        """Return the values, and which of them are in the result."""
        with np.errstate(all="ignore"):
            if self.name in ARITHMETIC:
                return ARITHMETIC[self.name](left, right), np.ones(left.shape, dtype=bool)
            verdict = COMPARISON[self.name](left, right)
        if self.return_bool:
            return verdict.astype(np.float64), np.ones(left.shape, dtype=bool)
        return left, verdict

    def labels(self, many: Labels, one: Labels) -> Labels:
        matching = self.matching
        labels = many if keeps_name(self.name, self.version) and not self.return_bool else nameless(many)
        if not matching.many:
            names = frozenset(matching.labels)
            labels = keeping(labels, names) if matching.on else without(labels, names)
        if matching.include:
            labels = with_labels(labels, {name: value_of(one, name) for name in matching.include})
        return labels


def vector_operation(
    name: str, left: Vector, right: Vector, matching: Matching, return_bool: bool, version: int
) -> Vector:
    operator = _Operator(name, matching, return_bool, version)
    swapped = matching.many == "right"
    many, one = (right, left) if swapped else (left, right)
    if (not many.series or not one.series) and matching.fill_left is None and matching.fill_right is None:
        return Vector.empty(left.steps)
    many_rows, one_rows = _by_signature(many, matching), _by_signature(one, matching)
    _check_one_side(one, one_rows, matching, "left" if swapped else "right")
    pairs: list[tuple[int, int]] = []
    for key, rows in many_rows.items():
        pairs += [(row, match) for row in rows for match in one_rows.get(key, ())]
    pairs.sort()
    first = np.array([pair[0] for pair in pairs], dtype=np.int64)
    second = np.array([pair[1] for pair in pairs], dtype=np.int64)
    ours, theirs = many.values[first], one.values[second]
    operands = (theirs, ours) if swapped else (ours, theirs)
    values, selected = operator.computed(operands[0], operands[1])
    matched = many.present[first] & one.present[second]
    present = matched & selected
    series = [operator.labels(many.series[a], one.series[b]) for a, b in pairs]
    # Version 2 looked for duplicates among the results, version 3 does among the matches.
    checked = present if version == 2 else matched
    if not matching.many:
        _check_many_side(checked, first, many_rows)
    elif version > 2:
        _unified(Vector(series, values, matched), matching)
    result = Vector(series, values, present).pruned()
    filled = _filled(operator, many, one, many_rows, one_rows, swapped)
    if filled.series:
        result = joined((result, filled), left.steps)
    return _unified(result, matching)


def _check_one_side(one: Vector, rows: Rows, matching: Matching, side: str) -> None:
    for key, members in rows.items():
        if len(members) > 1:
            both = np.flatnonzero(one.present[members].sum(axis=0) > 1)
            if len(both):
                shown = sorted(written(one.series[row]) for row in members if one.present[row, both[0]])[:2]
                group = written(keeping(key, frozenset(matching.labels)) if matching.on else key)
                raise QueryError(
                    f"found duplicate series for the match group {group} on the {side} hand-side of the operation: "
                    f"[{shown[0]}, {shown[1]}];"
                    "many-to-many matching not allowed: matching labels must be unique on one side"
                )


def _check_many_side(present: Flags, first: Integers, rows: Rows) -> None:
    """One-to-one means one on the left as well, among the elements that give a result."""
    if len(rows) == sum(len(members) for members in rows.values()):
        return
    group_of = {row: number for number, members in enumerate(rows.values()) for row in members}
    groups = np.array([group_of[int(row)] for row in first], dtype=np.int64)
    totals = np.zeros((len(rows), present.shape[1]), dtype=np.int64)
    np.add.at(totals, groups, present)
    if (totals > 1).any():
        raise QueryError("multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)")


def _filled(operator: _Operator, many: Vector, one: Vector, many_rows: Rows, one_rows: Rows, swapped: bool) -> Vector:
    """Combine elements without a partner with the fill value of the other side, where there is one."""
    matching = operator.matching
    fill_many, fill_one = matching.fill_left, matching.fill_right  # group_right does not swap them
    parts = []
    for ours, rows, theirs, other_rows, fill, is_many in (
        (many, many_rows, one, one_rows, fill_one, True),
        (one, one_rows, many, many_rows, fill_many, False),
    ):
        if fill is None or not ours.series:
            continue
        alone = ours.present.copy()
        for key, members in rows.items():
            if key in other_rows:
                alone[members] &= ~theirs.present[other_rows[key]].any(axis=0)
        filler = np.full(ours.values.shape, fill)
        ours_left = is_many is not swapped
        operands = (ours.values, filler) if ours_left else (filler, ours.values)
        values, selected = operator.computed(operands[0], operands[1])
        sign = signature(matching)
        series = [
            operator.labels(*((labels, sign(labels)) if is_many else (sign(labels), labels))) for labels in ours.series
        ]
        parts.append(Vector(series, values, alone & selected).pruned())
    return joined(parts, many.steps)


def _unified(vector: Vector, matching: Matching) -> Vector:
    if not matching.many:
        return vector.unified()
    try:
        return vector.unified()
    except QueryError:
        raise QueryError("multiple matches for labels: grouping labels must ensure unique matches") from None
