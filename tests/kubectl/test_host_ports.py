"""Ports of the machine itself: who has them, who wants them, and who cannot have them."""

from __future__ import annotations

from typing import Any

from .operator import Operator


def web(name: str, **container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "web", "image": "nginx:1.27", **container}],
            "nodeSelector": {"kubernetes.io/hostname": "worker-1"},
        },
    }


PORTS = {"ports": [{"containerPort": 80, "hostPort": 8080}]}


def test_a_host_port_leads_to_the_pod(operator: Operator) -> None:
    operator.apply(web("web", **PORTS))
    operator.kubectl("run", "client", "--image=busybox:1.36", "--", "sleep", "36000")
    operator.wait(20)
    address = operator.get("node", "worker-1")["status"]["addresses"][0]["address"]
    page = operator.kubectl("exec", "client", "--", "wget", "-qO-", "-T", "3", f"http://{address}:8080")
    assert "Welcome to nginx" in page
    operator.kubectl("delete", "pod", "web")
    operator.wait(10)
    refused = operator.fails("exec", "client", "--", "wget", "-qO-", "-T", "3", f"http://{address}:8080")
    assert "Connection refused" in refused


def test_the_second_pod_that_wants_the_port_waits_for_the_first(operator: Operator) -> None:
    operator.apply(web("first", **PORTS))
    operator.wait(10)
    operator.apply(web("second", **PORTS))
    operator.wait(5)
    message = operator.condition("PodScheduled", "pod", "second")["message"]
    assert message.startswith(
        "0/4 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, "
        "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, "
        "2 node(s) didn't match Pod's node affinity/selector."
    )
    operator.kubectl("delete", "pod", "first")
    operator.wait(15)
    assert operator.printed_status("second") == "Running"


def test_a_rollout_that_surges_cannot_have_the_same_port_twice(operator: Operator) -> None:
    template = web("web", **PORTS)
    operator.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": template["spec"]},
            },
        }
    )
    operator.wait(15)
    operator.kubectl("set", "image", "deployment/web", "web=nginx:1.28")
    operator.wait(60)
    row = operator.row("deployment", "web")
    assert (row["READY"], row["UP-TO-DATE"]) == ("1/1", "1")
    pending = [pod for pod in operator.pods("app=web") if pod["status"]["phase"] == "Pending"]
    assert "didn't have free ports" in pending[0]["status"]["conditions"][0]["message"]
    strategy = '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}'
    operator.kubectl("patch", "deployment", "web", "-p", strategy)
    operator.wait(60)
    [pod] = operator.pods("app=web")
    assert pod["status"]["phase"] == "Running"
    assert pod["spec"]["containers"][0]["image"] == "nginx:1.28"


def test_two_servers_on_the_host_network_cannot_listen_on_one_port(operator: Operator) -> None:
    first, second = web("first"), web("second")
    for pod in (first, second):
        pod["spec"]["hostNetwork"] = True
        pod["spec"]["nodeName"] = "worker-1"
        pod["spec"].pop("nodeSelector")
    operator.apply(first)
    operator.wait(10)
    operator.apply(second)
    operator.wait(60)
    assert operator.printed_status("first") == "Running"
    address = operator.path("{.status.hostIP}", "pod", "first")
    assert operator.path("{.status.podIP}", "pod", "first") == address
    assert operator.printed_status("second") in ("CrashLoopBackOff", "Error")
    logs = operator.kubectl("logs", "second", "--previous")
    assert "bind() to 0.0.0.0:80 failed (98: Address already in use)" in logs
    operator.kubectl("delete", "pod", "first")
    operator.wait(90)
    assert operator.printed_status("second") == "Running"


def test_a_pod_bound_past_the_scheduler_is_turned_away_by_the_kubelet(operator: Operator) -> None:
    operator.apply(web("first", **PORTS))
    operator.wait(10)
    pushy = web("second", **PORTS)
    pushy["spec"]["nodeName"] = "worker-1"
    operator.apply(pushy)
    operator.wait(10)
    status = operator.get("pod", "second")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "NodePorts")
    assert status["message"] == (
        "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    )
    assert operator.printed_status("second") == "NodePorts"
