"""Spans as the traffic engine creates them; `telemetry` stores and serves them.

Attributes of the process that recorded a span are in a `Resource` that all its spans share.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from srearena.cluster.embedded.machine.networking.interface_counters import Carried

Value = str | bool | int | float
Attributes = tuple[tuple[str, Value], ...]
Kind = Literal["internal", "server", "client", "producer", "consumer"]
Status = Literal["unset", "ok", "error"]


@dataclass(slots=True, frozen=True, eq=False)
class Resource:
    """The process that records spans: one for each run of a container, shared by reference."""

    service: str
    attributes: Attributes = ()
    """Beside `service.name`: `k8s.namespace.name`, `k8s.pod.name`, `telemetry.sdk.language`..."""
    carried: Carried | None = field(default=None, compare=False, repr=False)
    """The counters of the interface over which it exports its spans."""


@dataclass(slots=True)
class SpanEvent:
    """An event at one instant of a span; an exception is an event named `exception`."""

    time: float
    name: str
    attributes: Attributes = ()


def exception(time: float, type_: str, message: str, stacktrace: str = "") -> SpanEvent:
    """Return the event that the semantic conventions define for an exception."""
    attributes: Attributes = (("exception.type", type_), ("exception.message", message))
    if stacktrace:
        attributes = (*attributes, ("exception.stacktrace", stacktrace))
    return SpanEvent(time, "exception", attributes)


@dataclass(slots=True)
class Span:
    trace_id: int
    """128 bits."""
    span_id: int
    """64 bits."""
    parent_id: int
    """0 for a root span."""
    resource: Resource
    name: str
    kind: Kind
    start: float
    duration: float
    status: Status = "unset"
    message: str = ""
    """Description of an error status."""
    attributes: Attributes = ()
    events: tuple[SpanEvent, ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    """(trace, span) that caused this one without waiting for it: the producer of a consumed message."""
    scope: str = ""
    """The instrumentation library, such as `go.opentelemetry.io/contrib/instrumentation/...`."""

    @property
    def end(self) -> float:
        return self.start + self.duration

    @property
    def service(self) -> str:
        return self.resource.service
