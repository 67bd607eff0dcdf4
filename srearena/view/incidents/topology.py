"""Which service calls which, learned from traces: client spans and the server spans beneath them.

What was learned stays: a dependency that has stopped answering keeps its place in the graph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

SERVICE, STORE, QUEUE, EXTERNAL = "service", "store", "queue", "external"
_ADDRESS = re.compile(r"[\d.]+|[0-9a-f:]+")
_MOST_NODES = 400


@dataclass(slots=True, frozen=True)
class TracedSpan:
    """A span as far as the topology needs it."""

    id: str
    parent: str
    service: str
    name: str
    kind: str
    """`client`, `server`, `producer`, `consumer` or `internal`."""
    tags: dict[str, str]


class Topology:
    """Callees by calling service and operation."""

    def __init__(self) -> None:
        self.callees: dict[tuple[str, str], tuple[str, str]] = {}
        """Name and kind of what a service calls with an operation."""
        self.calls: Counter[tuple[str, str]] = Counter()
        """Sampled calls by caller and callee, for services whose client spans have no metrics."""
        self.kinds: dict[str, str] = {}

    def learn(self, spans: Iterable[TracedSpan]) -> None:
        """Add the spans of one trace."""
        by_id = {span.id: span for span in spans}
        answered: set[str] = set()
        for span in by_id.values():
            if len(self.kinds) < _MOST_NODES:
                self.kinds[span.service] = SERVICE
            parent = by_id.get(span.parent)
            if parent is None or parent.service == span.service:
                continue
            answered.add(parent.id)
            self.calls[parent.service, span.service] += 1
            if parent.kind in ("client", "producer"):
                self.callees[parent.service, parent.name] = (span.service, SERVICE)
        for span in by_id.values():
            if span.kind in ("client", "producer") and span.id not in answered:
                name, kind = _peer(span)
                if name and name != span.service and len(self.kinds) < _MOST_NODES:
                    self.callees.setdefault((span.service, span.name), (name, self.kinds.get(name, kind)))
                    self.kinds.setdefault(name, kind)

    def share_of(self, caller: str, callee: str) -> float:
        """The share of the callee's sampled calls that came from the caller."""
        total = sum(count for (_, to), count in self.calls.items() if to == callee)
        return self.calls[caller, callee] / total if total else 0.0


def _peer(span: TracedSpan) -> tuple[str, str]:
    """Name and kind of the other side of a client span that no server span answers."""
    tags = span.tags
    system, queue = tags.get("db.system", "") or tags.get("db.system.name", ""), tags.get("messaging.system", "")
    address = next((tags[key] for key in ("peer.service", "server.address", "net.peer.name") if tags.get(key)), "")
    if _ADDRESS.fullmatch(address):
        address = ""
    address = address.split(".")[0]
    if queue:
        return address or queue, QUEUE
    if system:
        return address or system, STORE
    return address, EXTERNAL
