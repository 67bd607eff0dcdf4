"""Services: from a name to a listener, and the failures on the path."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from tests.network.bench import Bench


def test_a_pod_reaches_a_service_by_its_short_name(bench: Bench) -> None:
    web, client = bench.pod("web", node="node-2"), bench.pod("client", ports=())
    service = bench.service("web", pods=[web], port=80)
    found = bench.reach(client, "web")
    assert found.ok
    assert found.address == service["spec"]["clusterIP"]
    assert found.path is not None and found.path.address == web["status"]["podIP"]
    assert found.path.source == client["status"]["podIP"]
    assert found.route is not None and found.route.rule is not None
    assert found.route.rule.service == "default/web"
    assert 0 < found.seconds < 0.01


def test_wget_of_a_service_gets_the_page_of_its_pod(bench: Bench) -> None:
    web, client = bench.pod("web", "shop"), bench.pod("client", ports=())
    bench.service("web", "shop", [web])
    result = bench.get(client, "web.shop")
    assert result.outcome is Outcome.CONNECTED
    assert result.response.body == f"web saw {client['status']['podIP']}".encode()
    assert bench.get(client, "web").outcome is Outcome.NXDOMAIN


def test_wrong_target_port_is_refused_by_the_pod_and_works_when_fixed(bench: Bench) -> None:
    web, client = bench.pod("web", ports=(8080,)), bench.pod("client", ports=())
    service = bench.service("web", pods=[web], port=80, target=9999)
    found = bench.reach(client, "web")
    assert found.outcome is Outcome.REFUSED
    assert found.seconds < 0.01
    bench.slice(service, [web], 8080)
    assert bench.reach(client, "web").ok


def test_a_service_without_endpoints_refuses_at_once(bench: Bench) -> None:
    client = bench.pod("client", ports=())
    bench.service("web", pods=[])
    found = bench.reach(client, "web")
    assert found.outcome is Outcome.REFUSED
    assert found.path is not None and "no ready endpoints" in found.path.reason


def test_endpoints_that_are_not_ready_get_nothing(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    service = bench.service("web", pods=[web])
    bench.slice(service, [web], 80, ready=False, serving=False)
    assert bench.reach(client, "web").outcome is Outcome.REFUSED


def test_terminating_endpoints_that_still_serve_are_the_last_resort(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    service = bench.service("web", pods=[web])
    bench.slice(service, [web], 80, ready=False, serving=True, terminating=True)
    assert bench.reach(client, "web").ok


def test_a_port_the_service_does_not_have_times_out(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.service("web", pods=[web])
    found = bench.reach(client, "web", 81)
    assert found.outcome is Outcome.TIMEOUT
    assert found.seconds == pytest.approx(127, abs=0.1)
    assert bench.reach(client, "web", 81, timeout=3).seconds == 3


def test_connections_spread_over_all_ready_endpoints(bench: Bench) -> None:
    pods = [bench.pod(f"web-{number}") for number in range(3)]
    client = bench.pod("client", ports=())
    bench.service("web", pods=pods)
    hit = {str(reach.path.address) for _ in range(60) if (reach := bench.reach(client, "web")).path is not None}
    assert hit == {pod["status"]["podIP"] for pod in pods}


def test_session_affinity_keeps_a_client_until_its_timeout(bench: Bench) -> None:
    pods = [bench.pod(f"web-{number}") for number in range(4)]
    client = bench.pod("client", ports=())
    bench.service(
        "web",
        pods=pods,
        sessionAffinity="ClientIP",
        sessionAffinityConfig={"clientIP": {"timeoutSeconds": 60}},
    )

    def hit() -> str:
        path = bench.reach(client, "web").path
        assert path is not None
        return path.address

    first = hit()
    assert {hit() for _ in range(20)} == {first}
    seen = set()
    for _ in range(30):
        bench.clock.advance(61)
        seen.add(hit())
    assert len(seen) > 1


def test_internal_traffic_policy_local_stays_on_the_node_or_drops(bench: Bench) -> None:
    far = bench.pod("far", node="node-2")
    near = bench.pod("near", node="node-1")
    client = bench.pod("client", node="node-1", ports=())
    service = bench.service("web", pods=[far, near], internalTrafficPolicy="Local")
    for _ in range(10):
        path = bench.reach(client, "web").path
        assert path is not None and path.address == near["status"]["podIP"]
    bench.slice(service, [far], 80)
    assert bench.reach(client, "web", timeout=2).outcome is Outcome.TIMEOUT
    bench.slice(service, [], 80)
    assert bench.reach(client, "web", timeout=2).outcome is Outcome.REFUSED


def test_node_ports_answer_on_every_node_and_from_outside(bench: Bench) -> None:
    web = bench.pod("web", node="node-2")
    client = bench.pod("client", ports=())
    bench.service("web", pods=[web], type="NodePort", portspec={"nodePort": 30080})
    outside = bench.network.outside.host
    for node in ("172.18.0.2", "172.18.0.3"):
        assert bench.reach(client, node, 30080).ok
        found = bench.network.reach(outside, node, 30080)
        assert found.ok
        assert found.path is not None and found.path.source == node
    assert bench.network.reach(outside, "172.18.0.2", 30081).outcome is Outcome.REFUSED


def test_external_traffic_policy_local_keeps_the_clients_address_and_drops_elsewhere(bench: Bench) -> None:
    web = bench.pod("web", node="node-2")
    bench.service("web", pods=[web], type="NodePort", externalTrafficPolicy="Local", portspec={"nodePort": 30080})
    outside = bench.network.outside.host
    found = bench.network.reach(outside, "172.18.0.3", 30080)
    assert found.ok
    assert found.path is not None and found.path.source == outside.address
    assert bench.network.reach(outside, "172.18.0.2", 30080, timeout=5).outcome is Outcome.TIMEOUT


def test_a_load_balancer_address_leads_to_the_service(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    service = bench.service("web", pods=[web], type="LoadBalancer")
    assert bench.reach(client, "172.18.255.1", timeout=5).outcome is Outcome.NO_ROUTE
    bench.change("services", service, "status", to={"loadBalancer": {"ingress": [{"ip": "172.18.255.1"}]}})
    assert bench.reach(client, "172.18.255.1").ok
    assert bench.network.reach(bench.network.outside.host, "172.18.255.1", 80).ok


def test_udp_services_carry_datagrams(bench: Bench) -> None:
    server = bench.pod("syslog", ports=(514,), protocol="UDP")
    client = bench.pod("client", ports=())
    bench.service("syslog", pods=[server], port=514, protocol="UDP")
    facade = bench.facade(client)
    assert bench.run(facade.datagram("syslog", 514, b"hello")) == b"hello"
    assert bench.reach(client, "syslog", 514, "UDP").ok
    assert bench.reach(client, "syslog", 514, "TCP", timeout=1).outcome is Outcome.TIMEOUT


def test_an_external_name_resolves_to_what_it_names(bench: Bench) -> None:
    client = bench.pod("client", ports=())
    bench.store.put(
        "services",
        {
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"type": "ExternalName", "externalName": "example.com"},
        },
    )
    found = bench.reach(client, "shop", 443)
    assert found.ok
    assert [record.kind for record in found.resolution.records] == ["CNAME", "A"]
    bench.store.put(
        "services",
        {
            "metadata": {"name": "shop", "namespace": "default"},
            "spec": {"type": "ExternalName", "externalName": "does-not-exist.example"},
        },
    )
    assert bench.reach(client, "shop", 443).outcome is Outcome.NXDOMAIN


def test_a_deleted_service_is_gone_at_once(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    service = bench.service("web", pods=[web])
    assert bench.reach(client, "web").ok
    bench.store.remove("services", "default", "web")
    assert bench.reach(client, "web").outcome is Outcome.NXDOMAIN
    assert bench.reach(client, service["spec"]["clusterIP"], timeout=1).outcome is Outcome.TIMEOUT


def test_zone_hints_keep_traffic_near(bench: Bench) -> None:
    for node, zone in (("node-1", "a"), ("node-2", "b")):
        bench.store.put("nodes", {"metadata": {"name": node, "labels": {"topology.kubernetes.io/zone": zone}}})
    pods = [bench.pod("near", node="node-1"), bench.pod("far", node="node-2")]
    client = bench.pod("client", node="node-1", ports=())
    bench.service("web", pods=pods)
    part = bench.store.get("endpointslices.discovery.k8s.io", "default", "web-x")
    assert part is not None
    hinted = [{**e, "hints": {"forZones": [{"name": z}]}} for e, z in zip(part["endpoints"], "ab", strict=True)]
    bench.change("endpointslices.discovery.k8s.io", part, "endpoints", to=hinted)
    paths = [bench.reach(client, "web").path for _ in range(20)]
    assert {path.address for path in paths if path} == {pods[0]["status"]["podIP"]}
