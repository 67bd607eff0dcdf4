"""Samples from lines: one for every line that passes the pipeline, in one series for each set of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from srearena.cluster.embedded.telemetry.logs.levels import LEVEL
from srearena.cluster.embedded.telemetry.logs.logql.amounts import go_duration, number, size
from srearena.cluster.embedded.telemetry.logs.logql.arithmetic import Array
from srearena.cluster.embedded.telemetry.logs.logql.errors import PipelineProblem
from srearena.cluster.embedded.telemetry.logs.logql.label_filters import label_step
from srearena.cluster.embedded.telemetry.logs.logql.lines import ERROR, ERROR_DETAILS, Line
from srearena.cluster.embedded.telemetry.logs.logql.stages import Pipeline
from srearena.cluster.embedded.telemetry.logs.logql.syntax import Grouping, LineFilter, RangeAggregation, Unwrap
from srearena.cluster.embedded.telemetry.logs.store import LogStream, label_text

Labels = Mapping[str, str]
Key = tuple[tuple[str, str], ...]

_FAILED = "SampleExtractionErr"
_READERS: Mapping[str, Callable[[str], float | None]] = {
    "": number,
    "duration": go_duration,
    "duration_seconds": go_duration,
    "bytes": size,
}


@dataclass(slots=True)
class Samples:
    """One series before aggregation: instants in nanoseconds, in order, and values."""

    labels: Labels
    times: np.ndarray[tuple[int], np.dtype[np.int64]]
    values: Array


class _Gathered:
    __slots__ = ("labels", "times", "values")

    def __init__(self, labels: Labels) -> None:
        self.labels = labels
        self.times: list[int] = []
        self.values: list[float] = []


def collect(aggregation: RangeAggregation, streams: Iterable[LogStream], start: int, end: int) -> list[Samples]:
    """The samples of a range aggregation from lines within [start, end)."""
    pipeline = Pipeline(aggregation.range.query.stages)
    read = _reader(aggregation)
    gathered: dict[Key, _Gathered] = {}
    with_level = _uses_levels(aggregation)
    for stream in streams:
        low, high = stream.window(start, end)
        for index in range(low, high):
            base = stream.labels_of(index) if with_level else stream.labels
            line = pipeline.run(stream.times[index], stream.lines[index], base)
            if line is None:
                continue
            value = read(line)
            if value is None:
                continue
            if line.labels.get(ERROR):
                raise _problem(line)
            labels = grouped(line.result(), aggregation.grouping)
            key = tuple(sorted(labels.items()))
            series = gathered.get(key)
            if series is None:
                series = gathered[key] = _Gathered(dict(key))
            series.times.append(line.time)
            series.values.append(value)
    return [_ordered(series) for series in gathered.values()]


def _uses_levels(aggregation: RangeAggregation) -> bool:
    """Whether the levels of lines, which cost time to detect, can be in the result or decide about it."""
    grouping, selected = aggregation.grouping, aggregation.range
    return (
        grouping is None
        or grouping.without
        or LEVEL in grouping.labels
        or selected.unwrap is not None
        or not all(isinstance(stage, LineFilter) for stage in selected.query.stages)
    )


def _ordered(series: _Gathered) -> Samples:
    times = np.array(series.times, dtype=np.int64)
    values = np.array(series.values, dtype=np.float64)
    if len(times) > 1 and (np.diff(times) < 0).any():
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
    return Samples(series.labels, times, values)


def _problem(line: Line) -> PipelineProblem:
    return PipelineProblem(line.labels[ERROR], label_text(line.result()))


def grouped(labels: Labels, grouping: Grouping | None) -> Labels:
    if grouping is None:
        return labels
    if grouping.without:
        return {name: value for name, value in labels.items() if name not in grouping.labels}
    return {name: labels[name] for name in grouping.labels if name in labels}


def _reader(aggregation: RangeAggregation) -> Callable[[Line], float | None]:
    unwrap = aggregation.range.unwrap
    if unwrap is not None:
        return _unwrapper(unwrap)
    if aggregation.operation.startswith("bytes_"):
        return lambda line: float(len(line.text))
    return lambda line: 1.0


def _unwrapper(unwrap: Unwrap) -> Callable[[Line], float | None]:
    read = _READERS[unwrap.conversion]
    filters = [label_step(one) for one in unwrap.filters]

    def extract(line: Line) -> float | None:
        text = line.labels.get(unwrap.label)
        if not text:
            # Without the label there is nothing to count.
            return None
        value = read(text)
        if value is None:
            line.fail(_FAILED, f'strconv.ParseFloat: parsing "{text}": invalid syntax')
            value = 0.0
        for passes in filters:
            if not passes(line):
                return None
        if not line.labels.get(ERROR):
            line.remove(unwrap.label)
            line.remove(ERROR)
            line.remove(ERROR_DETAILS)
        return value

    return extract
