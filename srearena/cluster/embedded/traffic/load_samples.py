"""Requests of the load that are carried out exactly, so that stores hold real records.

Load is a rate: its operations are counted in bulk (`store_tally`). For operations that write, an application registers
how its load generator makes such a request. Per such operation and source of load, one request per `every` seconds is
handled as a single request is; where fewer are sent than that, all of them are. What it writes replaces
counted records one by one, so that counts stay those of the traffic, and the oldest kept records beyond a limit become
counted ones again, so that memory is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest
from srearena.cluster.embedded.traffic.data_handlers import Handler, Visit, handler_for
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.graph import Node
from srearena.cluster.embedded.traffic.graph_builder import MAX_LEVEL, calls_of
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.store_clients import StoreFailed

SampleMaker = Callable[[Random, int], HttpRequest]
"""Makes a request as the load generator does, from random numbers and the number of the user's session."""
OperationKey = tuple[str, str, str]
"""Application, program and operation."""
_BURST = 10.0
"""Requests that are made up for later, where more than one came within an interval. Chosen: a Poisson burst."""
_DEPTH = 3
"""Calls from a source of load to the operation: itself, and through two proxies."""


@dataclass(frozen=True, slots=True)
class _Sample:
    make: SampleMaker
    every: float


_SAMPLES: dict[OperationKey, _Sample] = {}


def load_sample(
    application: str, program: str, operation: str, *, every: float = 20.0
) -> Callable[[SampleMaker], SampleMaker]:
    """Register how load generators request an operation. 20 s: chosen, so that it costs a few per cent of a tick."""

    def register(make: SampleMaker) -> SampleMaker:
        _SAMPLES[application, program, operation] = _Sample(make, every)
        return make

    return register


@dataclass(slots=True, eq=False)
class _Source:
    """A kind of request of the load, with the operations on its way that write."""

    node: Node
    place: int
    """Its position among the rates of the roots."""
    every: float
    due_at: float
    owed: float = 0.0
    visits: list[Visit] = field(default_factory=list)
    """The way of such a request, known after the first one."""


class LoadSamples:
    """Carries out requests of the load."""

    def __init__(self, random: Random, handle: Callable[[Handler, HttpRequest, list[Visit]], object]) -> None:
        self._random = random
        self._handle = handle
        self._sources: list[_Source] = []
        self._sessions = 0

    def follow(self, roots: Iterable[Node], now: float) -> None:
        """Sample these kinds of requests from now on."""
        before = {source.node.key: source for source in self._sources}
        self._sources = []
        for place, node in enumerate(roots):
            intervals = [_SAMPLES[key].every for key in _operations(node, _DEPTH) if key in _SAMPLES]
            if intervals:
                kept = before.get(node.key)
                every = min(intervals)
                due, owed = (kept.due_at, kept.owed) if kept is not None else (now + every, 0.0)
                self._sources.append(_Source(node, place, every, due, owed))

    def tick(self, fluid: FluidModel, rates: Sequence[float], now: float, seconds: float) -> None:
        """Carry out the requests that are due."""
        for source in self._sources:
            source.owed = min(source.owed + float(rates[source.place]) * seconds, _BURST)
            if now >= source.due_at and source.owed >= 1:
                source.due_at = now + source.every
                source.owed -= 1
                self._carry_out(fluid, source)

    def _carry_out(self, fluid: FluidModel, source: _Source) -> None:
        """Handle one request; as often as requests of its kind fail now, it fails and writes nothing."""
        if self._random.random() < fluid.fails[source.node.index]:
            return
        if not source.visits:
            source.visits = list(_visits(source.node))
        self._sessions += 1
        for number, visit in enumerate(source.visits):
            sample = _SAMPLES.get((visit.instance.application, visit.instance.name, visit.operation))
            if sample is None:
                continue
            visits = source.visits[number:]
            handler = handler_for(visits)
            if handler is not None:
                try:
                    self._handle(handler, sample.make(self._random, self._sessions), visits)
                except StoreFailed:
                    return


def _visits(node: Node, depth: int = 0) -> Iterable[Visit]:
    """The way of a request through the graph, in the order of its calls; the first path of each."""
    for call in calls_of(node.plan) if depth < MAX_LEVEL else ():
        callee = next((link.callee for link in call.links if link.callee is not None), None)
        if callee is None or not isinstance(callee.server, Instance):
            continue
        for _ in range(max(1, int(call.times)) if depth == 0 else 1):
            yield Visit(callee.server, callee.name)
            yield from _visits(callee, depth + 1)


def _operations(node: Node, depth: int) -> Iterable[OperationKey]:
    """The operations that a request runs, near its source."""
    for call in calls_of(node.plan) if depth else ():
        for link in call.links[:1]:
            callee = link.callee
            if callee is not None and isinstance(callee.server, Instance):
                yield callee.server.application, callee.server.name, callee.name
                yield from _operations(callee, depth - 1)
