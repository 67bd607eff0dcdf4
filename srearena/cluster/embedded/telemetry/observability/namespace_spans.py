"""The spans that a Jaeger inside the cluster holds: a view of the cluster's span store.

Its storage is memory: it begins empty with the process. A trace belongs to the namespace where one of its spans does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from srearena.cluster.embedded.telemetry.observability.receivers import NAMESPACE
from srearena.cluster.embedded.telemetry.traces.store import SpanStore, Trace, analysed
from srearena.cluster.embedded.traffic.spans import Resource, Span


class NamespaceSpans:
    def __init__(self, store: SpanStore, namespace: str, since: float, pushed: Mapping[int, str]) -> None:
        self._store = store
        self._namespace = namespace
        self._since = since
        self._pushed = pushed

    def get(self, trace_id: int) -> Trace | None:
        trace = self._store.get(trace_id)
        return None if trace is None else self._own(trace)

    def latest_first(self, since: float = float("-inf")) -> Iterator[tuple[float, Trace]]:
        for begun_by, trace in self._store.latest_first(since):
            own = self._own(trace)
            if own is not None:
                yield begun_by, own

    def all_spans(self) -> Iterator[Span]:
        for _, trace in self.latest_first():
            yield from trace.spans

    def _own(self, trace: Trace) -> Trace | None:
        belongs = self._pushed.get(trace.trace_id) == self._namespace
        if not belongs and not any(self._is_local(span.resource) for span in trace.spans):
            return None
        if trace.start >= self._since:
            return trace
        received = tuple(span for span in trace.spans if span.end >= self._since)
        return analysed(trace.trace_id, received) if received else None

    def _is_local(self, resource: Resource) -> bool:
        return any(key == NAMESPACE and value == self._namespace for key, value in resource.attributes)
