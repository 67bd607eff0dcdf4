"""The network in a whole cluster: what an operator sees from a shell in a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from srearena.cluster.embedded.objects import Obj
from tests.network.town import Town


@pytest.fixture
def town() -> Iterator[Town]:
    town = Town()
    town.deploy("client", "busybox:1.36", command=["sleep", "1000000"])
    town.deploy("web", "nginx:1.27", replicas=2)
    town.expose("web", 80, 80)
    yield town
    town.world.clock.close()


def client(town: Town) -> Obj:
    return town.pods("default", app="client")[0]


def wget(town: Town, url: str = "http://web", seconds: int = 5) -> tuple[int, str]:
    return town.sh(client(town), f"wget -T {seconds} -qO- {url}")


def edit_corefile(town: Town, change: Any) -> None:
    def edit(obj: Obj) -> None:
        obj["data"]["Corefile"] = change(obj["data"]["Corefile"])

    town.change("configmaps", "kube-system", "coredns", edit)


def restart_coredns(town: Town) -> None:
    for pod in town.pods("kube-system", **{"k8s-app": "kube-dns"}):
        town.client.delete("pods", pod)
    town.pass_time(45)


def test_a_page_is_fetched_by_name_and_the_target_port_matters(town: Town) -> None:
    status, page = wget(town)
    assert status == 0 and "Welcome to nginx!" in page
    town.change("services", "default", "web", lambda obj: obj["spec"]["ports"][0].update(targetPort=8080))
    town.pass_time(5)
    status, said = wget(town)
    assert status == 1 and "Connection refused" in said
    town.change("services", "default", "web", lambda obj: obj["spec"]["ports"][0].update(targetPort=80))
    town.pass_time(5)
    assert wget(town)[0] == 0


def test_without_coredns_names_are_gone_and_come_back(town: Town) -> None:
    town.scale("kube-system", "coredns", 0)
    status, said = wget(town, seconds=60)
    assert status == 1 and "bad address" in said
    address = town.client.get("services", "default", "web")
    assert address is not None
    assert wget(town, f"http://{address['spec']['clusterIP']}")[0] == 0
    town.scale("kube-system", "coredns", 2)
    town.pass_time(30)
    assert wget(town)[0] == 0


def test_a_poisoned_corefile_is_reloaded_and_healed(town: Town) -> None:
    poison = 'template ANY ANY svc.cluster.local {\n  match ".*\\.svc\\.cluster\\.local\\.?$"\n  rcode NXDOMAIN\n}\n'
    edit_corefile(town, lambda text: text.replace("errors\n", f"errors\n{poison}", 1))
    assert wget(town)[0] == 0, "nothing happens before the kubelet projects it and CoreDNS looks"
    town.pass_time(180)
    status, said = wget(town)
    assert status == 1 and "bad address 'web'" in said
    pod = town.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    assert "[INFO] Reloading complete" in town.log(pod)
    edit_corefile(town, lambda text: text.replace(poison, ""))
    town.pass_time(180)
    assert wget(town)[0] == 0


def test_a_broken_corefile_spares_running_pods_and_stops_new_ones(town: Town) -> None:
    edit_corefile(town, lambda text: text.replace("loadbalance", "loadbalanze", 1))
    town.pass_time(180)
    assert wget(town)[0] == 0
    pod = town.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    failure = "/etc/coredns/Corefile:22 - Error during parsing: Unknown directive 'loadbalanze'"
    assert f"[ERROR] plugin/reload: Corefile changed but reload failed: {failure}" in town.log(pod)
    restart_coredns(town)
    assert town.ready("kube-system", **{"k8s-app": "kube-dns"}) == 0
    crashing = town.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    assert town.log(crashing) == f"{failure}\n"
    assert wget(town)[0] == 1
    edit_corefile(town, lambda text: text.replace("loadbalanze", "loadbalance", 1))
    town.pass_time(400)
    assert town.ready("kube-system", **{"k8s-app": "kube-dns"}) == 2
    assert wget(town)[0] == 0


def test_a_forward_loop_makes_coredns_give_up(town: Town) -> None:
    edit_corefile(town, lambda text: text.replace("/etc/resolv.conf", "127.0.0.1", 1))
    restart_coredns(town)
    pod = town.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    assert "[FATAL] plugin/loop: Loop (127.0.0.1:" in town.log(pod)
    assert town.ready("kube-system", **{"k8s-app": "kube-dns"}) == 0


def test_without_kube_proxy_new_services_do_not_exist_for_a_node(town: Town) -> None:
    daemons = town.client.get("daemonsets.apps", "kube-system", "kube-proxy")
    assert daemons is not None
    town.client.delete("daemonsets.apps", daemons, propagation="Background")
    town.pass_time(60)
    assert not town.pods("kube-system", **{"k8s-app": "kube-proxy"})
    assert wget(town)[0] == 0, "rules outlive whoever wrote them"
    town.scale("default", "web", 0)
    town.scale("default", "web", 2)
    status, said = wget(town)
    assert status == 1, said
    fresh = {key: value for key, value in daemons["metadata"].items() if key in ("name", "namespace", "labels")}
    town.client.create(
        "daemonsets.apps",
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": fresh, "spec": daemons["spec"]},
    )
    town.pass_time(30)
    assert wget(town)[0] == 0


def test_coredns_without_permission_to_list_services_answers_servfail(town: Town) -> None:
    town.network.permits = lambda user, verb, group, resource: resource != "services"
    restart_coredns(town)
    pod = town.pods("kube-system", **{"k8s-app": "kube-dns"})[0]
    assert "starting server with unsynced Kubernetes API" in town.log(pod)
    assert 'cannot list resource "services" in API group ""' in town.log(pod)
    assert town.ready("kube-system", **{"k8s-app": "kube-dns"}) == 0
    town.network.permits = lambda user, verb, group, resource: True
    town.pass_time(30)
    assert town.ready("kube-system", **{"k8s-app": "kube-dns"}) == 2
    assert wget(town)[0] == 0


def test_what_a_shell_writes_into_etc_hosts_counts_at_once(town: Town) -> None:
    pod = client(town)
    web = town.pods("default", app="web")[0]["status"]["podIP"]
    status, page = town.sh(pod, f"echo {web} made-up >> /etc/hosts; wget -T 5 -qO- http://made-up")
    assert status == 0 and "nginx" in page


def test_a_pod_that_is_deleted_takes_its_address_with_it(town: Town) -> None:
    gone = town.pods("default", app="web")[0]
    address = gone["status"]["podIP"]
    town.client.delete("pods", gone)
    town.pass_time(60)
    status, said = wget(town, f"http://{address}", 10)
    assert status == 1
    assert "No route to host" in said or "Host is unreachable" in said
    assert wget(town)[0] == 0


def test_a_network_policy_shuts_the_door_and_opens_it_again(town: Town) -> None:
    policy = town.client.create(
        "networkpolicies.networking.k8s.io",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "deny", "namespace": "default"},
            "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "policyTypes": ["Ingress"]},
        },
    )
    assert wget(town) == (1, "wget: download timed out\n")
    assert town.ready("default", app="web") == 2, "the kubelet's own probes pass"
    town.client.delete("networkpolicies.networking.k8s.io", policy)
    assert wget(town)[0] == 0


def test_an_ingress_is_served_once_a_controller_runs(town: Town) -> None:
    town.client.create(
        "ingressclasses.networking.k8s.io",
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "IngressClass",
            "metadata": {"name": "nginx"},
            "spec": {"controller": "k8s.io/ingress-nginx"},
        },
    )
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    town.client.create(
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
    town.deploy("ingress", "registry.k8s.io/ingress-nginx/controller:v1.13.0")
    town.expose("ingress", 80, 80)
    ask = "wget -T 5 -qO- --header 'Host: shop.example' http://ingress"
    status, page = town.sh(client(town), ask)
    assert status == 0 and "Welcome to nginx!" in page
    status, said = wget(town, "http://ingress")
    assert status == 1 and "404" in said
    town.scale("default", "web", 0)
    status, said = town.sh(client(town), ask)
    assert status == 1 and "503" in said
