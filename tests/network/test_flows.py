"""Limits of the machine: connection tracking and local ports."""

from __future__ import annotations

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from tests.network.bench import Bench


def test_a_full_tracking_table_drops_new_connections_until_entries_fade(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())
    address = web["status"]["podIP"]
    bench.network.fabric.flows.set_limit("node-2", 3)
    results = [bench.get(client, address, connect_timeout=2).outcome for _ in range(4)]
    assert results == [Outcome.CONNECTED] * 3 + [Outcome.TIMEOUT]
    other = bench.pod("other", ports=())
    assert bench.reach(client, other["status"]["podIP"]).outcome is Outcome.REFUSED
    bench.clock.advance(125)
    assert bench.get(client, address).outcome is Outcome.CONNECTED


def test_declared_flows_fill_the_table_too(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    flows = bench.network.fabric.flows
    flows.set_limit("node-1", 1000)
    flows.carry("node-1", "load", 5000)
    found = bench.network.forecast(bench.host(client), web["status"]["podIP"], 80)
    assert found.outcome is Outcome.TIMEOUT
    assert "tracking" in found.paths[0].reason
    flows.carry("node-1", "load", 10)
    assert bench.network.forecast(bench.host(client), web["status"]["podIP"], 80).outcome is Outcome.CONNECTED


def test_a_narrow_port_range_runs_out_towards_one_peer_and_recovers(bench: Bench) -> None:
    sysctls = {"sysctls": [{"name": "net.ipv4.ip_local_port_range", "value": "40000 40004"}]}
    web = bench.pod("web")
    client = bench.pod("client", ports=(), spec={"securityContext": sysctls})
    other = bench.pod("other")
    address = web["status"]["podIP"]
    results = [bench.get(client, address).outcome for _ in range(6)]
    assert results == [Outcome.CONNECTED] * 5 + [Outcome.NO_PORT]
    assert bench.get(client, other["status"]["podIP"]).outcome is Outcome.CONNECTED
    bench.clock.advance(61)
    assert bench.get(client, address).outcome is Outcome.CONNECTED
