"""Disruption budgets: drains and evictions that have to wait for other pods to be well."""

from __future__ import annotations

import json

import pytest

from .operator import Operator

EVICTION = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"namespace": "default"}}


def web(operator: Operator, replicas: int = 2) -> None:
    operator.kubectl("create", "deployment", "web", "--image=nginx:1.27", f"--replicas={replicas}")
    operator.wait(20)


def evict(operator: Operator, pod: str) -> str:
    """Ask for an eviction as a drain does; returns what the server said against it."""
    body = {**EVICTION, "metadata": {"name": pod, "namespace": "default"}}
    path = f"/api/v1/namespaces/default/pods/{pod}/eviction"
    return operator.run("create", "--raw", path, "-f", "-", stdin=json.dumps(body)).err


def test_a_budget_shows_what_it_allows(operator: Operator) -> None:
    web(operator, 4)
    operator.kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=3")
    operator.wait(2)
    row = operator.row("pdb", "web")
    assert (row["MIN AVAILABLE"], row["MAX UNAVAILABLE"], row["ALLOWED DISRUPTIONS"]) == ("3", "N/A", "1")
    status = operator.get("pdb", "web")["status"]
    assert (status["currentHealthy"], status["desiredHealthy"], status["expectedPods"]) == (4, 3, 4)
    allowed = operator.condition("DisruptionAllowed", "pdb", "web")
    assert (allowed["status"], allowed["reason"]) == ("True", "SufficientPods")
    operator.kubectl("scale", "deployment", "web", "--replicas=3")
    operator.wait(20)
    assert operator.row("pdb", "web")["ALLOWED DISRUPTIONS"] == "0"
    allowed = operator.condition("DisruptionAllowed", "pdb", "web")
    assert (allowed["status"], allowed["reason"]) == ("False", "InsufficientPods")


def test_an_eviction_against_the_budget_is_too_much(operator: Operator) -> None:
    web(operator)
    operator.kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=2")
    operator.wait(2)
    name = operator.pods("app=web")[0]["metadata"]["name"]
    assert evict(operator, name) == (
        "Error from server (TooManyRequests): Cannot evict pod as it would violate the pod's disruption budget.\n"
    )
    assert operator.printed_status(name) == "Running"
    operator.kubectl("patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"minAvailable":1}}')
    operator.wait(2)
    assert evict(operator, name) == ""
    operator.wait(1)
    doomed = operator.run("get", "pod", name, "-o", "json")
    if doomed.code == 0:  # it may be gone already
        conditions = json.loads(doomed.out)["status"]["conditions"]
        reasons = {row["type"]: row["reason"] for row in conditions if "reason" in row}
        assert reasons["DisruptionTarget"] == "EvictionByEvictionAPI"
    operator.wait(40)
    assert operator.row("deployment", "web")["READY"] == "2/2"
    assert name not in {pod["metadata"]["name"] for pod in operator.pods("app=web")}


def test_a_drain_is_blocked_by_a_budget_and_goes_on_when_it_allows(operator: Operator) -> None:
    web(operator)
    operator.kubectl("create", "pdb", "web", "--selector=app=web", "--min-available=2")
    operator.wait(2)
    node = operator.pods("app=web")[0]["spec"]["nodeName"]
    drain = ("drain", node, "--ignore-daemonsets", "--delete-emptydir-data")
    blocked = operator.run(*drain, "--timeout=1s")
    assert blocked.code != 0
    assert "Cannot evict pod as it would violate the pod's disruption budget." in blocked.err + blocked.out
    assert operator.row("node", node)["STATUS"] == "Ready,SchedulingDisabled"
    assert operator.row("deployment", "web")["READY"] == "2/2"
    operator.kubectl("scale", "deployment", "web", "--replicas=4")
    operator.wait(20)
    with operator.running(*drain) as lines:
        for line in lines:
            operator.wait(10)
            if "drained" in line:
                break
        else:
            pytest.fail("the drain ended without success")
    left = operator.get("pods", "-A", f"--field-selector=spec.nodeName={node}")["items"]
    assert {pod["metadata"]["ownerReferences"][0]["kind"] for pod in left} == {"DaemonSet"}
    operator.kubectl("uncordon", node)
    operator.wait(30)
    assert operator.row("deployment", "web")["READY"] == "4/4"


def test_a_drain_asks_before_it_loses_anything(operator: Operator) -> None:
    operator.kubectl("run", "lonely", "--image=nginx:1.27")
    operator.wait(10)
    node = operator.path("{.spec.nodeName}", "pod", "lonely")
    refusal = operator.fails("drain", node)
    assert "cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): kube-system/kindnet-" in refusal
    assert "cannot delete Pods that declare no controller (use --force to override): default/lonely" in refusal
    with operator.running("drain", node, "--ignore-daemonsets", "--force") as lines:
        for line in lines:
            operator.wait(5)
            if "drained" in line:
                break
    assert operator.run("get", "pod", "lonely").code != 0


def test_unready_pods_may_be_evicted_when_the_budget_says_so(operator: Operator) -> None:
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
      containers:
      - name: web
        image: nginx:1.27
        readinessProbe: {httpGet: {path: /missing, port: 80}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: web}}
""")
    operator.wait(20)
    name = operator.pods("app=web")[0]["metadata"]["name"]
    assert "Cannot evict pod as it would violate the pod's disruption budget." in evict(operator, name)
    operator.kubectl(
        "patch", "pdb", "web", "--type=merge", "-p", '{"spec":{"unhealthyPodEvictionPolicy":"AlwaysAllow"}}'
    )
    operator.wait(2)
    assert evict(operator, name) == ""


def test_two_budgets_on_one_pod_are_an_error(operator: Operator) -> None:
    web(operator)
    operator.kubectl("create", "pdb", "one", "--selector=app=web", "--max-unavailable=1")
    operator.kubectl("create", "pdb", "two", "--selector=app=web", "--max-unavailable=1")
    operator.wait(2)
    name = operator.pods("app=web")[0]["metadata"]["name"]
    assert "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support." in evict(
        operator, name
    )
