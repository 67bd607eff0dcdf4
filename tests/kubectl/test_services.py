"""Services that lead nowhere, and what the caller sees; names that do not resolve; doors that policies close."""

from __future__ import annotations

import json

from .operator import Operator

COREFILE_POISON = """
    template IN A web.default.svc.cluster.local {
      rcode NXDOMAIN
    }
"""


def with_web(operator: Operator, *, port: str = "80") -> Operator:
    operator.kubectl("create", "deployment", "web", "--image=nginx:1.27", "--replicas=2")
    operator.kubectl("expose", "deployment", "web", "--port=80", f"--target-port={port}")
    operator.kubectl("run", "caller", "--image=busybox:1.36", "--labels=role=caller", "--", "sleep", "1d")
    operator.wait(30)
    return operator


def call(operator: Operator, url: str = "http://web", seconds: int = 3) -> tuple[int, str]:
    """(exit code, what wget printed) of one request from the caller's pod."""
    result = operator.run("exec", "caller", "--", "wget", "-T", str(seconds), "-qO-", url)
    return result.code, result.out + result.err


def test_a_service_without_endpoints_refuses(operator: Operator) -> None:
    with_web(operator)
    assert "Welcome to nginx" in call(operator)[1]
    operator.kubectl("scale", "deployment/web", "--replicas=0")
    operator.wait(40)
    assert operator.path("{.items[*].endpoints}", "endpointslices", "-l", "kubernetes.io/service-name=web") in (
        "",
        "[]",
    )
    code, text = call(operator)
    assert code == 1 and "Connection refused" in text
    operator.kubectl("scale", "deployment/web", "--replicas=1")
    operator.wait(20)
    assert call(operator)[0] == 0


def test_a_wrong_selector_finds_nobody(operator: Operator) -> None:
    with_web(operator)
    operator.kubectl("patch", "service", "web", "-p", '{"spec":{"selector":{"app":"web","track":"stable"}}}')
    operator.wait(5)
    assert operator.columns("endpoints", "web")[1][1] == "<none>"
    assert "Connection refused" in call(operator)[1]
    operator.kubectl("set", "selector", "service/web", "app=web")
    operator.wait(5)
    assert call(operator)[0] == 0


def test_a_wrong_target_port_breaks_callers_and_heals_when_fixed(operator: Operator) -> None:
    with_web(operator, port="9999")
    endpoints = operator.columns("endpoints", "web")[1][1]
    assert endpoints.count(":9999") == 2, "the endpoints look fine"
    assert "Connection refused" in call(operator)[1]
    operator.kubectl("patch", "service", "web", "-p", '{"spec":{"ports":[{"port":80,"targetPort":80}]}}')
    operator.wait(5)
    assert call(operator)[0] == 0


def test_named_ports_follow_the_pod(operator: Operator) -> None:
    operator.kubectl("create", "deployment", "web", "--image=nginx:1.27")
    named = (
        '[{"op":"add","path":"/spec/template/spec/containers/0/ports","value":[{"name":"http","containerPort":80}]}]'
    )
    operator.kubectl("patch", "deployment", "web", "--type=json", "-p", named)
    operator.kubectl("expose", "deployment", "web", "--port=80", "--target-port=http")
    operator.kubectl("run", "caller", "--image=busybox:1.36", "--", "sleep", "1d")
    operator.wait(40)
    assert call(operator)[0] == 0
    operator.kubectl("patch", "service", "web", "-p", '{"spec":{"ports":[{"port":80,"targetPort":"web"}]}}')
    operator.wait(5)
    assert call(operator)[0] == 1
    slices = json.loads(
        operator.path("{.items[*].ports}", "endpointslices", "-l", "kubernetes.io/service-name=web") or "[]"
    )
    assert slices == [], "no container has a port of that name"


def test_headless_and_external_names(operator: Operator) -> None:
    with_web(operator)
    operator.kubectl("expose", "deployment", "web", "--name=pods", "--port=80", "--cluster-ip=None")
    operator.kubectl("create", "service", "externalname", "alias", "--external-name=web.default.svc.cluster.local")
    operator.wait(10)
    answer = operator.kubectl("exec", "caller", "--", "nslookup", "-type=a", "pods.default.svc.cluster.local")
    for pod in operator.pods("app=web"):
        assert pod["status"]["podIP"] in answer
    assert call(operator, "http://alias")[0] == 0


def test_network_policies_close_and_open_doors(operator: Operator) -> None:
    with_web(operator)
    operator.apply(
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: shut}\n"
        "spec: {podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}"
    )
    operator.wait(2)
    code, text = call(operator)
    assert code == 1 and "timed out" in text
    operator.apply(
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: ajar}\n"
        "spec:\n  podSelector: {matchLabels: {app: web}}\n"
        "  ingress: [{from: [{podSelector: {matchLabels: {role: caller}}}], ports: [{port: 80}]}]"
    )
    operator.wait(2)
    assert call(operator)[0] == 0
    operator.kubectl("label", "pod", "caller", "role=stranger", "--overwrite")
    operator.wait(2)
    assert "timed out" in call(operator)[1]


def test_without_dns_names_do_not_resolve_but_addresses_work(operator: Operator) -> None:
    with_web(operator)
    operator.kubectl("scale", "deployment/coredns", "-n", "kube-system", "--replicas=0")
    operator.wait(60)
    code, text = call(operator)
    assert code == 1 and "bad address 'web'" in text
    address = operator.path("{.spec.clusterIP}", "service", "web")
    assert call(operator, f"http://{address}")[0] == 0
    operator.kubectl("scale", "deployment/coredns", "-n", "kube-system", "--replicas=2")
    operator.wait(60)
    assert call(operator)[0] == 0


def test_a_poisoned_corefile_hides_one_name(operator: Operator) -> None:
    with_web(operator)
    config = operator.get("configmap", "coredns", "-n", "kube-system")
    healthy = config["data"]["Corefile"]
    poisoned = healthy.replace("    ready\n", f"    ready\n{COREFILE_POISON}")

    def write(text: str) -> None:
        operator.kubectl(
            "patch",
            "configmap",
            "coredns",
            "-n",
            "kube-system",
            "--type=merge",
            "-p",
            json.dumps({"data": {"Corefile": text}}),
        )
        operator.kubectl("rollout", "restart", "deployment/coredns", "-n", "kube-system")
        operator.wait(90)

    write(poisoned)
    assert "bad address 'web'" in call(operator)[1]
    assert "10.96.0.1" in operator.kubectl("exec", "caller", "--", "nslookup", "kubernetes.default.svc.cluster.local")
    write(healthy)
    assert call(operator)[0] == 0


def test_without_kube_proxy_a_node_does_not_hear_of_changes(operator: Operator) -> None:
    with_web(operator)
    node = operator.path("{.spec.nodeName}", "pod", "caller")
    unmatched = '{"spec":{"template":{"spec":{"nodeSelector":{"proxy":"wanted"}}}}}'
    operator.kubectl("patch", "daemonset", "kube-proxy", "-n", "kube-system", "-p", unmatched)
    operator.wait(90)
    on_node = operator.get(
        "pods", "-n", "kube-system", "-l", "k8s-app=kube-proxy", "--field-selector", f"spec.nodeName={node}"
    )
    assert on_node["items"] == []
    assert call(operator)[0] == 0, "the rules of that moment stay"
    operator.kubectl("expose", "deployment", "web", "--name=late", "--port=80")
    operator.wait(10)
    assert call(operator, "http://late")[0] == 1, "a service made since does not exist there"
    operator.kubectl("label", "nodes", "--all", "proxy=wanted")
    operator.wait(60)
    assert call(operator, "http://late")[0] == 0


def test_host_ports_are_taken_once_per_node(operator: Operator) -> None:
    def pod(name: str) -> str:
        return (
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, labels: {{app: holder}}}}\n"
            "spec: {nodeName: '', nodeSelector: {kubernetes.io/hostname: worker-1}, containers: [{name: c, "
            "image: 'nginx:1.27', ports: [{containerPort: 80, hostPort: 8080}]}]}"
        )

    operator.apply(pod("first"), pod("second"))
    operator.wait(20)
    phases = {p["metadata"]["name"]: p["status"]["phase"] for p in operator.pods("app=holder")}
    assert sorted(phases.values()) == ["Pending", "Running"]
    (waiting,) = [name for name, phase in phases.items() if phase == "Pending"]
    (running,) = [name for name, phase in phases.items() if phase == "Running"]
    message = operator.events(waiting)[0][2]
    assert "1 node(s) didn't have free ports for the requested pod ports" in message
    operator.kubectl("delete", "pod", running, "--wait=false")
    operator.wait(60)
    assert operator.path("{.status.phase}", "pod", waiting) == "Running"
