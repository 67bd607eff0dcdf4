"""Which program of a namespace received which spans: the counters behind their own metrics.

A process exports its spans over one connection to the Service of the collectors, so all of them reach one collector
pod; another one is selected when the set of collectors changes. Backends (Jaeger) receive every span.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from srearena.cluster.embedded.machine.networking.interface_counters import Carried, Exchange
from srearena.cluster.embedded.traffic.spans import Resource, Span

NAMESPACE = "k8s.namespace.name"
_POD = "k8s.pod.name"
_MOST_ROUTES = 1000
"""Chosen: far above the processes of an application; bounds what is kept about processes that have ended."""
_SPAN = Exchange(430.0, 0.5, 22.0, 0.3)
"""A span on the interface of its receiver, as a share of a batch with its acknowledgements. Chosen: in OTLP's protocol
buffers, resources once for each batch."""


@dataclass(slots=True, eq=False)
class SpanReceiver:
    """One run of a program that receives spans."""

    namespace: str
    since: float
    collects: bool
    carried: Carried
    """The counters of its interface."""
    """A collector, which forwards what it receives; otherwise a backend."""
    accepted: Counter[str] = field(default_factory=Counter)
    """Spans by service."""
    requests: Counter[str] = field(default_factory=Counter)
    """Requests over HTTP with content, by signal: traces, metrics, logs."""
    records: Counter[str] = field(default_factory=Counter)
    """Data points and log records that came over HTTP, by signal."""
    forwarded: int = 0
    failed: int = 0
    """Spans for which no backend ran."""


class SpanReceivers:
    def __init__(self) -> None:
        self._receivers: list[SpanReceiver] = []
        self._routes: dict[Resource, tuple[SpanReceiver, ...]] = {}
        self.pushed_traces: dict[int, str] = {}
        """Namespaces of the traces that clients outside the application sent over HTTP."""
        self.pushed_logs: dict[str, list[dict[str, Any]]] = {}
        """Log records that came over HTTP, as documents, by namespace."""

    def add(self, receiver: SpanReceiver) -> None:
        self._receivers.append(receiver)
        self._routes.clear()

    def remove(self, receiver: SpanReceiver) -> None:
        if receiver in self._receivers:
            self._receivers.remove(receiver)
            self._routes.clear()

    def report(self, spans: Sequence[Span]) -> None:
        """Count spans that processes of the applications export."""
        if not self._receivers:
            return
        for resource, number in Counter(span.resource for span in spans).items():
            route = self._routes.get(resource)
            if route is None:
                route = self._route(resource)
            received = _SPAN.times(number)
            if route and resource.carried is not None:
                resource.carried.add_exchange(received.reversed)
            for receiver in route:
                receiver.accepted[resource.service] += number
                receiver.carried.add_exchange(received)
                if not receiver.collects:
                    continue
                if len(route) > 1:
                    receiver.forwarded += number
                    receiver.carried.add_exchange(received.reversed)
                else:
                    receiver.failed += number

    def backends(self, namespace: str) -> list[SpanReceiver]:
        return [one for one in self._receivers if one.namespace == namespace and not one.collects]

    def _route(self, resource: Resource) -> tuple[SpanReceiver, ...]:
        attributes = dict(resource.attributes)
        namespace = str(attributes.get(NAMESPACE, ""))
        collectors = [one for one in self._receivers if one.namespace == namespace and one.collects]
        chosen = [collectors[crc32(str(attributes.get(_POD, "")).encode()) % len(collectors)]] if collectors else []
        if len(self._routes) >= _MOST_ROUTES:
            self._routes.clear()
        route = self._routes[resource] = (*chosen, *self.backends(namespace))
        return route
