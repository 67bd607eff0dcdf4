"""What holds of every answer: the same seed gives the same, forecasts agree with attempts, caches never lie."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.links import Impairment, Quality, Scope
from tests.network.bench import Bench


class Story:
    """A small cluster and things that can happen to it."""

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
        """The truth, compiled anew."""
        self.bench.network.fabric.move_epoch()
        return self.known()

    def known(self) -> list[tuple[Outcome, str]]:
        forecast = self.bench.network.forecast(self.bench.host(self.client), "web", 80)
        return [(path.outcome, path.reason) for path in forecast.paths] or [(forecast.outcome, "")]


EVENTS = [
    Story.nothing,
    Story.no_endpoints,
    Story.all_endpoints,
    Story.wrong_port,
    Story.deny,
    Story.allow,
    Story.cut,
    Story.mend,
    Story.close,
    Story.unplug,
    Story.plug,
    Story.kill_proxy,
    Story.revive_proxy,
]
stories = st.lists(st.sampled_from(EVENTS), max_size=8)


@settings(max_examples=60, deadline=None)
@given(stories)
def test_a_kept_answer_is_always_the_one_a_fresh_look_would_give(events: list[Callable[[Story], None]]) -> None:
    story = Story()
    story.known()
    for event in events:
        event(story)
        assert story.known() == story.fresh()


@settings(max_examples=40, deadline=None)
@given(stories)
def test_attempts_end_as_forecast(events: list[Callable[[Story], None]]) -> None:
    story = Story()
    for event in events:
        event(story)
    possible = {outcome for outcome, _ in story.known()}
    found = {story.bench.reach(story.client, "web", timeout=60).outcome for _ in range(5)}
    assert found <= possible


@settings(max_examples=20, deadline=None)
@given(stories)
def test_the_same_story_has_the_same_end(events: list[Callable[[Story], None]]) -> None:
    ends = []
    for _ in range(2):
        story = Story()
        story.bench.network.links.impair(Impairment(Quality(loss=0.2, jitter=0.01, delay=0.02)))
        for event in events:
            event(story)
        ends.append(
            [(reach.outcome, reach.seconds) for reach in (story.bench.reach(story.client, "web") for _ in "ab")]
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


def test_only_asking_uses_nothing_up(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())
    for _ in range(10):
        assert bench.reach(client, web["status"]["podIP"]).ok
    flows, now = bench.network.fabric.flows, bench.clock.now
    assert flows.table("node-1").count(now) == flows.table("node-2").count(now) == 0
    ports = flows.ports(bench.host(client))
    assert ports.free((web["status"]["podIP"], 80, "TCP"), now) == ports.size
