"""What holds under any load: calls are conserved on every edge; metrics, traces and logs tell the same story."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from srearena.cluster.embedded.traffic.counters import SpanKey
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.load import Driver
from srearena.cluster.embedded.traffic.spans import Span
from srearena.service.apps import find_application
from tests.apps.deployed import deployed
from tests.apps.log_signals import assert_addresses_exist, assert_log_lines_agree
from tests.apps.signals import CallLedger, Signal, metrics_between, read_metrics, server_span, traced, waiting

APPLICATIONS = (
    "hotel_reservation",
    "social_network",
    "online_boutique",
    "blueprint_hotel_reservation",
    "astronomy_shop",
    "train_ticket",
    "fleetcast",
)


class Loaded:
    """An application with its usual load, that can be multiplied."""

    def __init__(self, running: object, ledger: CallLedger) -> None:
        self.ledger = ledger
        self._factor = 1.0
        self.unlimited = False
        """Whether clients send however many requests are in flight."""
        self._running = running
        self.assembly = running.cluster._thread.host.assembly  # type: ignore[attr-defined]
        self.traffic = self.assembly.traffic

    def wait(self, seconds: float) -> None:
        self._running.wait(seconds)  # type: ignore[attr-defined]
        self.traffic.catch_up()

    @property
    def factor(self) -> float:
        return self._factor

    @factor.setter
    def factor(self, factor: float) -> None:
        self.traffic.catch_up()
        self._factor = factor
        self.rebuild()  # as for every change of a load, the next interval is a short one

    def rebuild(self) -> None:
        self.traffic._version += 1

    def utilisation(self, seconds: int) -> float:
        """The highest mean utilisation of a queue."""
        totals: dict[object, float] = {}
        for _ in range(seconds):
            self.wait(1)
            fluid = self.traffic.fluid
            names = [*(server.key for server in fluid.graph.servers), *fluid.pooled]
            for name, used in zip(names, fluid.queues.utilisation.tolist(), strict=True):
                totals[name] = totals.get(name, 0.0) + used / seconds
        return max(totals.values())

    def spans_since(self, moment: float) -> list[Span]:
        return [span for span in self.assembly.telemetry.spans.all_spans() if span.start > moment]


@contextmanager
def under_load(name: str) -> Iterator[Loaded]:
    application = find_application(name)
    folders = [application.folder] if application.model_path is not None else []
    with pytest.MonkeyPatch.context() as patch, deployed(name, models=folders) as running:
        ledger = CallLedger()
        patch.setattr(FluidModel, "step", ledger.watch(FluidModel.step))
        state = Loaded(running, ledger)
        patch.setattr(Driver, "rates", multiplied(state, Driver.rates))
        patch.setattr(Driver, "most_in_flight", property(unless_unlimited(state, vars(Driver)["most_in_flight"].fget)))
        application.start_workload(running.cluster)
        state.wait(60)
        yield state


MOST_IN_FLIGHT = 5000.0
"""With more, a load generator that opens connections without bounds runs out of memory."""


def multiplied(state: Loaded, rates: Callable[..., list[float]]) -> Callable[..., list[float]]:
    return lambda driver, fluid: [state.factor * rate for rate in rates(driver, fluid)]


def unless_unlimited(state: Loaded, limit: Callable[[Driver], float]) -> Callable[[Driver], float]:
    return lambda driver: math.inf if state.unlimited else min(limit(driver), MOST_IN_FLIGHT)


@pytest.mark.parametrize("name", APPLICATIONS)
@pytest.mark.daily_cases(3)
def test_calls_are_conserved_and_signals_agree_at_any_load(name: str) -> None:
    # One test, so that an application is deployed once and its samples are the same in every run.
    with under_load(name) as loaded:
        assert_signals_agree(loaded, 60)
        if name == "astronomy_shop":
            assert_flags_are_recorded(loaded)
        assert_signals_agree_on_partial_failure(loaded)
        capacity = 1 / loaded.utilisation(10)
        loaded.factor = 2 * capacity
        loaded.wait(40)
        assert_signals_agree(loaded, 60)
        loaded.unlimited = True
        for share in (0.1, 0.9, 3.0, 0.1):
            loaded.factor = share * capacity
            loaded.ledger.most_waiting = 0.0
            assert_conserved(loaded, 15)
            if share == 3.0:
                assert loaded.ledger.most_waiting > 20, "queues fill above capacity"
        loaded.unlimited = False
        loaded.factor = 1.0
        loaded.wait(40)
        assert_signals_agree(loaded, 60)


def assert_signals_agree_on_partial_failure(loaded: Loaded) -> None:
    nodes = [node for node in loaded.traffic.fluid.graph.nodes if server_span(node) is not None]
    deepest = max(nodes, key=lambda node: (node.level, float(loaded.traffic.fluid.arrivals[node.index])))
    with pytest.MonkeyPatch.context() as patch:
        failing = deepest.operation.model_copy(update={"fails": 0.3})
        patch.setitem(deepest.server.program.operations, deepest.name, failing)
        loaded.rebuild()
        loaded.wait(10)
        metrics = assert_signals_agree(loaded, 60)
        shares = [s.error_share for key, s in metrics.items() if (key.service, key.span) == server_span(deepest)]
        assert max(shares) == pytest.approx(0.3, abs=0.01)
    loaded.rebuild()
    loaded.wait(10)


def assert_conserved(loaded: Loaded, seconds: float) -> None:
    """What arrived at a server has ended, is waiting, or was lost with the process that had it in its queue.

    The ledger checks the single edges and intervals.
    """
    loaded.traffic.catch_up()
    ledger = loaded.ledger
    ledger.sent.clear()
    ledger.lost.clear()
    ledger.steps = 0
    before, waiting_before = read_metrics(loaded.traffic), waiting(loaded.traffic)
    loaded.wait(seconds)
    assert ledger.steps
    counted = metrics_between(before, read_metrics(loaded.traffic))
    waiting_after = waiting(loaded.traffic)
    for name, sent in ledger.sent.items():
        ended = sum(s.count for key, s in counted.items() if (key.service, key.span) == name and key.kind == "server")
        left = waiting_after.get(name, 0.0) - waiting_before.get(name, 0.0) + ledger.lost.get(name, 0.0)
        assert sent == pytest.approx(ended + left, rel=1e-6, abs=1e-4), name


def assert_signals_agree(loaded: Loaded, seconds: float) -> dict[SpanKey, Signal]:
    """Shares of errors and mean durations of spans are those of the metrics, within the error of a sample."""
    before, moment = read_metrics(loaded.traffic), loaded.assembly.world.clock.now
    loaded.wait(seconds)
    metrics = metrics_between(before, read_metrics(loaded.traffic))
    spans = loaded.spans_since(moment)
    assert spans
    assert all(span.end <= loaded.assembly.world.clock.now for span in spans)
    assert_spans_are_described(spans)
    found = traced(spans, lambda span: str(dict(span.resource.attributes)["k8s.namespace.name"]))
    for key, sample in found.items():
        assert_one_agrees(key, metrics[key], sample)
    assert_log_lines_agree(loaded.traffic, metrics, moment, seconds)
    assert_addresses_exist(loaded.traffic, moment)
    return metrics


def assert_spans_are_described(spans: list[Span]) -> None:
    """By the semantic conventions, and with the library that recorded them where it is one."""
    for span in spans:
        attributes = dict(span.attributes)
        if "rpc.service" in attributes:
            assert re.fullmatch(r"(?!grpc\.)[\w.]+", str(attributes["rpc.service"])), span.name
            language = dict(span.resource.attributes).get("telemetry.sdk.language")
            assert span.scope or language not in ("go", "python", "nodejs", "java", "dotnet"), span.name


def assert_flags_are_recorded(loaded: Loaded) -> None:
    """Spans have an event for each flag that the program asked for, where its library records that."""
    found: dict[str, set[object]] = defaultdict(set)
    for span in loaded.spans_since(0):
        for event in span.events:
            assert event.name == "feature_flag", "nothing fails"
            assert ("feature_flag.variant", "off") in event.attributes
            found[span.service].add(dict(event.attributes)["feature_flag.key"])
    assert found["product-catalog"] == {"productCatalogFailure"}
    assert found["recommendation"] == {"recommendationCacheFailure"}
    assert not {"payment", "ad"} & found.keys(), "their libraries record none"


def assert_one_agrees(key: SpanKey, metric: Signal, sample: Signal) -> None:
    few = 20
    if sample.count < few:
        return
    share = metric.error_share
    # Four standard errors of a sample; spans of one trace are not independent, hence the constant terms.
    allowed = 4 * math.sqrt(max(share * (1 - share), 0.001) / sample.count) + 0.02
    assert sample.error_share == pytest.approx(share, abs=allowed), key
    pairs = (
        (metric.ok_seconds, sample.ok_seconds, sample.ok_square, sample.count - sample.errors),
        (metric.bad_seconds, sample.bad_seconds, sample.bad_square, sample.errors),
    )
    for expected, mean, square, count in pairs:
        if count >= few:
            error = math.sqrt(max(square - mean**2, 0.0) / count)
            assert mean == pytest.approx(expected, abs=4 * error + 0.15 * expected), key
