"""The metric store: every series, indexed by labels.

Writers own blocks (see `blocks`); readers select series. A label set is one series, even if several blocks wrote it in
turn, as when a pod's exporter restarts. The number of live series is bounded: excess series are refused, counted
(`refused`) and reported (`notice`), and the writer continues with those that were admitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from srearena.cluster.embedded.telemetry.metrics.blocks import Block, Floats, Integers, milliseconds, missing
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, labels_of, value_of
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.cluster.embedded.telemetry.metrics.selections import Piece, Places, Selection, merged, selection

DEFAULT_RETENTION = 24 * 3600.0
DEFAULT_MAX_SERIES = 200_000
_MAX_SELECTIONS = 256
"""Selections kept. Chosen: a dashboard's queries."""


@dataclass(frozen=True, slots=True)
class Metadata:
    kind: str
    """counter, gauge, histogram, summary or unknown."""
    help: str
    unit: str = ""


@dataclass(slots=True, eq=False)
class Series:
    labels: Labels
    places: Places = field(default_factory=list)


@dataclass(slots=True)
class Frame:
    """Series that share their timestamps."""

    series: list[Labels]
    times: Integers
    values: Floats
    """Series by times; `blocks.missing` says where there is no sample."""


class MetricStore:
    def __init__(self, retention: float = DEFAULT_RETENTION, max_series: int = DEFAULT_MAX_SERIES) -> None:
        self.retention = retention
        self.max_series = max_series
        self.refused = 0
        """Number of series refused beyond the limit."""
        self.metadata: dict[str, Metadata] = {}
        self._series: dict[Labels, Series] = {}
        self._indexed: dict[str, dict[str, dict[Series, None]]] = {}
        self._unindexed: list[Series] = []
        """Series that were admitted since anything was last looked up: many stores are never read."""
        self._blocks: dict[Block, None] = {}
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}
        self._selections: dict[tuple[Matcher, ...], Selection] = {}

    # Writing

    def block(self, labels: Sequence[Mapping[str, str]], metadata: Mapping[str, Metadata] | None = None) -> Block:
        """A new block of series; each label set includes `__name__`."""
        if metadata:
            self.metadata.update(metadata)
        chosen: list[Series] = []
        admitted: list[int] = []
        for position, mapping in enumerate(labels):
            series = self._admit(labels_of(mapping))
            if series is not None:
                chosen.append(series)
                admitted.append(position)
        complete = len(admitted) == len(labels)
        block = Block(chosen, None if complete else np.array(admitted, dtype=np.int64), len(labels))
        for column, series in enumerate(chosen):
            series.places.append((block, column))
        self._blocks[block] = None
        self._selections.clear()
        return block

    def describe(self, name: str, kind: str, help: str, unit: str = "") -> None:
        self.metadata[name] = Metadata(kind, help, unit)

    def forget(self, now: float) -> None:
        """Drop samples older than the retention. The owner of the store calls it periodically."""
        before = milliseconds(now - self.retention)
        for block in list(self._blocks):
            block.forget(before)
            if block.ended and block.is_empty:
                self._drop(block)

    def _admit(self, labels: Labels) -> Series | None:
        known = self._series.get(labels)
        if known is not None:
            return known
        if len(self._series) >= self.max_series:
            self.refused += 1
            return None
        shared = tuple(map(self._pairs.setdefault, labels, labels))
        series = self._series[shared] = Series(shared)
        self._unindexed.append(series)
        return series

    @property
    def _postings(self) -> dict[str, dict[str, dict[Series, None]]]:
        """The series of every value of every label."""
        indexed = self._indexed
        if self._unindexed:
            for series in self._unindexed:
                for name, value in series.labels:
                    indexed.setdefault(name, {}).setdefault(value, {})[series] = None
            self._unindexed.clear()
        return indexed

    def _drop(self, block: Block) -> None:
        del self._blocks[block]
        self._selections.clear()
        for series in block.series:
            series.places = [place for place in series.places if place[0] is not block]
            if not series.places and self._series.pop(series.labels, None) is not None:
                for name, value in series.labels:
                    values = self._postings[name]
                    values[value].pop(series, None)
                    if not values[value]:
                        del values[value]
                        self._pairs.pop((name, value), None)
                    if not values:
                        del self._postings[name]

    # Contents

    def __len__(self) -> int:
        return len(self._series)

    @property
    def nbytes(self) -> int:
        return sum(block.nbytes for block in self._blocks)

    @property
    def first(self) -> float | None:
        """Time of the oldest sample."""
        times = [block.first for block in self._blocks if block.first is not None]
        return min(times) / 1000 if times else None

    @property
    def last(self) -> int | None:
        """Time of the youngest sample, in milliseconds."""
        return max((block.last for block in self._blocks if block.last is not None), default=None)

    def notice(self) -> str | None:
        """Message about refused series, or empty."""
        if not self.refused:
            return None
        return f"{self.refused} series were refused: the store holds at most {self.max_series} series"

    # Reading

    def find(self, matchers: Sequence[Matcher]) -> list[Series]:
        """Return the series that all matchers match, in label order."""
        candidates: Iterable[Series] | None = None
        rest: list[Matcher] = []
        for matcher in matchers:
            literals = matcher.literals
            if literals is None or "" in literals:
                rest.append(matcher)
                continue
            postings = self._postings.get(matcher.name, {})
            if len(literals) == 1:
                found = postings.get(next(iter(literals)), {})
            else:
                found = {series: None for value in sorted(literals) for series in postings.get(value, ())}
            candidates = found if candidates is None else [series for series in candidates if series in found]
        if candidates is None:
            candidates = self._series.values()
        for matcher in rest:
            verdicts: dict[str, bool] = {}
            name = matcher.name
            chosen = []
            for series in candidates:
                value = value_of(series.labels, name)
                verdict = verdicts.get(value)
                if verdict is None:
                    verdict = verdicts[value] = matcher.holds(value)
                if verdict:
                    chosen.append(series)
            candidates = chosen
        return sorted(candidates, key=_labels)

    def frames(self, matchers: Sequence[Matcher], start: int, end: int) -> list[Frame]:
        """Samples from start to end (milliseconds, both included), series with the same timestamps together."""
        chosen = self._selection(matchers)
        pieces: list[Piece] = []
        spread: dict[tuple[Block, ...], list[tuple[Places, int]]] = {}
        for group in chosen.groups:
            if group.covers(start):
                pieces.append(Piece(group.order, *group.block.read(group.columns, start, end)))
                continue
            for places, position in zip(group.places, group.positions, strict=True):
                key = tuple(block for block, _ in places if _overlaps(block, start, end))
                if key:
                    spread.setdefault(key, []).append((places, position))
        pieces += [_piece(blocks, members, start, end) for blocks, members in spread.items()]
        labels = chosen.labels
        return [
            Frame([labels[position] for position in piece.positions.tolist()], piece.times, piece.values)
            for piece in merged(pieces)
        ]

    def latest(self, matchers: Sequence[Matcher], start: int, at: int) -> Frame:
        """Return the last sample of every series from start to a time; `times` and `values` have one per series."""
        chosen = self._selection(matchers)
        times: Integers = np.full(len(chosen.labels), start - 1, dtype=np.int64)
        values: Floats = np.full(len(chosen.labels), np.nan)
        for group in chosen.groups:
            if group.covers(at):
                found = group.block.row(group.columns, at)
                if found is not None:
                    times[group.order], values[group.order] = found
                continue
            for places, position in zip(group.places, group.positions, strict=True):
                key = tuple(block for block, _ in places if _overlaps(block, start, at))
                if key:
                    piece = _piece(key, [(places, position)], start, at)
                    if len(piece.times):
                        times[position], values[position] = piece.times[-1], piece.values[0, -1]
        return Frame(chosen.labels, times, values)

    def _selection(self, matchers: Sequence[Matcher]) -> Selection:
        key = tuple(matchers)
        chosen = self._selections.get(key)
        if chosen is None:
            found = self.find(matchers)
            chosen = selection([series.labels for series in found], [series.places for series in found])
            if len(self._selections) >= _MAX_SELECTIONS:
                self._selections.clear()
            self._selections[key] = chosen
        return chosen

    def select(self, matchers: Sequence[Matcher], start: float, end: float) -> list[tuple[Labels, Floats, Floats]]:
        """Labels, times (seconds) and values of each series with samples in the window, both ends included."""
        found: list[tuple[Labels, Floats, Floats]] = []
        for frame in self.frames(matchers, milliseconds(start), milliseconds(end)):
            nothing = missing(frame.values)
            for labels, values, gaps in zip(frame.series, frame.values, nothing, strict=True):
                times = frame.times / 1000
                if gaps.any():
                    times, values = times[~gaps], values[~gaps]
                if len(times):
                    found.append((labels, times, values))
        return sorted(found, key=lambda entry: entry[0])

    def label_names(self) -> list[str]:
        return sorted(self._postings)

    def label_values(self, name: str) -> list[str]:
        return sorted(self._postings.get(name, ()))

    def series_count(self, name: str, value: str) -> int:
        return len(self._postings.get(name, {}).get(value, ()))

    @property
    def pair_count(self) -> int:
        return len(self._pairs)

    def metric_names(self) -> list[str]:
        return self.label_values(NAME)


def _labels(series: Series) -> Labels:
    return series.labels


def _overlaps(block: Block, start: int, end: int) -> bool:
    first, last = block.first, block.last
    return first is not None and last is not None and first <= end and last >= start


def _piece(blocks: tuple[Block, ...], members: Sequence[tuple[Places, int]], start: int, end: int) -> Piece:
    """Return the samples of series that several blocks wrote."""
    times: list[Integers] = []
    values: list[Floats] = []
    for block in blocks:
        columns = np.array([next(c for b, c in places if b is block) for places, _ in members], dtype=np.int64)
        block_times, block_values = block.read(columns, start, end)
        times.append(block_times)
        values.append(block_values)
    positions = np.array([position for _, position in members], dtype=np.int64)
    if len(blocks) == 1:
        return Piece(positions, times[0], values[0])
    piece = Piece(positions, np.concatenate(times), np.concatenate(values, axis=1))
    if (np.diff(piece.times) <= 0).any():
        _untangle(piece)
    return piece


def _untangle(piece: Piece) -> None:
    """Merge the rows of overlapping blocks; at one instant the younger block's sample wins, if it has one."""
    order = np.argsort(piece.times, kind="stable")
    times, values = piece.times[order], piece.values[:, order]
    for at in np.flatnonzero(np.diff(times) == 0):
        gaps = missing(values[:, at + 1])
        values[gaps, at + 1] = values[gaps, at]
    last = np.append(np.diff(times) > 0, True)
    piece.times, piece.values = times[last], values[:, last]
