"""Blocks: series that are always written together, stored as columns of one matrix.

A scrape appends one row. Full chunks are sealed: a constant column is stored once, the others are laid out by series,
as queries read them. Time is in whole milliseconds, ascending within a block.

A NaN cell means that the series had no sample in that row; readers treat it as Prometheus' staleness marker. A sample
whose value is NaN is written as `NAN_SAMPLE`, the one NaN that is a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

ROWS = 64
_FIRST_ROWS = 8
_NAN_SAMPLE_BITS = np.int64(0x7FF8000000000002)
NAN_SAMPLE = float(np.int64(_NAN_SAMPLE_BITS).view(np.float64))
_MISSING = float("nan")


def milliseconds(timestamp: float) -> int:
    return round(timestamp * 1000)


def missing(values: Floats) -> Flags:
    """Return which cells hold no sample."""
    nothing: Flags = np.isnan(values)
    if nothing.any():
        nothing &= np.ascontiguousarray(values).view(np.int64) != _NAN_SAMPLE_BITS
    return nothing


class Chunk:
    """A sealed piece of a block."""

    __slots__ = ("_changing", "_changing_index", "_constant", "times")

    def __init__(self, times: Integers, rows: Floats) -> None:
        self.times = times.copy()
        bits = rows.view(np.int64)
        changing = np.flatnonzero((bits != bits[0]).any(axis=0))
        self._constant: Floats = rows[0].copy()
        self._changing: Floats = np.ascontiguousarray(rows[:, changing].T)
        self._changing_index: npt.NDArray[np.int32] = np.full(rows.shape[1], -1, dtype=np.int32)
        self._changing_index[changing] = np.arange(len(changing), dtype=np.int32)

    @property
    def nbytes(self) -> int:
        return int(self.times.nbytes + self._constant.nbytes + self._changing.nbytes + self._changing_index.nbytes)

    def read(self, columns: Integers, first: int, last: int) -> Floats:
        index = self._changing_index[columns]
        values: Floats = np.empty((len(columns), last - first))
        values[:] = self._constant[columns][:, None]
        moving = np.flatnonzero(index >= 0)
        values[moving] = self._changing[index[moving], first:last]
        return values


class Block:
    """Series written together, one row of values per scrape. Created by `MetricStore.block`."""

    __slots__ = ("_columns", "_count", "_rows", "_times", "chunks", "ended", "last", "series", "width")

    def __init__(self, series: Sequence[Any], columns: Integers | None, width: int) -> None:
        self.series = series
        """One entry per stored column, in order."""
        self.width = width
        """Number of values in a row of the writer."""
        self.chunks: list[Chunk] = []
        self.ended = False
        self.last: int | None = None
        """When the last row was written, in milliseconds."""
        self._columns = columns
        self._count = 0
        self._times: Integers = np.empty(_FIRST_ROWS, dtype=np.int64)
        self._rows: Floats = np.empty((_FIRST_ROWS, len(series)))

    @property
    def first(self) -> int | None:
        if self.chunks:
            return int(self.chunks[0].times[0])
        return int(self._times[0]) if self._count else None

    @property
    def nbytes(self) -> int:
        return sum(chunk.nbytes for chunk in self.chunks) + int(self._rows.nbytes + self._times.nbytes)

    def append(self, timestamp: float, values: Sequence[float] | Floats) -> None:
        """Write one value per series; NaN where a series has no sample now."""
        if len(values) != self.width:
            raise ValueError(f"a row of {len(values)} values for a block of {self.width} series")
        row = values if self._columns is None else np.asarray(values, dtype=np.float64)[self._columns]
        self._write(milliseconds(timestamp), row)

    def end(self, timestamp: float) -> None:
        """Mark every series of the block stale; no samples follow."""
        if not self.ended:
            self._write(max(milliseconds(timestamp), (self.last or 0) + 1), _MISSING)
            self.ended = True

    def _write(self, at: int, row: Sequence[float] | Floats | float) -> None:
        if self.ended:
            raise ValueError("the block has ended")
        last = self.last
        if last is not None and at <= last:
            raise ValueError(f"a sample at {at} ms after one at {last} ms: rows must ascend in time")
        if self._count == len(self._times):
            self._grow()
        self.last = at
        self._times[self._count] = at
        self._rows[self._count] = row
        self._count += 1
        if self._count == ROWS:
            self.chunks.append(Chunk(self._times, self._rows))
            self._count = 0

    def _grow(self) -> None:
        size = min(2 * len(self._times), ROWS)
        times: Integers = np.empty(size, dtype=np.int64)
        rows: Floats = np.empty((size, len(self.series)))
        times[: self._count], rows[: self._count] = self._times[: self._count], self._rows[: self._count]
        self._times, self._rows = times, rows

    def forget(self, before: int) -> None:
        """Drop sealed chunks that end before a time."""
        while self.chunks and self.chunks[0].times[-1] < before:
            del self.chunks[0]
        if self.ended and not self.chunks and self._count and self._times[self._count - 1] < before:
            self._count = 0

    @property
    def is_empty(self) -> bool:
        return not self.chunks and not self._count

    def row(self, columns: Integers, at: int) -> tuple[int, Floats] | None:
        """Return the time and the values of some columns in the last row up to a time."""
        if self._count and self._times[0] <= at:
            index = int(np.searchsorted(self._times[: self._count], at, side="right")) - 1
            return int(self._times[index]), self._rows[index][columns]
        for chunk in reversed(self.chunks):
            if chunk.times[0] <= at:
                index = int(np.searchsorted(chunk.times, at, side="right")) - 1
                return int(chunk.times[index]), chunk.read(columns, index, index + 1)[:, 0]
        return None

    def read(self, columns: Integers, start: int, end: int) -> tuple[Integers, Floats]:
        """Times and values (series by rows) of some columns, from start to end, both included."""
        times: list[Integers] = []
        values: list[Floats] = []
        for chunk in self.chunks:
            if chunk.times[-1] >= start and chunk.times[0] <= end:
                first, last = _span(chunk.times, start, end)
                times.append(chunk.times[first:last])
                values.append(chunk.read(columns, first, last))
        if self._count:
            first, last = _span(self._times[: self._count], start, end)
            times.append(self._times[first:last].copy())
            values.append(np.ascontiguousarray(self._rows[first:last, columns].T))
        if not times:
            return np.empty(0, dtype=np.int64), np.empty((len(columns), 0))
        if len(times) == 1:
            return times[0], values[0]
        return np.concatenate(times), np.concatenate(values, axis=1)


def _span(times: Integers, start: int, end: int) -> tuple[int, int]:
    return int(np.searchsorted(times, start, side="left")), int(np.searchsorted(times, end, side="right"))
