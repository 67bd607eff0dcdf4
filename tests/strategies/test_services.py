"""Addresses and ports of services, with neighbours in the store."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.deletion import delete
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.registry import Registry
from srearena.cluster.embedded.registry.strategies.service_allocation import NODE_PORTS, SERVICE_CIDR
from tests.strategies.server import options, registry


def _create(where: Registry, name: str, **spec: Any) -> Obj:
    obj = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
    return where.create(where.row("services"), "shop", {**obj, "spec": {"ports": [{"port": 80}], **spec}}, options())


def _change(where: Registry, name: str, **fields: Any) -> Obj:
    def change(service: Obj) -> Obj:
        service["spec"].update(fields)
        return service

    return where.update(where.row("services"), "shop", name, change, options())


def _refusal(where: Registry, name: str, **spec: Any) -> str:
    with pytest.raises(ApiError) as caught:
        _create(where, name, **spec)
    return caught.value.message


def test_a_service_gets_an_address_of_the_range_above_the_static_band() -> None:
    spec = _create(registry(), "web")["spec"]
    assert spec["clusterIPs"] == [spec["clusterIP"]]
    assert ip_address(spec["clusterIP"]) in SERVICE_CIDR
    assert int(ip_address(spec["clusterIP"])) - int(SERVICE_CIDR.network_address) > 256
    assert (spec["ipFamilies"], spec["ipFamilyPolicy"]) == (["IPv4"], "SingleStack")


def test_addresses_are_the_same_in_every_run_and_never_given_twice() -> None:
    def addresses() -> list[str]:
        where = registry()
        return [_create(where, f"web-{number}")["spec"]["clusterIP"] for number in range(40)]

    assert addresses() == addresses()
    assert len(set(addresses())) == 40


def test_a_wanted_address_is_given_once_and_free_again_after_deletion() -> None:
    where = registry()
    _create(where, "dns", clusterIP="10.96.0.10")
    assert _refusal(where, "other", clusterIP="10.96.0.10") == (
        'Service "other" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.10"]: '
        "failed to allocate IP 10.96.0.10: provided IP is already allocated"
    )
    delete(where, where.row("services"), "shop", "dns", {}, options())
    assert _create(where, "other", clusterIP="10.96.0.10")["spec"]["clusterIP"] == "10.96.0.10"


def test_an_address_outside_the_range_is_refused() -> None:
    assert _refusal(registry(), "web", clusterIP="192.168.0.1") == (
        'Service "web" is invalid: spec.clusterIPs: Invalid value: ["192.168.0.1"]: failed to allocate IP 192.168.0.1: '
        "the provided network does not match the current range"
    )


def test_node_ports_are_drawn_from_their_range_and_shared_between_protocols() -> None:
    ports = [
        {"name": "tcp", "port": 53},
        {"name": "udp", "port": 53, "protocol": "UDP"},
        {"name": "metrics", "port": 9153},
    ]
    drawn = [port["nodePort"] for port in _create(registry(), "dns", type="NodePort", ports=ports)["spec"]["ports"]]
    assert drawn[0] == drawn[1] != drawn[2]
    assert all(port in NODE_PORTS for port in drawn)


def test_a_taken_or_impossible_node_port_is_refused() -> None:
    where = registry()
    _create(where, "one", type="NodePort", ports=[{"port": 80, "nodePort": 30080}])
    assert _refusal(where, "two", type="NodePort", ports=[{"port": 80, "nodePort": 30080}]) == (
        'Service "two" is invalid: spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated'
    )
    assert _refusal(where, "two", type="NodePort", ports=[{"port": 80, "nodePort": 8080}]) == (
        'Service "two" is invalid: spec.ports[0].nodePort: Invalid value: 8080: '
        "provided port is not in the valid range. The range of valid ports is 30000-32767"
    )


def test_an_address_stays_when_a_client_leaves_it_out_and_cannot_be_exchanged() -> None:
    where = registry()
    before = _create(where, "web")["spec"]["clusterIP"]
    after = _change(where, "web", clusterIP="", clusterIPs=[], selector={"app": "web"})
    assert after["spec"]["clusterIP"] == before
    with pytest.raises(ApiError) as caught:
        _change(where, "web", clusterIP="10.96.0.99")
    assert 'spec.clusterIPs[0]: Invalid value: ["10.96.0.99"]: may not change once set' in caught.value.message


def test_what_belongs_to_a_type_goes_with_it_and_comes_back_anew() -> None:
    where = registry()
    _create(where, "web", type="NodePort")
    inside = _change(where, "web", type="ClusterIP")["spec"]
    assert "nodePort" not in inside["ports"][0]
    assert "externalTrafficPolicy" not in inside
    outside = _change(where, "web", type="ExternalName", externalName="example.com")["spec"]
    assert not {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} & set(outside)
    assert _change(where, "web", type="LoadBalancer")["spec"]["ports"][0]["nodePort"] in NODE_PORTS


def test_headless_services_have_no_address() -> None:
    where = registry()
    spec = _create(where, "db", clusterIP="None", selector={"app": "db"})["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"], spec["ipFamilies"]) == ("None", ["None"], ["IPv4"])
    bare = _create(where, "outside", clusterIP="None")["spec"]
    assert (bare["ipFamilyPolicy"], bare["ipFamilies"]) == ("RequireDualStack", ["IPv4", "IPv6"])


def test_a_load_balancer_that_keeps_client_addresses_gets_a_health_check_port() -> None:
    where = registry()
    spec = _create(where, "web", type="LoadBalancer", externalTrafficPolicy="Local")["spec"]
    assert spec["healthCheckNodePort"] in NODE_PORTS
    assert spec["healthCheckNodePort"] != spec["ports"][0]["nodePort"]
    assert "healthCheckNodePort" not in _change(where, "web", externalTrafficPolicy="Cluster")["spec"]


def test_a_load_balancer_may_do_without_node_ports() -> None:
    spec = _create(registry(), "web", type="LoadBalancer", allocateLoadBalancerNodePorts=False)["spec"]
    assert "nodePort" not in spec["ports"][0]


def test_a_full_cluster_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from srearena.cluster.embedded.registry.strategies import service_allocation

    monkeypatch.setattr(service_allocation, "_ADDRESSES", range(1, 4))
    monkeypatch.setattr(service_allocation, "_STATIC_ADDRESSES", 1)
    where = registry()
    taken = {_create(where, f"web-{number}")["spec"]["clusterIP"] for number in range(3)}
    assert taken == {"10.96.0.1", "10.96.0.2", "10.96.0.3"}
    assert "failed to allocate a serviceIP: range is full" in _refusal(where, "one-more")
