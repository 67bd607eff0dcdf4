"""Impaired links: the effect of delay, loss, corruption, bandwidth limits and partitions on clients."""

from __future__ import annotations

from statistics import mean

import pytest

from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.links import HEALTHY, Impairment, Quality, Scope
from tests.network.bench import Bench


def test_delay_on_a_pods_way_out_slows_every_request_and_goes_when_repaired(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())
    address = web["status"]["podIP"]
    before = bench.get(client, address).seconds
    number = bench.network.links.impair(Impairment(Quality(delay=0.2), source=Scope.of(pods=["default/web"])))
    slow = bench.get(client, address)
    # One way of the handshake, and one way of the answer.
    assert slow.seconds == pytest.approx(before + 0.4, abs=0.01)
    bench.network.links.repair(number)
    assert bench.get(client, address).seconds < 0.01


def test_a_partition_between_nodes_is_a_timeout_and_spares_the_rest() -> None:
    bench = Bench(nodes=3)
    pods = [bench.pod(f"pod-{number}", node=f"node-{number}") for number in (1, 2, 3)]
    number = bench.network.links.partition(Scope.of(nodes=["node-1"]), Scope.of(nodes=["node-2"]))
    assert bench.reach(pods[0], pods[1]["status"]["podIP"], timeout=3).outcome is Outcome.TIMEOUT
    assert bench.reach(pods[1], pods[0]["status"]["podIP"], timeout=3).outcome is Outcome.TIMEOUT
    assert bench.reach(pods[0], pods[2]["status"]["podIP"]).ok
    bench.network.links.repair(number)
    assert bench.reach(pods[0], pods[1]["status"]["podIP"]).ok


def test_a_pod_cut_off_from_the_internet_still_has_the_cluster(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.network.links.partition(Scope.of(pods=["default/client"]), Scope.of(ranges=["93.184.0.0/16"]))
    assert bench.reach(client, "example.com", 443, timeout=3).outcome is Outcome.TIMEOUT
    assert bench.reach(client, web["status"]["podIP"]).ok


def test_loss_costs_retransmissions_in_steps_of_a_second(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.network.links.impair(Impairment(Quality(loss=0.5), target=Scope.of(pods=["default/web"])))
    times = [bench.reach(client, web["status"]["podIP"]).seconds for _ in range(200)]
    whole = {round(seconds) for seconds in times}
    assert {0, 1, 3, 7} <= whole <= {0, 1, 3, 7, 15, 31, 63, 127}
    assert mean(seconds < 0.5 for seconds in times) == pytest.approx(0.5, abs=0.12)


def test_corruption_behaves_like_loss_and_duplication_like_nothing(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    address = web["status"]["podIP"]
    number = bench.network.links.impair(Impairment(Quality(duplication=1.0)))
    assert bench.reach(client, address).seconds < 0.01
    bench.network.links.repair(number)
    bench.network.links.impair(Impairment(Quality(corruption=1.0)))
    assert bench.reach(client, address, timeout=10).outcome is Outcome.TIMEOUT


def test_bandwidth_makes_big_bodies_slow(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.network.links.impair(Impairment(Quality(bandwidth=10_000), target=Scope.of(pods=["default/web"])))
    request = HttpRequest("POST", body=b"x" * 50_000)
    result = bench.run(bench.facade(client).http(web["status"]["podIP"], 80, request))
    assert result.outcome is Outcome.CONNECTED
    assert result.seconds == pytest.approx(5, abs=0.2)


def test_a_fault_can_be_of_one_port_alone(bench: Bench) -> None:
    web, client = bench.pod("web", ports=(80, 81)), bench.pod("client", ports=())
    bench.network.links.impair(Impairment(Quality(cut=True), ports=frozenset({81}), protocol="TCP"))
    assert bench.reach(client, web["status"]["podIP"], 80).ok
    assert bench.reach(client, web["status"]["podIP"], 81, timeout=2).outcome is Outcome.TIMEOUT


def test_a_black_hole_for_big_packets_lets_connections_stand_and_bodies_vanish(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.network.links.impair(Impairment(Quality(largest=1000), target=Scope.of(pods=["default/web"])))
    address, facade = web["status"]["podIP"], bench.facade(client)
    assert bench.get(client, address).outcome is Outcome.CONNECTED
    big = HttpRequest("POST", body=b"x" * 5000)
    result = bench.run(facade.http(address, 80, big, timeout=10))
    assert result.outcome is Outcome.TIMEOUT and result.connected


def test_a_connection_attempt_succeeds_when_a_partition_ends_in_time(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())
    number = bench.network.links.partition(Scope.of(nodes=["node-2"]))
    bench.clock.after(5, bench.network.links.repair, number)
    result = bench.get(client, web["status"]["podIP"])
    assert result.outcome is Outcome.CONNECTED
    assert 5 < result.seconds < 8


def test_an_established_connection_stalls_while_its_link_is_cut(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())

    async def talk() -> tuple[float, bytes]:
        result = await bench.facade(client).connect(web["status"]["podIP"], 80)
        assert result.connection is not None
        number = bench.network.links.partition(Scope.of(nodes=["node-2"]))
        bench.clock.after(10, bench.network.links.repair, number)
        started = bench.clock.now
        await result.connection.write(b"GET / HTTP/1.0\r\n\r\n")
        data = await result.connection.read()
        return bench.clock.now - started, data

    seconds, data = bench.run(talk())
    assert seconds > 10
    assert data.startswith(b"HTTP/1.1 200")


def test_impairments_of_one_way_add_up() -> None:
    both = Quality(delay=0.1, loss=0.5, bandwidth=100).and_then(Quality(delay=0.2, loss=0.5, bandwidth=50))
    assert both.delay == pytest.approx(0.3)
    assert both.loss == 0.75
    assert both.bandwidth == 50
    assert HEALTHY.and_then(HEALTHY).is_healthy


def test_the_forecast_has_delay_and_loss(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.service("web", pods=[web])
    bench.network.links.impair(
        Impairment(Quality(delay=0.1, loss=0.25), Scope.of(pods=["default/client"]), Scope.of(pods=["default/web"]))
    )
    forecast = bench.network.forecast(bench.host(client), "web", 80)
    assert forecast.outcome is Outcome.CONNECTED
    assert forecast.paths[0].forward.delay == 0.1
    assert forecast.paths[0].lost == 0.25
