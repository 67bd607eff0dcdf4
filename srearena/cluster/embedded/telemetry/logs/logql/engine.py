"""Evaluation of queries: lines for a log query, series for a metric query.

Log queries read only as many lines as requested. Metric queries read every line of their ranges once, whatever
the number of steps.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from srearena.cluster.embedded.telemetry.logs.logql import windows
from srearena.cluster.embedded.telemetry.logs.logql.errors import QueryError
from srearena.cluster.embedded.telemetry.logs.logql.lines import Line
from srearena.cluster.embedded.telemetry.logs.logql.samples import Key, Labels, collect
from srearena.cluster.embedded.telemetry.logs.logql.stages import Pipeline
from srearena.cluster.embedded.telemetry.logs.logql.syntax import (
    Binary,
    Grouping,
    LabelReplace,
    LineFilter,
    Literal,
    LogQuery,
    Metric,
    Parse,
    RangeAggregation,
    VectorAggregation,
    VectorOf,
)
from srearena.cluster.embedded.telemetry.logs.logql.vectors import Series, Vector, aggregated, combined, with_number
from srearena.cluster.embedded.telemetry.logs.store import LogStore, LogStream
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.regular_expressions import pattern

MAX_SERIES = 500
_SKIPPED = ("json", "logfmt", "pattern")
_ADDITIVE = ("count_over_time", "rate", "bytes_over_time", "bytes_rate", "sum_over_time")


@dataclass(slots=True)
class Entries:
    """The lines of one set of labels, in the requested order."""

    labels: Labels
    lines: list[tuple[int, bytes]]


@dataclass(slots=True)
class Read:
    """Lines and bytes that a query read."""

    lines: int = 0
    bytes: int = 0


def select(store: LogStore, matchers: Sequence[Matcher]) -> list[LogStream]:
    return [
        stream
        for stream in store.streams()
        if all(matcher.holds(stream.labels.get(matcher.name, "")) for matcher in matchers)
    ]


def find_lines(
    store: LogStore, query: LogQuery, start: int, end: int, limit: int, *, backward: bool, read: Read | None = None
) -> list[Entries]:
    """The first `limit` lines within [start, end), by their labels."""
    pipeline = Pipeline(query.stages)
    counted = read or Read()
    candidates = [_lines(pipeline, stream, start, end, backward, counted) for stream in select(store, query.matchers)]
    found: dict[Key, Entries] = {}
    merged = heapq.merge(*candidates, key=lambda line: -line.time if backward else line.time)
    for line in islice(merged, limit):
        labels = line.result()
        key = tuple(sorted(labels.items()))
        entries = found.get(key)
        if entries is None:
            entries = found[key] = Entries(dict(key), [])
        entries.lines.append((line.time, line.text))
    return [found[key] for key in sorted(found)]


def _lines(pipeline: Pipeline, stream: LogStream, start: int, end: int, backward: bool, read: Read) -> Iterator[Line]:
    low, high = stream.window(start, end)
    for index in range(high - 1, low - 1, -1) if backward else range(low, high):
        text = stream.lines[index]
        read.lines += 1
        read.bytes += len(text)
        line = pipeline.run(stream.times[index], text, stream.labels_of(index))
        if line is not None:
            yield line


def evaluate(store: LogStore, metric: Metric, steps: Sequence[int], read: Read | None = None) -> Vector | float:
    """A metric query at these instants: series, or a number that needs none."""
    evaluation = _Evaluation(store, np.array(steps, dtype=np.int64), read or Read())
    found = evaluation.value(metric)
    if not isinstance(found, float) and len(found) > MAX_SERIES:
        raise QueryError(
            f"maximum number of series ({MAX_SERIES}) reached for a single query; consider reducing query "
            "cardinality by adding more specific stream selectors, reducing the time range, or aggregating results "
            "with functions like sum, count or topk"
        )
    return found


def summed_early(aggregation: VectorAggregation) -> Metric:
    """What is aggregated, already grouped where that changes nothing but the work: a sum of sums.

    For a sum over everything Loki does not parse lines for labels that are not used, so lines that cannot be parsed
    cause no error there.
    """
    inner = aggregation.inner
    if aggregation.operation != "sum" or not isinstance(inner, RangeAggregation) or inner.operation not in _ADDITIVE:
        return inner
    grouping = aggregation.grouping or Grouping(without=False, labels=())
    stages = inner.range.query.stages
    is_bare = inner.range.unwrap is None and all(isinstance(stage, (LineFilter, Parse)) for stage in stages)
    if is_bare and not grouping.labels and not grouping.without:
        stages = tuple(stage for stage in stages if not (isinstance(stage, Parse) and stage.kind in _SKIPPED))
    query = replace(inner.range.query, stages=stages)
    return replace(inner, range=replace(inner.range, query=query), grouping=grouping)


class _Evaluation:
    def __init__(self, store: LogStore, steps: windows.Steps, read: Read) -> None:
        self._store = store
        self._steps = steps
        self._read = read

    def value(self, metric: Metric) -> Vector | float:
        match metric:
            case Literal():
                return metric.value
            case VectorOf():
                return [self._constant({}, metric.value)]
            case RangeAggregation():
                return self._range(metric)
            case VectorAggregation():
                return aggregated(metric, self._vector(summed_early(metric)))
            case LabelReplace():
                return self._label_replace(metric)
            case Binary():
                return self._binary(metric)

    def _constant(self, labels: Labels, value: float) -> Series:
        count = len(self._steps)
        return Series(labels, np.full(count, value), np.ones(count, dtype=np.bool_))

    def _vector(self, metric: Metric) -> Vector:
        found = self.value(metric)
        return [self._constant({}, found)] if isinstance(found, float) else found

    def _binary(self, binary: Binary) -> Vector:
        left, right = self.value(binary.left), self.value(binary.right)
        if isinstance(left, float):
            assert not isinstance(right, float)
            return with_number(binary, right, left, number_is_left=True)
        if isinstance(right, float):
            return with_number(binary, left, right, number_is_left=False)
        return combined(binary, left, right)

    def _range(self, aggregation: RangeAggregation) -> Vector:
        selected = aggregation.range
        steps = self._steps - round(selected.offset * 1e9)
        start = int(steps[0]) - round(selected.seconds * 1e9)
        streams = select(self._store, selected.query.matchers)
        for stream in streams:
            low, high = stream.window(start + 1, int(steps[-1]) + 1)
            self._read.lines += high - low
            self._read.bytes += sum(map(len, stream.lines[low:high]))
        samples = collect(aggregation, streams, start + 1, int(steps[-1]) + 1)
        if aggregation.operation == "absent_over_time":
            present = np.zeros(len(steps), dtype=np.bool_)
            for one in samples:
                present |= windows.present(one, steps, selected.seconds)
            labels = _absent_labels(selected.query.matchers)
            return [] if present.all() else [Series(labels, np.ones(len(steps)), ~present)]
        found = []
        for one in samples:
            there = windows.present(one, steps, selected.seconds)
            if there.any():
                values = windows.aggregate(aggregation.operation, one, steps, selected.seconds, aggregation.parameter)
                found.append(Series(one.labels, values, there))
        return found

    def _label_replace(self, replace: LabelReplace) -> Vector:
        expression = pattern(f"^(?:{replace.pattern})$")
        found = []
        for series in self._vector(replace.inner):
            match = expression.search(series.labels.get(replace.source, ""))
            labels = dict(series.labels)
            if match is not None:
                value = match.expand(replace.replacement)
                labels.pop(replace.target, None)
                if value:
                    labels[replace.target] = value
            found.append(Series(labels, series.values, series.present))
        return found


def _absent_labels(matchers: Sequence[Matcher]) -> Labels:
    """Return the labels that the selector determines for a missing series."""
    equal = {matcher.name: matcher.value for matcher in matchers if matcher.operator == "="}
    others = {matcher.name for matcher in matchers if matcher.operator != "="}
    return {name: value for name, value in equal.items() if name not in others and value}
