"""What anyone does first: look around, run something, look at it, take it down."""

from __future__ import annotations

from .operator import Operator


def test_a_new_cluster_is_up_and_quiet(operator: Operator) -> None:
    nodes = operator.get("nodes")["items"]
    assert [node["metadata"]["name"] for node in nodes] == ["control-plane", "worker-1", "worker-2", "worker-3"]
    pods = operator.get("pods", "-A")["items"]
    assert {pod["status"]["phase"] for pod in pods} == {"Running"}
    ready = [c["status"] for pod in pods for c in pod["status"]["conditions"] if c["type"] == "Ready"]
    assert ready == ["True"] * len(pods)
    warnings = operator.get("events", "-A", "--field-selector", "type=Warning")["items"]
    assert {event["reason"] for event in warnings} <= {"Unhealthy"}, "only probes that came before their server"


def test_a_deployment_comes_up_serves_and_goes(operator: Operator) -> None:
    operator.kubectl("create", "deployment", "web", "--image=nginx:1.27", "--replicas=2", "--port=80")
    operator.kubectl("expose", "deployment", "web", "--port=80")
    operator.wait(30)
    assert operator.columns("deployment", "web")[1][:4] == ["web", "2/2", "2", "2"]
    operator.kubectl("run", "client", "--image=busybox:1.36", "--restart=Never", "--", "sleep", "3600")
    operator.wait(15)
    page = operator.kubectl("exec", "client", "--", "wget", "-qO-", "http://web")
    assert "Welcome to nginx" in page
    operator.kubectl("delete", "deployment", "web")
    operator.wait(40)
    assert operator.pods("app=web") == []
