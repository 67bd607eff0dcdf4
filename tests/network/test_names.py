"""DNS lookups in a pod: results, cost and failures."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.machine.networking.reachability import DnsStatus, Outcome, Resolution
from srearena.cluster.embedded.network.links import Scope
from srearena.cluster.embedded.network.resolv import ResolverSettings, parsed_hosts, parsed_settings
from srearena.cluster.embedded.objects import Obj
from tests.network.bench import Bench


def resolve(bench: Bench, pod: Obj, name: str, kind: str = "A", **options: Any) -> Resolution:
    return bench.run(bench.facade(pod).resolve(name, kind, **options))


def timed(bench: Bench, pod: Obj, name: str) -> tuple[Resolution, float]:
    started = bench.clock.now
    return resolve(bench, pod, name), bench.clock.now - started


# Records


def test_a_service_has_an_address_an_srv_record_and_a_reverse_name(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    address = bench.service("web", "shop", [web])["spec"]["clusterIP"]
    full = "web.shop.svc.cluster.local."
    assert resolve(bench, client, "web.shop").addresses == (address,)
    assert resolve(bench, client, full, "SRV").records[0].value == f"0 100 80 {full}"
    named = resolve(bench, client, f"_main._tcp.{full}", "SRV")
    assert [record.value for record in named.records] == [f"0 100 80 {full}"]
    assert resolve(bench, client, f"_other._tcp.{full}", "SRV").status is DnsStatus.NXDOMAIN
    backwards = ".".join(reversed(address.split("."))) + ".in-addr.arpa"
    assert resolve(bench, client, backwards, "PTR").records[0].value == full


def test_an_ipv6_question_about_an_ipv4_service_is_answered_with_nothing(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.service("web", pods=[web])
    found = resolve(bench, client, "web", "AAAA")
    assert found.status is DnsStatus.NOERROR
    assert not found.records


def test_a_headless_service_lists_its_ready_pods_and_their_names(bench: Bench) -> None:
    pods = [bench.pod(f"db-{n}", spec={"hostname": f"db-{n}", "subdomain": "db"}) for n in range(3)]
    client = bench.pod("client", ports=())
    service = bench.service("db", pods=pods, ip="None")
    addresses = {pod["status"]["podIP"] for pod in pods}
    assert set(resolve(bench, client, "db").addresses) == addresses
    assert resolve(bench, client, "db-1.db").addresses == (pods[1]["status"]["podIP"],)
    targets = {record.value for record in resolve(bench, client, "db", "SRV").records}
    assert targets == {f"0 33 80 db-{n}.db.default.svc.cluster.local." for n in range(3)}
    bench.slice(service, pods, 80, ready=False)
    assert resolve(bench, client, "db").status is DnsStatus.NXDOMAIN
    assert resolve(bench, client, "db-1.db").status is DnsStatus.NXDOMAIN


def test_headless_addresses_come_in_changing_order(bench: Bench) -> None:
    pods = [bench.pod(f"db-{n}") for n in range(4)]
    client = bench.pod("client", ports=())
    bench.service("db", pods=pods, ip="None")
    assert len({resolve(bench, client, "db").addresses[0] for _ in range(40)}) == 4


def test_pods_have_names_made_of_their_address(bench: Bench) -> None:
    client = bench.pod("client", ports=())
    assert resolve(bench, client, "1-2-3-4.default.pod").addresses == ("1.2.3.4",)
    assert resolve(bench, client, "1-2-3-4.nowhere.pod").status is DnsStatus.NXDOMAIN


def test_verified_pod_names_need_a_pod() -> None:
    bench = Bench(corefile=".:53 {\n kubernetes cluster.local {\n pods verified\n }\n}")
    client = bench.pod("client", ports=())
    dashed = client["status"]["podIP"].replace(".", "-")
    assert resolve(bench, client, f"{dashed}.default.pod").addresses == (client["status"]["podIP"],)
    assert resolve(bench, client, f"{dashed}.shop.pod.cluster.local.").status is DnsStatus.NXDOMAIN
    assert resolve(bench, client, "1-2-3-4.default.pod.cluster.local.").status is DnsStatus.NXDOMAIN


# Failure


def test_a_name_that_does_not_exist_is_tried_with_every_search_domain(bench: Bench) -> None:
    client = bench.pod("client", ports=())
    found, seconds = timed(bench, client, "nobody")
    assert found.status is DnsStatus.NXDOMAIN
    assert found.name == "nobody."
    assert seconds < 0.1
    assert bench.coredns["coredns"].requests["A", "NXDOMAIN"] == 4


def test_without_coredns_pods_lookups_fail_at_once(bench: Bench) -> None:
    client = bench.pod("client", ports=())
    service = bench.store.get("services", "kube-system", "kube-dns")
    assert service is not None
    bench.slice(service, [], 53)
    found, seconds = timed(bench, client, "kubernetes")
    assert found.status is DnsStatus.TIMEOUT
    assert found.failure is Outcome.REFUSED
    assert found.outcome is Outcome.DNS_FAILURE
    assert seconds < 0.1


def test_a_name_server_that_cannot_be_reached_costs_five_seconds_an_attempt(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.service("web", pods=[web])
    bench.network.links.partition(Scope.of(pods=["kube-system/coredns"]))
    found, seconds = timed(bench, client, "web")
    assert found.status is DnsStatus.TIMEOUT
    # Two attempts with the first name of the search list, two with the name as it is.
    assert seconds == pytest.approx(20, abs=0.1)
    quick = bench.pod(
        "quick",
        ports=(),
        spec={"dnsConfig": {"options": [{"name": "timeout", "value": "1"}, {"name": "attempts", "value": "1"}]}},
    )
    assert timed(bench, quick, "web")[1] == pytest.approx(2, abs=0.1)
    assert bench.reach(client, "web", timeout=3).outcome is Outcome.TIMEOUT


def test_a_lookup_succeeds_when_the_name_server_comes_back_in_time(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.service("web", pods=[web])
    number = bench.network.links.partition(Scope.of(pods=["kube-system/coredns"]))
    bench.clock.after(3, bench.network.links.repair, number)
    found, seconds = timed(bench, client, "web")
    assert found.status is DnsStatus.NOERROR
    assert seconds == pytest.approx(5, abs=0.1)


def test_one_dead_name_server_of_two_slows_half_of_the_lookups(bench: Bench) -> None:
    web, client = bench.pod("web"), bench.pod("client", ports=())
    bench.service("web", pods=[web])
    second = bench.pod("coredns-2", "kube-system", node="node-2", ports=())
    bench.run_dns(second, bench.coredns["coredns"].configuration.text)
    service = bench.store.get("services", "kube-system", "kube-dns")
    first = bench.store.get("pods", "kube-system", "coredns")
    assert service is not None and first is not None
    bench.slice(service, [first, second], 53)
    bench.network.links.partition(Scope.of(pods=["kube-system/coredns-2"]))
    times = [round(timed(bench, client, "web")[1]) for _ in range(40)]
    assert set(times) >= {0, 5}
    lookup = bench.network.forecast(bench.host(client), "web", 80).lookup
    assert lookup.outcome is Outcome.CONNECTED
    assert lookup.failing == pytest.approx(0.25)
    assert 1 < lookup.seconds < 5


# Whose name server


def test_dns_policies_choose_the_name_server(bench: Bench) -> None:
    web = bench.pod("web")
    bench.service("web", pods=[web])
    cases = {
        "ClusterFirst": ("10.96.0.10", DnsStatus.NOERROR),
        "Default": ("172.18.0.1", DnsStatus.NXDOMAIN),
    }
    for policy, (server, status) in cases.items():
        pod = bench.pod(f"pod-{policy.lower()}", ports=(), spec={"dnsPolicy": policy})
        found = resolve(bench, pod, "web")
        assert (found.server, found.status) == (server, status)
    host = bench.pod("host", ports=(), spec={"hostNetwork": True})
    assert resolve(bench, host, "web").server == "172.18.0.1"
    both = bench.pod("both", ports=(), spec={"hostNetwork": True, "dnsPolicy": "ClusterFirstWithHostNet"})
    assert resolve(bench, both, "web").server == "10.96.0.10"
    own = bench.pod("own", ports=(), spec={"dnsPolicy": "None", "dnsConfig": {"nameservers": ["8.8.8.8"]}})
    assert resolve(bench, own, "web").status is DnsStatus.NXDOMAIN
    assert resolve(bench, own, "example.com").server == "8.8.8.8"


def test_host_aliases_come_before_every_name_server(bench: Bench) -> None:
    aliases = [{"ip": "10.9.8.7", "hostnames": ["web", "example.com"]}]
    client = bench.pod("client", ports=(), spec={"hostAliases": aliases})
    found = resolve(bench, client, "example.com")
    assert found.addresses == ("10.9.8.7",)
    assert found.server == ""
    assert resolve(bench, client, "example.com", server="10.96.0.10").addresses == ("93.184.215.14",)


def test_ndots_decides_what_is_tried_first(bench: Bench) -> None:
    usual = bench.pod("usual", ports=())
    few = bench.pod("few", ports=(), spec={"dnsConfig": {"options": [{"name": "ndots", "value": "1"}]}})
    server = bench.coredns["coredns"]
    resolve(bench, usual, "example.com")
    assert server.requests.total() == 4
    server.requests.clear()
    resolve(bench, few, "example.com")
    assert server.requests.total() == 1


# The files


labels = st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=6).map(".".join)


@given(names, st.lists(names, max_size=4), st.integers(0, 6))
def test_search_expansion_tries_every_domain_and_the_name_itself_once(name: str, search: list[str], ndots: int) -> None:
    settings = ResolverSettings(("10.96.0.10",), tuple(search), (f"ndots:{ndots}",))
    candidates = settings.candidates(name)
    assert len(candidates) == len(set(candidates))
    assert set(candidates) == {f"{name}."} | {f"{name}.{domain}." for domain in search}
    assert all(candidate.endswith(".") for candidate in candidates)
    first = candidates[0] == f"{name}."
    assert first == (name.count(".") >= ndots or not search)
    assert settings.candidates(f"{name}.") == [f"{name}."]


@given(st.text(max_size=200))
def test_any_text_makes_a_usable_resolv_conf(text: str) -> None:
    settings = parsed_settings(text)
    assert 1 <= len(settings.nameservers) <= 3
    assert settings.timeout >= 1 and settings.attempts >= 1
    assert isinstance(parsed_hosts(text), dict)
