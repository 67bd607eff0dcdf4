"""kube-proxy: its rules follow the cluster while it runs and are stale when it is dead."""

from __future__ import annotations

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from tests.network.bench import Bench


def test_without_any_kube_proxy_service_addresses_are_unreachable() -> None:
    bench = Bench(proxies=False, dns=False)
    web, client = bench.pod("web"), bench.pod("client", ports=())
    service = bench.service("web", pods=[web])
    address = service["spec"]["clusterIP"]
    assert bench.reach(client, address, timeout=2).outcome is Outcome.TIMEOUT
    assert bench.reach(client, web["status"]["podIP"]).ok
    bench.network.fabric.proxies.started("node-1")
    assert bench.reach(client, address).ok


def test_a_dead_kube_proxy_leaves_stale_rules() -> None:
    bench = Bench()
    old, client = bench.pod("old"), bench.pod("client", ports=())
    other = bench.pod("other", node="node-2", ports=())
    service = bench.service("web", pods=[old])
    bench.network.fabric.proxies.stopped("node-1")
    assert bench.reach(client, "web").ok

    bench.remove(old)
    new = bench.pod("new")
    bench.slice(service, [new], 80)
    bench.service("later", pods=[new])
    stale = bench.reach(client, "web")
    assert stale.outcome is Outcome.NO_ROUTE
    assert stale.path is not None and stale.path.address == old["status"]["podIP"]
    assert bench.reach(client, "later", timeout=2).outcome is Outcome.TIMEOUT
    assert bench.reach(other, "web").ok
    assert bench.reach(other, "later").ok

    bench.network.fabric.proxies.started("node-1")
    assert bench.reach(client, "web").ok
    assert bench.reach(client, "later").ok
