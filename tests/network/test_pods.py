"""Pods and nodes on the network: open ports, deleted pods, nodes that are down."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.external_hosts import Daemon
from tests.network.bench import Bench


def test_nothing_listening_is_refused(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    address = web["status"]["podIP"]
    assert bench.reach(client, address, 80).ok
    assert bench.reach(client, address, 81).outcome is Outcome.REFUSED
    bench.stop_listening(web, 80)
    assert bench.reach(client, address, 80).outcome is Outcome.REFUSED


def test_a_server_bound_to_loopback_is_reached_only_from_its_own_pod(bench: Bench) -> None:
    web, client = bench.pod("web", bind="127.0.0.1"), bench.pod("client", ports=())
    assert bench.reach(client, web["status"]["podIP"]).outcome is Outcome.REFUSED
    assert bench.reach(web, "127.0.0.1").ok
    assert bench.reach(web, "localhost").ok
    assert bench.reach(web, web["status"]["podIP"]).outcome is Outcome.REFUSED


def test_a_pod_that_is_gone_is_no_route_after_three_seconds(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.remove(web)
    found = bench.reach(client, web["status"]["podIP"])
    assert found.outcome is Outcome.NO_ROUTE
    assert found.seconds == pytest.approx(3, abs=0.5)


def test_pods_of_a_node_that_is_down_time_out_and_the_node_is_no_route(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())
    neighbour = bench.pod("neighbour", node="node-2", ports=())
    bench.network.set_node_up("node-2", False)
    assert bench.reach(client, web["status"]["podIP"], timeout=5).outcome is Outcome.TIMEOUT
    assert bench.reach(client, "172.18.0.3", 10250).outcome is Outcome.NO_ROUTE
    assert bench.reach(neighbour, client["status"]["podIP"], 80, timeout=5).outcome is Outcome.TIMEOUT
    assert bench.reach(neighbour, web["status"]["podIP"]).ok, "what is on one node still has that node"
    bench.network.set_node_up("node-2", True)
    assert bench.reach(client, web["status"]["podIP"]).ok


def test_host_network_pods_listen_on_their_node(bench: Bench) -> None:
    agent = bench.pod("agent", node="node-2", ports=(9100,), spec={"hostNetwork": True})
    client = bench.pod("client", ports=())
    assert agent["status"]["podIP"] == "172.18.0.3"
    assert bench.reach(client, "172.18.0.3", 9100).ok
    assert bench.reach(agent, "localhost", 9100).ok
    assert bench.reach(agent, client["status"]["podIP"], 80).outcome is Outcome.REFUSED


def test_a_host_port_publishes_a_pod_on_its_node_only(bench: Bench) -> None:
    ports = [{"containerPort": 80, "hostPort": 8080, "protocol": "TCP"}]
    web = bench.pod("web", node="node-2", spec={"containers": [{"name": "main", "ports": ports}]})
    client = bench.pod("client", ports=())
    found = bench.reach(client, "172.18.0.3", 8080)
    assert found.ok
    assert found.path is not None and found.path.address == web["status"]["podIP"]
    assert bench.reach(client, "172.18.0.2", 8080).outcome is Outcome.REFUSED
    assert bench.network.reach(bench.network.outside.host, "172.18.0.3", 8080).ok
    bench.remove(web)
    assert bench.reach(client, "172.18.0.3", 8080).outcome is Outcome.REFUSED


def test_pod_addresses_are_not_routed_outside(bench: Bench) -> None:
    web = bench.pod("web")
    outside = bench.network.outside.host
    assert bench.network.reach(outside, web["status"]["podIP"], 80, timeout=4).outcome is Outcome.TIMEOUT


def test_only_known_external_sites_respond(bench: Bench) -> None:
    client = bench.pod("client", ports=())
    assert bench.reach(client, "example.com", 443).ok
    assert bench.reach(client, "www.google.com", 80).ok
    assert bench.reach(client, "unheard-of.example", 80).outcome is Outcome.NXDOMAIN
    assert bench.reach(client, "203.0.113.9", 80, timeout=3).outcome is Outcome.TIMEOUT
    assert bench.reach(client, "2001:db8::1", 80).outcome is Outcome.UNREACHABLE


def test_the_api_server_can_have_an_address_in_the_simulation(bench: Bench) -> None:
    from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse

    async def version(request: HttpRequest) -> HttpResponse:
        return HttpResponse.text('{"gitVersion": "v1.34.0"}')

    host = bench.network.fabric.hosts.nodes["node-1"]
    host.sockets.listen(Daemon(bench.network.clock, "kube-apiserver"), 6443, http=version)
    service = bench.service("kubernetes", pods=[], port=443, ip="10.96.0.1")
    node = {"metadata": {"name": "x", "namespace": "x"}, "spec": {"nodeName": "node-1"}}
    bench.slice(service, [{**node, "status": {"podIP": "172.18.0.2"}}], 6443)
    client = bench.pod("client", ports=())
    result = bench.get(client, "kubernetes.default.svc", 443)
    assert result.response is not None and b"v1.34.0" in result.response.body


def test_ping_finds_pods_and_nodes_but_no_service_addresses(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())
    service = bench.service("web", pods=[web])
    facade = bench.facade(client)
    assert bench.run(facade.ping(web["status"]["podIP"])).outcome is Outcome.CONNECTED
    assert bench.run(facade.ping("172.18.0.3")).outcome is Outcome.CONNECTED
    assert bench.run(facade.ping(service["spec"]["clusterIP"], timeout=2)).outcome is Outcome.TIMEOUT
    assert bench.run(facade.ping("nobody.here", timeout=2)).outcome is Outcome.NXDOMAIN


def test_a_raw_connection_carries_bytes_both_ways_and_ends_with_the_server(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())
    bench.service("web", pods=[web])

    async def talk() -> bytes:
        result = await bench.facade(client).connect("web", 80)
        assert result.connection is not None
        await result.connection.write(b"GET / HTTP/1.0\r\n\r\n")
        received = b""
        while data := await result.connection.read():
            received += data
        result.connection.close()
        return received

    received = bench.run(talk())
    assert received.startswith(b"HTTP/1.1 200 OK")
    assert received.endswith(f"web saw {client['status']['podIP']}".encode())
