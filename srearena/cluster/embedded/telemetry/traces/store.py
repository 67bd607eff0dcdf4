"""The span store.

A walk adds its whole trace at once, by reference. What queries need about a trace (its services, start and duration) is
computed at the first query. The store is bounded in spans and in age: the oldest traces are dropped first and counted.
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

    def traces(self, start: float = ..., end: float = ...) -> Iterator[Trace]: ...

    def all_spans(self) -> Iterator[Span]: ...


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

    def add(self, trace: Sequence[Span]) -> None:
        """Add spans of one trace; later ones of the same trace are appended."""
        if not trace:
            return
        first = trace[0]
        earlier = self._spans_by_trace.get(first.trace_id)
        if earlier is None:
            self._spans_by_trace[first.trace_id] = tuple(trace)
        else:
            self._spans_by_trace[first.trace_id] = (*earlier, *trace)
            self._analysed.pop(first.trace_id, None)
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
            self._analysed.pop(trace_id, None)
            self.spans -= len(spans)
            self.dropped_traces += 1
            self.dropped_spans += len(spans)

    def __len__(self) -> int:
        return len(self._spans_by_trace)

    def get(self, trace_id: int) -> Trace | None:
        spans = self._spans_by_trace.get(trace_id)
        return None if spans is None else self._analyse(trace_id, spans)

    def traces(self, start: float = float("-inf"), end: float = float("inf")) -> Iterator[Trace]:
        """Yield the traces that began within the window, last added first."""
        for trace_id in reversed(self._spans_by_trace):
            trace = self._analyse(trace_id, self._spans_by_trace[trace_id])
            if start <= trace.start <= end:
                yield trace

    def all_spans(self) -> Iterator[Span]:
        for spans in self._spans_by_trace.values():
            yield from spans

    def _analyse(self, trace_id: int, spans: tuple[Span, ...]) -> Trace:
        trace = self._analysed.get(trace_id)
        if trace is None:
            trace = self._analysed[trace_id] = analysed(trace_id, spans)
        return trace
