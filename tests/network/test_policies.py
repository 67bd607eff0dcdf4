"""Network policies: the connections they allow, and properties that hold for all of them."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.objects import Obj
from tests.network.bench import POLICIES, Bench

DENY_ALL: Obj = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


def may(bench: Bench, source: Obj, target: Obj, port: int = 80) -> bool:
    outcome = bench.reach(source, target["status"]["podIP"], port, timeout=1).outcome
    assert outcome in (Outcome.CONNECTED, Outcome.TIMEOUT)
    return outcome is Outcome.CONNECTED


def ingress_from(*peers: Any, ports: Any = None, **selector: str) -> Obj:
    rule: Obj = {"from": list(peers)} if peers else {}
    if ports:
        rule["ports"] = ports
    return {"podSelector": {"matchLabels": selector}, "policyTypes": ["Ingress"], "ingress": [rule]}


def test_a_pod_without_policy_is_not_isolated(bench: Bench) -> None:
    one, two = bench.pod("one"), bench.pod("two", "shop")
    bench.policy("other", "default", ingress_from(app="nobody"))
    assert may(bench, one, two) and may(bench, two, one)


def test_deny_all_drops_everything_as_a_timeout_and_is_undone_by_deleting_it(bench: Bench) -> None:
    one, two = bench.pod("one"), bench.pod("two")
    other = bench.pod("other", "shop")
    bench.policy("deny", "default", DENY_ALL)
    assert not may(bench, one, two)
    assert not may(bench, other, one)
    assert not may(bench, one, other)
    assert may(bench, one, one), "a pod is never cut off from itself"
    bench.store.remove(POLICIES, "default", "deny")
    assert may(bench, one, two)


def test_egress_denial_takes_names_away_too(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.service("web", pods=[web])
    bench.policy("no-egress", "default", {"podSelector": {}, "policyTypes": ["Egress"]})
    found = bench.reach(client, "web")
    assert found.outcome is Outcome.DNS_FAILURE
    assert found.seconds > 9
    dns = {"to": [{"namespaceSelector": {}}], "ports": [{"protocol": "UDP", "port": 53}]}
    bench.policy("dns", "default", {"podSelector": {}, "policyTypes": ["Egress"], "egress": [dns]})
    found = bench.reach(client, "web", timeout=5)
    assert found.resolution.addresses
    assert found.outcome is Outcome.TIMEOUT


def test_pod_selectors_mean_pods_of_the_policys_own_namespace(bench: Bench) -> None:
    web = bench.pod("web")
    friend, stranger = bench.pod("friend", labels={"role": "friend"}), bench.pod("stranger")
    namesake = bench.pod("friend", "shop", labels={"role": "friend"})
    bench.policy("p", "default", ingress_from({"podSelector": {"matchLabels": {"role": "friend"}}}, app="web"))
    assert may(bench, friend, web)
    assert not may(bench, stranger, web)
    assert not may(bench, namesake, web)


def test_namespace_and_pod_selector_together_must_both_match(bench: Bench) -> None:
    bench.namespace("shop", team="shop")
    web = bench.pod("web")
    peer = {
        "namespaceSelector": {"matchLabels": {"team": "shop"}},
        "podSelector": {"matchLabels": {"role": "friend"}},
    }
    bench.policy("p", "default", ingress_from(peer, app="web"))
    assert may(bench, bench.pod("a", "shop", labels={"role": "friend"}), web)
    assert not may(bench, bench.pod("b", "shop"), web)
    assert not may(bench, bench.pod("c", labels={"role": "friend"}), web)


def test_labels_that_change_later_count(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client")
    bench.policy("p", "default", ingress_from({"podSelector": {"matchLabels": {"role": "friend"}}}, app="web"))
    assert not may(bench, client, web)
    bench.change("pods", client, "metadata", "labels", to={"role": "friend"})
    assert may(bench, client, web)
    namespace = bench.store.get("namespaces", "", "shop")
    other = bench.pod("other", "shop")
    bench.policy("q", "default", ingress_from({"namespaceSelector": {"matchLabels": {"open": "yes"}}}, app="web"))
    assert not may(bench, other, web)
    assert namespace is not None
    bench.change("namespaces", namespace, "metadata", "labels", to={"open": "yes"})
    assert may(bench, other, web)


def test_ports_by_number_range_and_name(bench: Bench) -> None:
    web = bench.pod("web", ports=(80, 8080, 9090))
    client = bench.pod("client")
    bench.policy("p", "default", ingress_from(ports=[{"port": "port-80"}, {"port": 8000, "endPort": 8100}], app="web"))
    assert may(bench, client, web, 80)
    assert may(bench, client, web, 8080)
    assert not may(bench, client, web, 9090)


def test_policies_see_the_endpoint_behind_a_service(bench: Bench) -> None:
    web, client = bench.pod("web", ports=(8080,)), bench.pod("client", ports=())
    bench.service("web", pods=[web], port=80, target=8080)
    bench.policy("p", "default", ingress_from(ports=[{"port": 80}], app="web"))
    assert bench.reach(client, "web", timeout=1).outcome is Outcome.TIMEOUT
    bench.policy("p", "default", ingress_from(ports=[{"port": 8080}], app="web"))
    assert bench.reach(client, "web").ok


def test_ip_blocks_and_their_exceptions(bench: Bench) -> None:
    client = bench.pod("client", ports=())
    block = {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["93.184.0.0/16"]}}
    bench.policy("p", "default", {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [block]}]})
    assert bench.reach(client, "8.8.8.8", 443).ok
    assert bench.reach(client, "example.com", 443, timeout=1).outcome is Outcome.TIMEOUT


def test_the_node_reaches_its_own_pods_whatever_the_policy(bench: Bench) -> None:
    web = bench.pod("web", node="node-1")
    bench.policy("deny", "default", DENY_ALL)
    address = web["status"]["podIP"]
    nodes = bench.network.fabric.hosts.nodes
    assert bench.network.reach(nodes["node-1"], address, 80).ok, "or probes would fail"
    assert bench.network.reach(nodes["node-2"], address, 80, timeout=1).outcome is Outcome.TIMEOUT


def test_host_network_pods_are_not_isolated(bench: Bench) -> None:
    agent = bench.pod("agent", spec={"hostNetwork": True}, ports=(9100,))
    web = bench.pod("web", node="node-2")
    bench.policy("deny", "default", {"podSelector": {"matchLabels": {"app": "agent"}}, "policyTypes": ["Egress"]})
    assert may(bench, agent, web)


# Laws

words = st.sampled_from(["a", "b"])
label_sets = st.dictionaries(st.sampled_from(["app", "role"]), words, max_size=2)
selectors = label_sets.map(lambda wanted: {"matchLabels": wanted})
peers = st.one_of(
    st.builds(lambda s: {"podSelector": s}, selectors),
    st.builds(lambda s: {"namespaceSelector": s}, selectors),
    st.builds(lambda s, t: {"podSelector": s, "namespaceSelector": t}, selectors, selectors),
    st.sampled_from(["10.244.1.0/24", "10.244.0.0/16", "0.0.0.0/0"]).map(lambda cidr: {"ipBlock": {"cidr": cidr}}),
)
port_lists = st.lists(st.sampled_from([{"port": 80}, {"port": 443}, {"port": 1, "endPort": 100}]), max_size=2)


def rules(side: str) -> st.SearchStrategy[Obj]:
    return st.builds(lambda p, q: {side: p, "ports": q}, st.lists(peers, max_size=2), port_lists)


policies = st.builds(
    lambda selector, ingress, egress, kinds: {
        "podSelector": selector,
        "ingress": ingress,
        "egress": egress,
        "policyTypes": kinds,
    },
    selectors,
    st.lists(rules("from"), max_size=2),
    st.lists(rules("to"), max_size=2),
    st.sampled_from([["Ingress"], ["Egress"], ["Ingress", "Egress"]]),
)


def whole_cluster() -> tuple[Bench, list[Obj]]:
    bench = Bench(dns=False)
    bench.namespace("shop", app="a")
    pods = [
        bench.pod("one", labels={"app": "a"}),
        bench.pod("two", node="node-2", labels={"app": "b", "role": "a"}),
        bench.pod("three", "shop", labels={"role": "b"}),
    ]
    return bench, pods


def reachable(bench: Bench, pods: list[Obj]) -> set[tuple[str, str]]:
    found = set()
    for source in pods:
        for target in pods:
            route = bench.network.fabric.routes.find(bench.host(source), target["status"]["podIP"], 80)
            if route.paths[0].outcome is Outcome.CONNECTED:
                found.add((source["metadata"]["name"], target["metadata"]["name"]))
    return found


@settings(max_examples=60, deadline=None)
@given(st.lists(policies, max_size=3), st.data())
def test_a_further_rule_never_takes_reachability_away(specs: list[Obj], data: st.DataObject) -> None:
    bench, pods = whole_cluster()
    for number, spec in enumerate(specs):
        bench.policy(f"p{number}", "default", spec)
    before = reachable(bench, pods)
    if specs:
        spec = dict(data.draw(st.sampled_from(specs)))
        name = f"p{specs.index(spec)}"
        side, key = data.draw(st.sampled_from([("ingress", "from"), ("egress", "to")]))
        spec[side] = [*spec[side], data.draw(rules(key))]
        bench.policy(name, "default", spec)
    assert before <= reachable(bench, pods)


@settings(max_examples=30, deadline=None)
@given(st.lists(policies, max_size=3))
def test_a_policy_can_only_take_away_from_an_open_network(specs: list[Obj]) -> None:
    bench, pods = whole_cluster()
    everything = reachable(bench, pods)
    for number, spec in enumerate(specs):
        bench.policy(f"p{number}", "default", spec)
    assert reachable(bench, pods) <= everything
    assert {(pod["metadata"]["name"],) * 2 for pod in pods} <= reachable(bench, pods)


def test_deny_all_everywhere_leaves_only_pods_with_themselves() -> None:
    bench, pods = whole_cluster()
    for namespace in ("default", "shop"):
        bench.policy("deny", namespace, DENY_ALL)
    assert reachable(bench, pods) == {(pod["metadata"]["name"],) * 2 for pod in pods}
