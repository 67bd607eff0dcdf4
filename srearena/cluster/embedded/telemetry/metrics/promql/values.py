"""Values of expressions, over all steps of a query at once.

An instant vector has one row per series and one column per step. A cell is valid where `present` is true. Every row is
present at some step, and no two rows with the same labels are present at the same step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Flags, Floats, Integers
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, without
from srearena.cluster.embedded.telemetry.metrics.promql.errors import QueryError

SAME_LABELS = "vector cannot contain metrics with the same labelset"


@dataclass(slots=True)
class Scalar:
    values: Floats
    """One per step."""


@dataclass(slots=True)
class String:
    value: str


@dataclass(slots=True)
class Vector:
    series: list[Labels]
    values: Floats
    present: Flags

    @classmethod
    def empty(cls, steps: int) -> Vector:
        return cls([], np.empty((0, steps)), np.empty((0, steps), dtype=bool))

    @property
    def steps(self) -> int:
        return int(self.values.shape[1])

    def only(self, rows: Integers | list[int]) -> Vector:
        return Vector([self.series[row] for row in rows], self.values[rows], self.present[rows])

    def pruned(self) -> Vector:
        """Return the vector without rows that are present at no step."""
        alive = self.present.any(axis=1)
        return self if alive.all() else self.only(np.flatnonzero(alive))

    def relabelled(self, change: Callable[[Labels], Labels]) -> Vector:
        return Vector([change(labels) for labels in self.series], self.values, self.present)

    def nameless(self) -> Vector:
        return self.relabelled(nameless)

    def unified(self, strict: bool = False) -> Vector:
        """Rows with equal labels made one; an error where two are present at a step (or, if strict, at all)."""
        if len(set(self.series)) == len(self.series):
            return self
        rows: dict[Labels, int] = {}
        values, present = self.values.copy(), self.present.copy()
        rows_kept: list[int] = []
        for row, labels in enumerate(self.series):
            first = rows.setdefault(labels, row)
            if first == row:
                rows_kept.append(row)
                continue
            if strict or (present[first] & present[row]).any():
                raise QueryError(SAME_LABELS)
            values[first] = np.where(present[row], values[row], values[first])
            present[first] |= present[row]
        return Vector(self.series, values, present).only(rows_kept)


@dataclass(slots=True)
class Windows:
    """Series that share their timestamps, without gaps, and the window of samples of each step."""

    series: list[Labels]
    times: Integers
    values: Floats
    first: Integers
    """Per step: the first sample of the window."""
    last: Integers
    """Per step: the sample after the window's last."""

    @property
    def counts(self) -> Integers:
        return self.last - self.first


@dataclass(slots=True)
class Matrix:
    """A range vector: windows over samples, per group of series with the same timestamps."""

    groups: list[Windows]
    starts: Integers
    """Per step: where the window begins and ends, in milliseconds."""
    ends: Integers
    steps: Integers
    """Per step: the time evaluated at, which an offset or @ may differ from."""
    span: int
    version: int = 3
    """Of Prometheus."""


Value = Scalar | String | Vector | Matrix


_NAME = frozenset((NAME,))


def nameless(labels: Labels) -> Labels:
    return without(labels, _NAME)


def joined(vectors: Iterable[Vector], steps: int) -> Vector:
    parts = [vector for vector in vectors if vector.series]
    if not parts:
        return Vector.empty(steps)
    if len(parts) == 1:
        return parts[0]
    return Vector(
        [labels for part in parts for labels in part.series],
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.present for part in parts]),
    )
