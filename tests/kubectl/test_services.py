"""Services that lead nowhere, names that do not resolve, and traffic that is not allowed."""

from __future__ import annotations

from typing import Any

import pytest

from .operator import Operator, Result


@pytest.fixture
def shop(operator: Operator) -> Operator:
    """Two web servers, and somebody who asks them."""
    operator.apply("""
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: web, image: "nginx:1.27", ports: [{name: http, containerPort: 80}]}]
---
apiVersion: v1
kind: Pod
metadata: {name: client, labels: {app: client}}
spec:
  containers: [{name: client, image: "nicolaka/netshoot", command: [sleep, "360000"]}]
""")
    operator.wait(30)
    return operator


def service(**spec: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {**defaults, **spec}}


def curl(operator: Operator, url: str = "http://web", pod: str = "client") -> Result:
    return operator.run("exec", pod, "--", "curl", "-sS", "-m", "3", "-o", "/dev/null", "-w", "%{http_code}", url)


def works(operator: Operator, url: str = "http://web", pod: str = "client") -> bool:
    result = curl(operator, url, pod)
    return result.code == 0 and result.out == "200"


def endpoints(operator: Operator) -> list[str]:
    slices = operator.get("endpointslices", "-l", "kubernetes.io/service-name=web")["items"]
    return sorted(
        f"{address}:{port['port']}"
        for piece in slices
        for port in piece.get("ports") or ()
        for endpoint in piece.get("endpoints") or ()
        if endpoint["conditions"]["ready"]
        for address in endpoint["addresses"]
    )


def test_a_service_finds_its_pods(shop: Operator) -> None:
    shop.apply(service())
    shop.wait(5)
    addresses = sorted(f"{pod['status']['podIP']}:80" for pod in shop.pods("app=web"))
    assert endpoints(shop) == addresses
    assert shop.row("endpoints", "web")["ENDPOINTS"] == ",".join(addresses)
    assert works(shop)
    for name in ("web.default", "web.default.svc", "web.default.svc.cluster.local"):
        assert works(shop, f"http://{name}")


def test_a_wrong_selector_finds_nobody(shop: Operator) -> None:
    shop.apply(service(selector={"app": "wbe"}))
    shop.wait(5)
    assert endpoints(shop) == []
    assert shop.row("endpoints", "web")["ENDPOINTS"] == "<none>"
    assert "Endpoints:                \n" in shop.kubectl("describe", "service", "web")
    result = curl(shop)
    assert result.code == 7
    address = shop.path("{.spec.clusterIP}", "service", "web")
    assert "Failed to connect to web port 80" in result.err
    assert shop.kubectl("exec", "client", "--", "getent", "hosts", "web").split()[0] == address, "the name is known"
    shop.kubectl("patch", "service", "web", "-p", '{"spec":{"selector":{"app":"web"}}}')
    shop.wait(5)
    assert works(shop)


def test_a_wrong_target_port_is_refused_by_the_pods(shop: Operator) -> None:
    shop.apply(service(ports=[{"port": 80, "targetPort": 8080}]))
    shop.wait(5)
    assert all(endpoint.endswith(":8080") for endpoint in endpoints(shop))
    result = curl(shop)
    assert result.code == 7
    shop.kubectl("patch", "service", "web", "-p", '{"spec":{"ports":[{"port":80,"targetPort":80}]}}')
    shop.wait(5)
    assert works(shop)


def test_a_named_target_port_follows_the_containers(shop: Operator) -> None:
    shop.apply(service(ports=[{"port": 8000, "targetPort": "http"}]))
    shop.wait(5)
    assert works(shop, "http://web:8000")
    shop.kubectl("patch", "service", "web", "-p", '{"spec":{"ports":[{"port":8000,"targetPort":"https"}]}}')
    shop.wait(5)
    assert endpoints(shop) == [], "no container has a port of that name"
    assert curl(shop, "http://web:8000").code == 7


def test_a_port_that_the_service_does_not_have(shop: Operator) -> None:
    shop.apply(service())
    shop.wait(5)
    assert curl(shop, "http://web:81").code == 28, "nobody answers on a cluster address but its own ports"


def test_pods_that_are_not_ready_or_gone_get_no_traffic(shop: Operator) -> None:
    shop.apply(service())
    shop.kubectl("scale", "deployment", "web", "--replicas=0")
    shop.wait(10)
    assert curl(shop).code == 7
    shop.kubectl("scale", "deployment", "web", "--replicas=1")
    shop.wait(10)
    assert works(shop)


def test_a_headless_service_names_its_pods(shop: Operator) -> None:
    shop.apply(service(clusterIP="None"))
    shop.wait(5)
    answer = shop.kubectl("exec", "client", "--", "dig", "+short", "web.default.svc.cluster.local")
    assert sorted(answer.split()) == sorted(pod["status"]["podIP"] for pod in shop.pods("app=web"))
    shop.kubectl("scale", "deployment", "web", "--replicas=0")
    shop.wait(40)
    result = curl(shop)
    assert result.code == 6
    assert "Could not resolve host: web" in result.err


def test_an_external_name_is_another_name(shop: Operator) -> None:
    shop.apply(service(), {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "alias"},
        "spec": {"type": "ExternalName", "externalName": "web.default.svc.cluster.local"},
    })  # fmt: skip
    shop.wait(5)
    assert shop.row("service", "alias")["EXTERNAL-IP"] == "web.default.svc.cluster.local"
    assert works(shop, "http://alias")
    lookup = shop.kubectl("exec", "client", "--", "dig", "alias.default.svc.cluster.local")
    assert "CNAME" in lookup
    assert "web.default.svc.cluster.local." in lookup


def test_a_node_port_opens_on_every_node(shop: Operator) -> None:
    shop.apply(service(type="NodePort", ports=[{"port": 80, "nodePort": 30080}]))
    shop.wait(5)
    addresses = [row["address"] for node in shop.get("nodes")["items"] for row in node["status"]["addresses"]
                 if row["type"] == "InternalIP"]  # fmt: skip
    assert all(works(shop, f"http://{address}:30080") for address in addresses)
    refusal = shop.fails("create", "service", "nodeport", "other", "--tcp=80", "--node-port=30080")
    assert "spec.ports[0].nodePort: Invalid value: 30080: provided port is already allocated" in refusal


def test_a_load_balancer_nobody_provides_stays_pending(shop: Operator) -> None:
    shop.apply(service(type="LoadBalancer"))
    shop.wait(30)
    assert shop.row("service", "web")["EXTERNAL-IP"] == "<pending>"


# Policies

DENY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress]
"""

ALLOW = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: allow-client}
spec:
  podSelector: {matchLabels: {app: web}}
  ingress:
  - from: [{podSelector: {matchLabels: {app: client}}}]
    ports: [{port: 80}]
"""


def test_a_policy_that_allows_nothing_makes_callers_wait_in_vain(shop: Operator) -> None:
    shop.apply(service())
    shop.wait(5)
    assert works(shop)
    shop.apply(DENY)
    shop.wait(5)
    result = curl(shop)
    assert result.code == 28
    assert "timed out" in result.err
    assert shop.row("deployment", "web")["READY"] == "2/2", "probes and pods do not notice"
    shop.apply(ALLOW)
    shop.wait(5)
    assert works(shop)
    shop.kubectl("label", "pod", "client", "app=stranger", "--overwrite")
    shop.wait(5)
    assert curl(shop).code == 28
    shop.kubectl("delete", "networkpolicy", "--all")
    shop.wait(5)
    assert works(shop)


def test_a_policy_on_egress_cuts_off_names_too(shop: Operator) -> None:
    shop.apply(service())
    shop.apply("""
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: out}
spec:
  podSelector: {matchLabels: {app: client}}
  policyTypes: [Egress]
  egress:
  - to: [{podSelector: {matchLabels: {app: web}}}]
""")
    shop.wait(5)
    result = curl(shop)
    assert result.code in (6, 28), "the name servers are out of reach"
    address = shop.pods("app=web")[0]["status"]["podIP"]
    assert works(shop, f"http://{address}")
    allow_dns = (
        '[{"op":"add","path":"/spec/egress/-","value":{"to":[{"namespaceSelector":{}}],'
        '"ports":[{"protocol":"UDP","port":53},{"protocol":"TCP","port":53}]}}]'
    )
    shop.kubectl("patch", "networkpolicy", "out", "--type=json", "-p", allow_dns)
    shop.wait(5)
    assert works(shop)


# Names


def test_without_dns_servers_no_name_resolves(shop: Operator) -> None:
    shop.apply(service())
    shop.wait(5)
    shop.kubectl("scale", "deployment", "coredns", "-n", "kube-system", "--replicas=0")
    shop.wait(10)
    result = curl(shop)
    assert result.code in (6, 28)
    address = shop.path("{.spec.clusterIP}", "service", "web")
    assert works(shop, f"http://{address}"), "addresses still work"
    shop.kubectl("scale", "deployment", "coredns", "-n", "kube-system", "--replicas=2")
    shop.wait(60)
    assert works(shop)


def corefile(operator: Operator, stanza: str) -> None:
    """Put a stanza into the Corefile, as `kubectl edit` would, and let CoreDNS notice."""
    found = operator.get("configmap", "coredns", "-n", "kube-system")
    text = found["data"]["Corefile"]
    found["data"]["Corefile"] = text.replace("    ready\n", f"    ready\n{stanza}", 1)
    assert found["data"]["Corefile"] != text
    operator.apply(found)
    operator.wait(150)


def test_a_template_in_the_corefile_denies_a_name(shop: Operator) -> None:
    shop.apply(service())
    shop.wait(5)
    before = shop.get("configmap", "coredns", "-n", "kube-system")
    corefile(shop, "    template ANY ANY web.default.svc.cluster.local {\n        rcode NXDOMAIN\n    }\n")
    result = curl(shop)
    assert result.code == 6
    assert "Could not resolve host: web" in result.err
    lookup = shop.kubectl("exec", "client", "--", "dig", "web.default.svc.cluster.local")
    assert "status: NXDOMAIN" in lookup
    shop.apply({**before, "metadata": {"name": "coredns", "namespace": "kube-system"}})
    shop.wait(150)
    assert works(shop)


def test_a_corefile_that_cannot_be_read_is_noticed_at_the_next_start(shop: Operator) -> None:
    shop.apply(service())
    shop.wait(5)
    corefile(shop, "    no_such_plugin\n")
    assert works(shop), "a server that runs keeps the configuration it has"
    logs = shop.kubectl("logs", "-n", "kube-system", "-l", "k8s-app=kube-dns", "--tail=-1")
    assert "Unknown directive 'no_such_plugin'" in logs
    shop.kubectl("rollout", "restart", "deployment/coredns", "-n", "kube-system")
    shop.wait(60)
    statuses = {shop.row("pod", pod["metadata"]["name"], "-n", "kube-system")["STATUS"]
                for pod in shop.pods("k8s-app=kube-dns", namespace="kube-system")}  # fmt: skip
    assert statuses & {"CrashLoopBackOff", "Error"}


# kube-proxy


def test_without_kube_proxy_a_node_learns_of_nothing_new(shop: Operator) -> None:
    shop.apply(service())
    shop.wait(5)
    nowhere = '{"spec":{"template":{"spec":{"nodeSelector":{"no":"node"}}}}}'
    shop.kubectl("patch", "daemonset", "kube-proxy", "-n", "kube-system", "-p", nowhere)
    shop.wait(60)
    assert shop.pods("k8s-app=kube-proxy", namespace="kube-system") == []
    assert works(shop), "rules that were written stay"
    shop.kubectl("rollout", "restart", "deployment/web")
    shop.wait(60)
    assert shop.row("deployment", "web")["READY"] == "2/2"
    assert not works(shop), "they lead to pods that are gone"
    back = '[{"op":"remove","path":"/spec/template/spec/nodeSelector/no"}]'
    shop.kubectl("patch", "daemonset", "kube-proxy", "-n", "kube-system", "--type=json", "-p", back)
    shop.wait(60)
    assert works(shop)
