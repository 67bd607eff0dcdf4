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

DEFAULT_RETENTION = 24 * 3600.0
DEFAULT_MAX_SERIES = 200_000


@dataclass(frozen=True, slots=True)
class Metadata:
    kind: str
    """counter, gauge, histogram, summary or unknown."""
    help: str
    unit: str = ""


@dataclass(slots=True, eq=False)
class Series:
    labels: Labels
    places: list[tuple[Block, int]] = field(default_factory=list)
    """The blocks that wrote it, oldest first, and its column in each."""


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
        self._postings: dict[str, dict[str, dict[Series, None]]] = {}
        self._blocks: dict[Block, None] = {}
        self._pairs: dict[tuple[str, str], tuple[str, str]] = {}

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
        shared = tuple(self._pairs.setdefault(pair, pair) for pair in labels)
        series = self._series[shared] = Series(shared)
        for name, value in shared:
            self._postings.setdefault(name, {}).setdefault(value, {})[series] = None
        return series

    def _drop(self, block: Block) -> None:
        del self._blocks[block]
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
        groups: dict[tuple[Block, ...], list[Series]] = {}
        for series in self.find(matchers):
            if len(series.places) == 1:
                key: tuple[Block, ...] = (series.places[0][0],)
            else:
                key = tuple(block for block, _ in series.places if _overlaps(block, start, end))
            if key:
                groups.setdefault(key, []).append(series)
        frames = []
        for blocks, members in groups.items():
            frame = _frame(blocks, members, start, end)
            if len(frame.times):
                frames.append(frame)
        return frames

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


def _frame(blocks: tuple[Block, ...], members: list[Series], start: int, end: int) -> Frame:
    times: list[Integers] = []
    values: list[Floats] = []
    for block in blocks:
        columns = np.array([next(c for b, c in series.places if b is block) for series in members], dtype=np.int64)
        block_times, block_values = block.read(columns, start, end)
        times.append(block_times)
        values.append(block_values)
    labels = [series.labels for series in members]
    if len(blocks) == 1:
        return Frame(labels, times[0], values[0])
    merged = Frame(labels, np.concatenate(times), np.concatenate(values, axis=1))
    if (np.diff(merged.times) <= 0).any():
        _untangle(merged)
    return merged


def _untangle(frame: Frame) -> None:
    """Merge the rows of overlapping blocks; at one instant the younger block's sample wins, if it has one."""
    order = np.argsort(frame.times, kind="stable")
    times, values = frame.times[order], frame.values[:, order]
    for at in np.flatnonzero(np.diff(times) == 0):
        gaps = missing(values[:, at + 1])
        values[gaps, at + 1] = values[gaps, at]
    last = np.append(np.diff(times) > 0, True)
    frame.times, frame.values = times[last], values[:, last]
