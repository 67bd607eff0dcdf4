"""Properties: the same seed gives the same results, forecasts agree with attempts, caches are never stale."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.links import Impairment, Quality, Scope
from tests.network.bench import Bench


class Scenario:
    """A small cluster and a sequence of changes to it."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.web = [self.bench.pod(f"web-{n}", node=f"node-{n % 2 + 1}") for n in range(2)]
        self.client = self.bench.pod("client", ports=())
        self.service = self.bench.service("web", pods=self.web)
        self.link = 0
        self.proxy_runs = True

    def nothing(self) -> None:
        self.bench.clock.advance(1)

    def no_endpoints(self) -> None:
        self.bench.slice(self.service, [], 80)

    def all_endpoints(self) -> None:
        self.bench.slice(self.service, self.web, 80)

    def wrong_port(self) -> None:
        self.bench.slice(self.service, self.web, 81)

    def deny(self) -> None:
        self.bench.policy("deny", "default", {"podSelector": {}, "policyTypes": ["Ingress"]})

    def allow(self) -> None:
        self.bench.policy("deny", "default", {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]})

    def cut(self) -> None:
        self.link = self.bench.network.links.partition(Scope.of(nodes=["node-2"]))

    def mend(self) -> None:
        self.bench.network.links.repair(self.link)

    def close(self) -> None:
        self.bench.stop_listening(self.web[0], 80)

    def unplug(self) -> None:
        self.bench.network.set_node_up("node-2", False)

    def plug(self) -> None:
        self.bench.network.set_node_up("node-2", True)

    def kill_proxy(self) -> None:
        self.bench.network.fabric.proxies.stopped("node-1")
        self.proxy_runs = False

    def revive_proxy(self) -> None:
        if not self.proxy_runs:
            self.bench.network.fabric.proxies.started("node-1")
            self.proxy_runs = True

    def fresh(self) -> list[tuple[Outcome, str]]:
        """The outcomes, compiled anew."""
        self.bench.network.fabric.move_epoch()
        return self.cached()

    def cached(self) -> list[tuple[Outcome, str]]:
        forecast = self.bench.network.forecast(self.bench.host(self.client), "web", 80)
        return [(path.outcome, path.reason) for path in forecast.paths] or [(forecast.outcome, "")]


EVENTS = [
    Scenario.nothing,
    Scenario.no_endpoints,
    Scenario.all_endpoints,
    Scenario.wrong_port,
    Scenario.deny,
    Scenario.allow,
    Scenario.cut,
    Scenario.mend,
    Scenario.close,
    Scenario.unplug,
    Scenario.plug,
    Scenario.kill_proxy,
    Scenario.revive_proxy,
]
scenarios = st.lists(st.sampled_from(EVENTS), max_size=8)


@settings(max_examples=60, deadline=None)
@given(scenarios)
def test_a_cached_route_equals_a_newly_compiled_one(events: list[Callable[[Scenario], None]]) -> None:
    scenario = Scenario()
    scenario.cached()
    for event in events:
        event(scenario)
        assert scenario.cached() == scenario.fresh()


@settings(max_examples=40, deadline=None)
@given(scenarios)
def test_attempts_end_as_forecast(events: list[Callable[[Scenario], None]]) -> None:
    scenario = Scenario()
    for event in events:
        event(scenario)
    possible = {outcome for outcome, _ in scenario.cached()}
    found = {scenario.bench.reach(scenario.client, "web", timeout=60).outcome for _ in range(5)}
    assert found <= possible


@settings(max_examples=20, deadline=None)
@given(scenarios)
def test_the_same_scenario_has_the_same_result(events: list[Callable[[Scenario], None]]) -> None:
    ends = []
    for _ in range(2):
        scenario = Scenario()
        scenario.bench.network.links.impair(Impairment(Quality(loss=0.2, jitter=0.01, delay=0.02)))
        for event in events:
            event(scenario)
        ends.append(
            [(reach.outcome, reach.seconds) for reach in (scenario.bench.reach(scenario.client, "web") for _ in "ab")]
        )
    assert ends[0] == ends[1]


def test_status_updates_that_route_nothing_leave_the_epoch_alone(bench: Bench) -> None:
    web = bench.pod("web")
    epoch = bench.network.epoch
    bench.change("pods", web, "status", "phase", to="Failed")
    bench.change("nodes", {"metadata": {"name": "node-1"}}, "status", to={"conditions": []})
    assert bench.network.epoch == epoch
    bench.change("pods", web, "metadata", "labels", to={"new": "label"})
    assert bench.network.epoch > epoch


def test_a_prediction_uses_no_resources(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())
    for _ in range(10):
        assert bench.reach(client, web["status"]["podIP"]).ok
    flows, now = bench.network.fabric.flows, bench.clock.now
    assert flows.table("node-1").count(now) == flows.table("node-2").count(now) == 0
    ports = flows.ports(bench.host(client))
    assert ports.free((web["status"]["podIP"], 80, "TCP"), now) == ports.size
