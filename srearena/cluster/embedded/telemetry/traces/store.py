"""The store that keeps the youngest spans.

Whoever walks a request hands over its whole trace at once; adding keeps references and nothing else. What a query
wants to know about a trace (which services took part, when it began, how long it took) is worked out when the first
query asks. The store is bounded in spans and in age: the oldest traces go first, and their number is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from srearena.cluster.embedded.traffic.spans import Span

MAX_SPANS = 100_000
MAX_AGE = 6 * 3600.0


@dataclass(slots=True)
class Trace:
    """The spans of one request, with what queries ask about them most."""

    trace_id: int
    spans: tuple[Span, ...]
    start: float
    duration: float
    services: frozenset[str]


class SpanStore:
    """Keeps at most `max_spans` spans, none older than `max_age` seconds before the youngest."""

    def __init__(self, max_spans: int = MAX_SPANS, max_age: float = MAX_AGE) -> None:
        self.max_spans = max_spans
        self.max_age = max_age
        self.spans = 0
        """How many are kept."""
        self.dropped_traces = 0
        self.dropped_spans = 0
        self._kept: dict[int, tuple[Span, ...]] = {}
        self._studied: dict[int, Trace] = {}

    def add(self, trace: Sequence[Span]) -> None:
        """Take in spans of one trace; those that come later for the same trace join it."""
        if not trace:
            return
        first = trace[0]
        earlier = self._kept.get(first.trace_id)
        if earlier is None:
            self._kept[first.trace_id] = tuple(trace)
        else:
            self._kept[first.trace_id] = (*earlier, *trace)
            self._studied.pop(first.trace_id, None)
        self.spans += len(trace)
        if self.spans > self.max_spans or not len(self._kept) % 64:
            self._make_room(first.start)

    def _make_room(self, now: float) -> None:
        oldest = now - self.max_age
        while self._kept:
            trace_id = next(iter(self._kept))
            spans = self._kept[trace_id]
            if self.spans <= self.max_spans and spans[0].start >= oldest:
                return
            del self._kept[trace_id]
            self._studied.pop(trace_id, None)
            self.spans -= len(spans)
            self.dropped_traces += 1
            self.dropped_spans += len(spans)

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, trace_id: int) -> Trace | None:
        spans = self._kept.get(trace_id)
        return None if spans is None else self._study(trace_id, spans)

    def traces(self, start: float = float("-inf"), end: float = float("inf")) -> Iterator[Trace]:
        """The traces that began within the window, youngest arrival first."""
        for trace_id in reversed(self._kept):
            trace = self._study(trace_id, self._kept[trace_id])
            if start <= trace.start <= end:
                yield trace

    def all_spans(self) -> Iterator[Span]:
        for spans in self._kept.values():
            yield from spans

    def _study(self, trace_id: int, spans: tuple[Span, ...]) -> Trace:
        known = self._studied.get(trace_id)
        if known is None:
            start = min(span.start for span in spans)
            known = self._studied[trace_id] = Trace(
                trace_id,
                spans,
                start,
                max(span.start + span.duration for span in spans) - start,
                frozenset([span.resource.service for span in spans]),
            )
        return known
