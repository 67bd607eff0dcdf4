"""Reading an application's calls, metrics and traces side by side, for laws that hold between them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from srearena.cluster.embedded.traffic.counters import SpanKey
from srearena.cluster.embedded.traffic.engine import Traffic
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.span_names import node_span
from srearena.cluster.embedded.traffic.spans import Span

ROUNDING = 1e-6
ServiceSpan = tuple[str, str]


@dataclass
class CallLedger:
    """Follows every interval of a cluster's traffic, and what became of the calls in it."""

    sent: dict[ServiceSpan, float] = field(default_factory=lambda: defaultdict(float))
    """Calls that arrived at an operation, over all intervals."""
    steps: int = 0
    refused: float = 0.0
    abandoned: float = 0.0
    most_waiting: float = 0.0
    lost: dict[ServiceSpan, float] = field(default_factory=lambda: defaultdict(float))
    """Requests that waited in processes that ended."""
    _previous: FluidModel | None = None

    def watch(self, step: Callable[..., None]) -> Callable[..., None]:
        def watched(fluid: FluidModel, seconds: float, roots: Any) -> None:
            self._check_queues_kept(fluid)
            waiting, call_waiting, unsent = fluid.waiting.copy(), fluid.call_waiting.copy(), fluid.unsent.copy()
            step(fluid, seconds, roots)
            self._check(fluid, seconds, roots, waiting, call_waiting, unsent)

        return watched

    def _check_queues_kept(self, fluid: FluidModel) -> None:
        """Queues outlive changes of the graph; only the end of a process ends its queue."""
        previous, self._previous = self._previous, fluid
        if previous is None or previous is fluid:
            return
        kept = {node.key: float(fluid.waiting[node.index]) for node in fluid.graph.nodes}
        for node, before in zip(previous.graph.nodes, previous.waiting.tolist(), strict=True):
            if node.key in kept:
                assert kept[node.key] == before
            elif before > ROUNDING and isinstance(node.server, Instance):
                assert not node.server.alive, f"{node.server.name} lost {before} requests of {node.name}"
                name = server_span(node)
                if name is not None:
                    self.lost[name] += before

    def _check(
        self, fluid: FluidModel, seconds: float, roots: Any, waiting: Any, call_waiting: Any, unsent: Any
    ) -> None:
        begun = np.zeros(fluid.node_count + 1)
        for node, rate in zip(fluid.graph.roots, roots, strict=True):
            begun[node.index] += rate
        np.add.at(begun, fluid.callees, fluid.flows)
        arrived = begun[:-1] * seconds
        ended = (fluid.completed + fluid.refused + fluid.abandoned) * seconds
        assert np.allclose(waiting + arrived, ended + fluid.waiting, rtol=1e-9, atol=ROUNDING)
        assert min(fluid.waiting.min(initial=0), fluid.completed.min(initial=0), fluid.refused.min(initial=0)) >= 0
        # A client's calls: sent on a link, without a connection in time, or still waiting for one.
        on_links = np.bincount(fluid.link_calls, fluid.flows, minlength=fluid.call_count)
        linked = np.bincount(fluid.link_calls, fluid.weights, minlength=fluid.call_count) > 0
        assert np.allclose(on_links[linked], fluid.sent[linked], rtol=1e-9)
        offered = call_waiting + unsent + fluid.call_rates * seconds
        out = fluid.call_waiting + fluid.unsent + (fluid.sent + fluid.call_refused) * seconds
        assert np.allclose(offered, out, rtol=1e-9, atol=ROUNDING)
        for node in fluid.graph.nodes:
            name = server_span(node)
            if name is not None:
                self.sent[name] += float(arrived[node.index])
        self.steps += 1
        self.refused += float(fluid.refused.sum()) * seconds
        self.abandoned += float(fluid.abandoned.sum()) * seconds
        self.most_waiting = max(self.most_waiting, float(fluid.waiting.sum()))


def server_span(node: Any) -> ServiceSpan | None:
    """Service and name of the span that a node records."""
    if isinstance(node.server, Instance) and node.server.program.traced and node.operation is not None:
        name = node_span(node)
        if name and node.operation.span_kind == "server":
            return node.server.name, name
    return None


def waiting(traffic: Traffic) -> dict[ServiceSpan, float]:
    """Requests in queues."""
    found: dict[ServiceSpan, float] = defaultdict(float)
    assert traffic.fluid is not None
    for node in traffic.fluid.graph.nodes:
        name = server_span(node)
        if name is not None:
            found[name] += float(traffic.fluid.waiting[node.index])
    return found


@dataclass
class Signal:
    """What one signal says of one kind of span: how many, failed ones among them, their mean seconds."""

    count: float
    errors: float
    ok_seconds: float
    bad_seconds: float
    ok_square: float = 0.0
    bad_square: float = 0.0

    @property
    def error_share(self) -> float:
        return self.errors / self.count if self.count else 0.0


def read_metrics(traffic: Traffic) -> dict[SpanKey, tuple[float, ...]]:
    counters = traffic.counters
    columns = (counters.good, counters.bad, counters.seconds, counters.bad_seconds)
    return {key: tuple(float(column[row]) for column in columns) for row, key in enumerate(counters.keys)}


def metrics_between(before: dict[SpanKey, Any], after: dict[SpanKey, Any]) -> dict[SpanKey, Signal]:
    result = {}
    for key, values in after.items():
        good, bad, seconds, bad_seconds = (
            new - old for new, old in zip(values, before.get(key, (0.0,) * 4), strict=True)
        )
        result[key] = Signal(good + bad, bad, seconds / max(good, 1e-9), bad_seconds / max(bad, 1e-9))
    return result


def traced(spans: Iterable[Span], namespace: Callable[[Span], str]) -> dict[SpanKey, Signal]:
    """The same of spans."""
    groups: dict[SpanKey, list[Span]] = defaultdict(list)
    for span in spans:
        groups[SpanKey(span.service, span.name, span.kind, namespace(span))].append(span)
    result = {}
    for key, found in groups.items():
        good = [span.duration for span in found if span.status != "error"]
        bad = [span.duration for span in found if span.status == "error"]
        result[key] = Signal(
            len(found), len(bad), _mean(good), _mean(bad), _mean([v * v for v in good]), _mean([v * v for v in bad])
        )
    return result


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
