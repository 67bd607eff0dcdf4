"""The span store.

A walk adds its whole trace at once, by reference. What queries need about a trace (its services, start and duration) is
computed at the first query. Traces are in the order of their last addition, so that a query for recent ones need not
look at all. The store is bounded in spans and in age: the oldest traces are dropped first and counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from srearena.cluster.embedded.traffic.spans import Span

MAX_SPANS = 100_000
MAX_AGE = 6 * 3600.0


@dataclass(slots=True)
class Trace:
    """The spans of one request, with what queries need most."""

    trace_id: int
    spans: tuple[Span, ...]
    start: float
    duration: float
    services: frozenset[str]


def analysed(trace_id: int, spans: tuple[Span, ...]) -> Trace:
    start = min(span.start for span in spans)
    return Trace(
        trace_id,
        spans,
        start,
        max(span.start + span.duration for span in spans) - start,
        frozenset([span.resource.service for span in spans]),
    )


class SpanSource(Protocol):
    """What queries read: the store, or a part of it."""

    def get(self, trace_id: int) -> Trace | None: ...

    def latest_first(self, since: float = ...) -> Iterator[tuple[float, Trace]]:
        """Yield traces, with an instant after which no span of this trace and of all further ones began.

        Traces without a span that began at `since` or later may be left out.
        """
        ...

    def all_spans(self) -> Iterator[Span]: ...


def began_within(source: SpanSource, start: float, end: float) -> Iterator[Trace]:
    """Yield the traces that began within the window, last added first."""
    return (trace for _, trace in source.latest_first(start) if start <= trace.start <= end)


class SpanStore:
    """Stores at most `max_spans` spans, none older than `max_age` seconds before the youngest."""

    def __init__(self, max_spans: int = MAX_SPANS, max_age: float = MAX_AGE) -> None:
        self.max_spans = max_spans
        self.max_age = max_age
        self.spans = 0
        """Number of stored spans."""
        self.dropped_traces = 0
        self.dropped_spans = 0
        self._spans_by_trace: dict[int, tuple[Span, ...]] = {}
        self._analysed: dict[int, Trace] = {}
        self._latest_start = float("-inf")
        self._begun_by: dict[int, float] = {}
        """By trace: the latest start of all spans that were stored until its last addition."""

    def add(self, trace: Sequence[Span]) -> None:
        """Add spans of one trace; later ones of the same trace are appended."""
        if not trace:
            return
        first = trace[0]
        earlier = self._spans_by_trace.pop(first.trace_id, None)
        if earlier is None:
            self._spans_by_trace[first.trace_id] = tuple(trace)
        else:
            self._spans_by_trace[first.trace_id] = (*earlier, *trace)
            self._analysed.pop(first.trace_id, None)
        self._latest_start = max(self._latest_start, *[span.start for span in trace])
        self._begun_by[first.trace_id] = self._latest_start
        self.spans += len(trace)
        if self.spans > self.max_spans or not len(self._spans_by_trace) % 64:
            self._evict(first.start)

    def _evict(self, now: float) -> None:
        oldest = now - self.max_age
        while self._spans_by_trace:
            trace_id = next(iter(self._spans_by_trace))
            spans = self._spans_by_trace[trace_id]
            if self.spans <= self.max_spans and spans[0].start >= oldest:
                return
            del self._spans_by_trace[trace_id]
            del self._begun_by[trace_id]
            self._analysed.pop(trace_id, None)
            self.spans -= len(spans)
            self.dropped_traces += 1
            self.dropped_spans += len(spans)

    def __len__(self) -> int:
        return len(self._spans_by_trace)

    def get(self, trace_id: int) -> Trace | None:
        spans = self._spans_by_trace.get(trace_id)
        return None if spans is None else self._analyse(trace_id, spans)

    def latest_first(self, since: float = float("-inf")) -> Iterator[tuple[float, Trace]]:
        for trace_id in reversed(self._spans_by_trace):
            begun_by = self._begun_by[trace_id]
            if begun_by < since:
                return
            yield begun_by, self._analyse(trace_id, self._spans_by_trace[trace_id])

    def all_spans(self) -> Iterator[Span]:
        for spans in self._spans_by_trace.values():
            yield from spans

    def _analyse(self, trace_id: int, spans: tuple[Span, ...]) -> Trace:
        trace = self._analysed.get(trace_id)
        if trace is None:
            trace = self._analysed[trace_id] = analysed(trace_id, spans)
        return trace
