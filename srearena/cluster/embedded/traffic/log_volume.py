"""Log lines of requests that are not walked, so that a log has as many lines as its program has requests.

One request per second and source of load is walked and writes its lines hop by hop. For the others, the fluid model
says how many requests each program serves and fails in a tick, and this module writes their lines at random instants of
it: by a Poisson process with that rate, less the lines of walks. What an error says is what walks met. Lines of one
kind, of one program, are at most `MAX_PER_SECOND`. Lines that name a trace are those of walks alone, so that the trace
exists.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random

import numpy as np

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.traffic.durations import sample_duration
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.graph import Call, CallKey, Node, NodeKey
from srearena.cluster.embedded.traffic.log_lines import LOCAL, LogLine, RequestWords
from srearena.cluster.embedded.traffic.outcomes import ERROR, OK
from srearena.cluster.embedded.traffic.servers import Instance, Server
from srearena.cluster.embedded.traffic.walks import Walker

MAX_PER_SECOND = 20
"""Lines of one kind, of one program. Chosen: a flood is seen as one, and costs less than the requests behind it."""
_ERRORS = 4
"""Recent errors of one kind to choose from. Chosen: callers see a few different ones at a time."""
_TRIES = 3
"""Walks a second that look for the error of requests that fail. Chosen: errors of one in a hundred are found soon."""
_SMALLEST = 1e-12

_Key = tuple[str, NodeKey | CallKey]


@dataclass(slots=True, eq=False)
class _Kind:
    """A kind of line: its text, and what it is about."""

    key: _Key
    origin: Node | Call
    instance: Instance
    text: str
    fails: bool
    """Whether it tells an error."""
    missing: float = 0.0
    """Lines that requests have given rise to and that are not written."""
    threshold: float = 1.0
    """The next line is due when so many are missing: exponentially distributed, which makes a Poisson process."""
    errors: deque[str] = field(default_factory=lambda: deque(maxlen=_ERRORS))

    @property
    def node(self) -> Node:
        return self.origin.caller if isinstance(self.origin, Call) else self.origin


class LogVolume:
    """Writes the lines of one cluster's requests beside those of walks."""

    def __init__(self, clock: Clock, random: Random) -> None:
        self._clock = clock
        self._random = random
        self._kinds: list[_Kind] = []
        self._by_line: dict[tuple[Node | Call, str, bool], _Kind] = {}
        self._clients: dict[Node, list[str]] = {}
        self._reach: dict[Server, np.ndarray] = {}
        """By source of load: the kinds of lines that its requests can give rise to."""
        self._rates = np.zeros(0)
        self._any = False

    def follow(self, fluid: FluidModel) -> None:
        """Write lines for this graph from now on; what is missing of the same kinds stays."""
        before = {kind.key: kind for kind in self._kinds}
        self._kinds = list(_kinds(fluid))
        for kind in self._kinds:
            known = before.get(kind.key)
            if known is not None:
                kind.missing, kind.threshold, kind.errors = known.missing, known.threshold, known.errors
            else:
                kind.threshold = self._random.expovariate(1.0)
        self._by_line = {(kind.origin, kind.text, kind.fails): kind for kind in self._kinds}
        self._clients = _clients(fluid, self._kinds)
        self._prepare(fluid)
        self._rates = np.zeros(len(self._kinds))
        self._any = False

    def _prepare(self, fluid: FluidModel) -> None:
        kinds = self._kinds
        self._calls = np.array([index for index, kind in enumerate(kinds) if isinstance(kind.origin, Call)], np.intp)
        self._call_indexes = np.array([kinds[index].origin.index for index in self._calls], np.intp)
        self._nodes = np.array([index for index, kind in enumerate(kinds) if isinstance(kind.origin, Node)], np.intp)
        self._node_indexes = np.array([kinds[index].origin.index for index in self._nodes], np.intp)
        weights = [_weights(kinds[index]) for index in self._nodes]
        self._if_served, self._if_failed = np.array(weights).reshape(-1, 2).T
        self._reach = _reach(fluid, [kind.node.index for kind in kinds])

    def observe(self, fluid: FluidModel) -> None:
        """Take over the rates of an interval."""
        if not self._kinds:
            return
        nodes, calls = self._node_indexes, self._call_indexes
        ended = (fluid.completed + fluid.refused + fluid.abandoned)[nodes]
        served = fluid.node_outcomes.share[OK, nodes]
        self._rates[self._nodes] = ended * (served * self._if_served + (1 - served) * self._if_failed)
        if len(calls):
            # An attempt that fails is repeated; the line comes after the last one.
            fails = np.clip(1 - fluid.call_outcomes.share[OK, calls], 0.0, 1 - 1e-9)
            last = fails ** fluid.attempts[calls]
            self._rates[self._calls] = fluid.call_rates[calls] * last * (1 - fails) / np.maximum(1 - last, _SMALLEST)
        self._any = bool((self._rates > _SMALLEST).any())

    def count(self, lines: Iterable[LogLine]) -> None:
        """Take note of the lines of a walk."""
        for line in lines:
            error = line.words.error
            kind = self._by_line.get((line.origin, line.text, bool(error)))
            if kind is not None:
                kind.missing -= 1
                if error:
                    kind.errors.append(error)

    def tick(self, fluid: FluidModel, rates: Mapping[Server, float], walked: float, seconds: float) -> None:
        """Write the lines of a tick; `rates` of the sources, of which `walked` requests a second are walked."""
        if not self._any:
            return
        reached = [self._reach[source] for source, rate in rates.items() if rate > walked and source in self._reach]
        if not reached:
            return  # every request is walked
        active = np.logical_or.reduce(reached)
        for index in np.flatnonzero(active & (self._rates > _SMALLEST)):
            kind = self._kinds[index]
            kind.missing += float(self._rates[index]) * seconds
            if kind.missing >= kind.threshold:
                self._write(fluid, kind, seconds)

    def _write(self, fluid: FluidModel, kind: _Kind, seconds: float) -> None:
        if kind.fails and not kind.errors:
            self._look_for_error(fluid, kind)
        if (kind.fails and not kind.errors) or not kind.instance.alive:
            kind.missing = min(kind.missing, MAX_PER_SECOND)
            return
        number = 0
        while kind.missing >= kind.threshold and number < MAX_PER_SECOND * seconds:
            kind.missing -= kind.threshold
            kind.threshold = self._random.expovariate(1.0)
            number += 1
            line = self._line(fluid, kind, self._clock.now + self._random.random() * seconds)
            self._clock.at(line.time, line.write)
        if kind.missing >= kind.threshold:
            kind.missing = 0.0  # beyond the limit

    def _line(self, fluid: FluidModel, kind: _Kind, time: float) -> LogLine:
        random, node = self._random, kind.node
        outcomes, index = fluid.node_outcomes, node.index
        outcome = ERROR if kind.fails else OK
        duration = sample_duration(
            float(outcomes.mean[outcome, index]), float(outcomes.variance[outcome, index]), random.random()
        )
        clients = self._clients.get(node)
        client = random.choice(clients) if clients else LOCAL
        error = random.choice(kind.errors) if kind.fails else ""
        words = RequestWords(node, random, error, duration, client)
        return LogLine(time, kind.instance, kind.text, words, kind.origin)

    def _look_for_error(self, fluid: FluidModel, kind: _Kind) -> None:
        """Walk requests that leave no trace until one fails."""
        walker = Walker(fluid, self._random)
        for _ in range(_TRIES):
            walker.walk(kind.node, self._clock.now)
            for line in walker.lines:
                if line.origin is kind.origin and line.text == kind.text and line.words.error:
                    kind.errors.append(line.words.error)
                    return


def _kinds(fluid: FluidModel) -> Iterable[_Kind]:
    for node in fluid.graph.nodes:
        server, operation = node.server, node.operation
        if not isinstance(server, Instance) or operation is None:
            continue
        failed = operation.failure_log or operation.log
        if _names_no_trace(operation.log):
            yield _Kind(("served", node.key), node, server, operation.log, fails=False)
        if _names_no_trace(failed):
            yield _Kind(("failed", node.key), node, server, failed, fails=True)
        for active in node.effects:
            if _names_no_trace(active.effect.log):
                yield _Kind((active.effect.log, node.key), node, server, active.effect.log, fails=False)
    for call in fluid.graph.calls:
        if _names_no_trace(call.step.log):
            yield _Kind(("call", call.key), call, call.target.instance, call.step.log, fails=True)


def _names_no_trace(text: str) -> bool:
    return bool(text) and "{trace_id}" not in text


def _weights(kind: _Kind) -> tuple[float, float]:
    """The lines that a request gives rise to when it is served, and when it fails."""
    node = kind.node
    assert node.operation is not None
    if kind.fails:
        return 0.0, 1.0
    for active in node.effects:
        if active.effect.log == kind.text:
            return active.effect.share, active.effect.share
    return node.operation.log_share, 0.0


def _reach(fluid: FluidModel, nodes: list[int]) -> dict[Server, np.ndarray]:
    """By source of load, which of these nodes its requests reach. Calls are in the order of levels."""
    sources = list(dict.fromkeys(node.server for node in fluid.graph.roots))
    reached = np.zeros((len(sources), fluid.node_count), dtype=bool)
    for root in fluid.graph.roots:
        reached[sources.index(root.server), root.index] = True
    for call in fluid.graph.calls:
        for link in call.links:
            if link.callee is not None:
                reached[:, link.callee.index] |= reached[:, call.caller.index]
    return {source: reached[place, nodes] for place, source in enumerate(sources)}


def _clients(fluid: FluidModel, kinds: list[_Kind]) -> dict[Node, list[str]]:
    """The addresses of the programs that call a node, where its lines name them."""
    named = {kind.node for kind in kinds if "{client}" in kind.text}
    found: dict[Node, list[str]] = {}
    for call in fluid.graph.calls if named else ():
        for link in call.links:
            if link.callee in named:
                found.setdefault(link.callee, []).append(call.target.instance.host.address)
    return found
