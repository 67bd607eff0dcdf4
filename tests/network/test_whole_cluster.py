"""The network of a whole cluster, from a shell in a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj
from tests.network.whole_cluster import WholeCluster


@pytest.fixture
def whole_cluster() -> Iterator[WholeCluster]:
    whole_cluster = WholeCluster()
    whole_cluster.deploy("client", "busybox:1.36", command=["sleep", "1000000"])
    whole_cluster.deploy("web", "nginx:1.27", replicas=2)
    whole_cluster.expose("web", 80, 80)
    yield whole_cluster
    whole_cluster.world.clock.close()


def client(whole_cluster: WholeCluster) -> Obj:
    return whole_cluster.pods("default", app="client")[0]


def wget(whole_cluster: WholeCluster, url: str = "http://web", seconds: int = 5) -> tuple[int, str]:
    return whole_cluster.sh(client(whole_cluster), f"wget -T {seconds} -qO- {url}")


def edit_corefile(whole_cluster: WholeCluster, change: Any) -> None:
    def edit(obj: Obj) -> None:
        obj["data"]["Corefile"] = change(obj["data"]["Corefile"])

    whole_cluster.change("configmaps", "kube-system", "coredns", edit)


def restart_coredns(whole_cluster: WholeCluster) -> None:
    for pod in whole_cluster.pods("kube-system", **{"k8s-app": "kube-dns"}):
        whole_cluster.client.delete("pods", pod)
    whole_cluster.pass_time(45)


def test_a_page_is_fetched_by_name_and_the_target_port_matters(whole_cluster: WholeCluster) -> None:
    status, page = wget(whole_cluster)
    assert status == 0 and "Welcome to nginx!" in page
    whole_cluster.change("services", "default", "web", lambda obj: obj["spec"]["ports"][0].update(targetPort=8080))
    whole_cluster.pass_time(5)
    status, output = wget(whole_cluster)
    assert status == 1 and "Connection refused" in output
    whole_cluster.change("services", "default", "web", lambda obj: obj["spec"]["ports"][0].update(targetPort=80))
    whole_cluster.pass_time(5)
    assert wget(whole_cluster)[0] == 0


def test_without_coredns_names_are_gone_and_come_back(whole_cluster: WholeCluster) -> None:
    whole_cluster.scale("kube-system", "coredns", 0)
    status, output = wget(whole_cluster, seconds=60)
    assert status == 1 and "bad address" in output
    address = whole_cluster.client.get("services", "default", "web")
    assert address is not None
    assert wget(whole_cluster, f"http://{address['spec']['clusterIP']}")[0] == 0
    whole_cluster.scale("kube-system", "coredns", 2)
    whole_cluster.pass_time(30)
    assert wget(whole_cluster)[0] == 0


def test_a_broken_then_repaired_corefile_is_reloaded(whole_cluster: WholeCluster) -> None:
    poison = 'template ANY ANY svc.cluster.local {\n  match ".*\\.svc\\.cluster\\.local\\.?$"\n  rcode NXDOMAIN\n}\n'
    edit_corefile(whole_cluster, lambda text: text.replace("errors\n", f"errors\n{poison}", 1))
    assert wget(whole_cluster)[0] == 0, "nothing happens before the kubelet projects it and CoreDNS looks"
    whole_cluster.pass_time(180)
    status, output = wget(whole_cluster)
    assert status == 1 and "bad address 'web'" in output
    pod = whole_cluster.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    assert "[INFO] Reloading complete" in whole_cluster.log(pod)
    edit_corefile(whole_cluster, lambda text: text.replace(poison, ""))
    whole_cluster.pass_time(180)
    assert wget(whole_cluster)[0] == 0


def test_a_broken_corefile_spares_running_pods_and_stops_new_ones(whole_cluster: WholeCluster) -> None:
    edit_corefile(whole_cluster, lambda text: text.replace("loadbalance", "loadbalanze", 1))
    whole_cluster.pass_time(180)
    assert wget(whole_cluster)[0] == 0
    pod = whole_cluster.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    failure = "/etc/coredns/Corefile:22 - Error during parsing: Unknown directive 'loadbalanze'"
    assert f"[ERROR] plugin/reload: Corefile changed but reload failed: {failure}" in whole_cluster.log(pod)
    restart_coredns(whole_cluster)
    assert whole_cluster.ready("kube-system", **{"k8s-app": "kube-dns"}) == 0
    crashing = whole_cluster.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    assert whole_cluster.log(crashing) == f"{failure}\n"
    assert wget(whole_cluster)[0] == 1
    edit_corefile(whole_cluster, lambda text: text.replace("loadbalanze", "loadbalance", 1))
    whole_cluster.pass_time(400)
    assert whole_cluster.ready("kube-system", **{"k8s-app": "kube-dns"}) == 2
    assert wget(whole_cluster)[0] == 0


def test_a_forward_loop_makes_coredns_exit(whole_cluster: WholeCluster) -> None:
    edit_corefile(whole_cluster, lambda text: text.replace("/etc/resolv.conf", "127.0.0.1", 1))
    restart_coredns(whole_cluster)
    pod = whole_cluster.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    assert "[FATAL] plugin/loop: Loop (127.0.0.1:" in whole_cluster.log(pod)
    assert whole_cluster.ready("kube-system", **{"k8s-app": "kube-dns"}) == 0


def test_without_kube_proxy_new_services_do_not_exist_for_a_node(whole_cluster: WholeCluster) -> None:
    daemons = whole_cluster.client.get("daemonsets.apps", "kube-system", "kube-proxy")
    assert daemons is not None
    whole_cluster.client.delete("daemonsets.apps", daemons, propagation="Background")
    whole_cluster.pass_time(60)
    assert not whole_cluster.pods("kube-system", **{"k8s-app": "kube-proxy"})
    assert wget(whole_cluster)[0] == 0, "rules outlive whoever wrote them"
    whole_cluster.scale("default", "web", 0)
    whole_cluster.scale("default", "web", 2)
    status, output = wget(whole_cluster)
    assert status == 1, output
    fresh = {key: value for key, value in daemons["metadata"].items() if key in ("name", "namespace", "labels")}
    whole_cluster.client.create(
        "daemonsets.apps",
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": fresh, "spec": daemons["spec"]},
    )
    whole_cluster.pass_time(30)
    assert wget(whole_cluster)[0] == 0


def test_coredns_without_permission_to_list_services_answers_servfail(whole_cluster: WholeCluster) -> None:
    whole_cluster.network.permits = lambda user, verb, group, resource: resource != "services"
    restart_coredns(whole_cluster)
    pod = whole_cluster.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    assert "starting server with unsynced Kubernetes API" in whole_cluster.log(pod)
    assert 'cannot list resource "services" in API group ""' in whole_cluster.log(pod)
    assert whole_cluster.ready("kube-system", **{"k8s-app": "kube-dns"}) == 0
    whole_cluster.network.permits = lambda user, verb, group, resource: True
    whole_cluster.pass_time(30)
    assert whole_cluster.ready("kube-system", **{"k8s-app": "kube-dns"}) == 2
    assert wget(whole_cluster)[0] == 0


def test_a_change_of_etc_hosts_takes_effect_at_once(whole_cluster: WholeCluster) -> None:
    pod = client(whole_cluster)
    web = whole_cluster.pods("default", app="web")[0]["status"]["podIP"]
    status, page = whole_cluster.sh(pod, f"echo {web} made-up >> /etc/hosts; wget -T 5 -qO- http://made-up")
    assert status == 0 and "nginx" in page


def test_a_pod_that_is_deleted_takes_its_address_with_it(whole_cluster: WholeCluster) -> None:
    gone = whole_cluster.pods("default", app="web")[0]
    address = gone["status"]["podIP"]
    whole_cluster.client.delete("pods", gone)
    whole_cluster.pass_time(60)
    status, output = wget(whole_cluster, f"http://{address}", 10)
    assert status == 1
    assert "No route to host" in output or "Host is unreachable" in output
    assert wget(whole_cluster)[0] == 0


def test_a_network_policy_blocks_and_unblocks_a_connection(whole_cluster: WholeCluster) -> None:
    policy = whole_cluster.client.create(
        "networkpolicies.networking.k8s.io",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "deny", "namespace": "default"},
            "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]},
        },
    )
    assert wget(whole_cluster) == (1, "wget: download timed out\n")
    assert whole_cluster.ready("default", app="web") == 2, "the kubelet's own probes pass"
    whole_cluster.client.delete("networkpolicies.networking.k8s.io", policy)
    assert wget(whole_cluster)[0] == 0


def test_an_ingress_is_served_once_a_controller_runs(whole_cluster: WholeCluster) -> None:
    whole_cluster.client.create(
        "ingressclasses.networking.k8s.io",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": "nginx"},
            "spec": {"controller": "k8s.io/ingress-nginx"},
        },
    )
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    whole_cluster.client.create(
        "ingresses.networking.k8s.io",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "ingressClassName": "nginx",
                "rules": [
                    {
                        "host": "shop.example",
                        "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]},
                    }
                ],
            },
        },
    )
    whole_cluster.deploy("ingress", "registry.k8s.io/ingress-nginx/controller:v1.13.0")
    whole_cluster.expose("ingress", 80, 80)
    ask = "wget -T 5 -qO- --header 'Host: shop.example' http://ingress"
    status, page = whole_cluster.sh(client(whole_cluster), ask)
    assert status == 0 and "Welcome to nginx!" in page
    status, output = wget(whole_cluster, "http://ingress")
    assert status == 1 and "404" in output
    whole_cluster.scale("default", "web", 0)
    status, output = whole_cluster.sh(client(whole_cluster), ask)
    assert status == 1 and "503" in output
