"""Pods that find no node, each filter in the scheduler's own words, and pods that make room for themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .operator import Operator

TAINTED = "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }"
PREEMPTION = "no new claims to deallocate, preemption: 0/4 nodes are available: "
NOT_HELPFUL = PREEMPTION + "4 Preemption is not helpful for scheduling."
# Every node has a pod of node-exporter, which has no priority: without it, pods of the class `low` would still not fit.
TOO_SMALL_VICTIMS = PREEMPTION + "1 Preemption is not helpful for scheduling, 3 Insufficient cpu."
NO_VICTIMS = PREEMPTION + "1 Preemption is not helpful for scheduling, 3 No preemption victims found for incoming pod."


def pod(
    name: str = "app", *, labels: dict[str, str] | None = None, requests: Any = None, **spec: Any
) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "app", "image": "registry.k8s.io/pause:3.10"}
    if requests:
        container["resources"] = {"requests": requests}
    if "ports" in spec:
        container["ports"] = spec.pop("ports")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **spec},
    }


def why_pending(operator: Operator, name: str = "app") -> str:
    """What the pod's condition and its newest event agree on."""
    row = operator.row("pod", name, "-o", "wide")
    assert (row["STATUS"], row["NODE"], row["READY"]) == ("Pending", "<none>", "0/1")
    scheduled = operator.condition("PodScheduled", "pod", name)
    assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
    assert operator.events(name)[-1] == ("Warning", "FailedScheduling", scheduled["message"])
    message: str = scheduled["message"]
    return message


def runs_on(operator: Operator, name: str = "app") -> str:
    row = operator.row("pod", name, "-o", "wide")
    assert row["STATUS"] == "Running", row
    assert operator.condition("PodScheduled", "pod", name)["status"] == "True"
    return row["NODE"]


def test_more_processor_than_any_node_has(operator: Operator) -> None:
    operator.apply(pod(requests={"cpu": "100", "memory": "1Gi"}))
    operator.wait(3)
    assert why_pending(operator) == f"0/4 nodes are available: {TAINTED}, 3 Insufficient cpu. {NOT_HELPFUL}"
    operator.kubectl("delete", "pod", "app")
    operator.apply(pod(requests={"cpu": "100", "memory": "1Ti"}))
    operator.wait(3)
    assert why_pending(operator) == (
        f"0/4 nodes are available: {TAINTED}, 3 Insufficient cpu, 3 Insufficient memory. {NOT_HELPFUL}"
    )


def test_full_nodes_take_another_pod_when_one_leaves(operator: Operator) -> None:
    operator.apply(*[pod(f"big-{number}", requests={"cpu": "5"}) for number in range(3)])
    operator.wait(5)
    assert {runs_on(operator, f"big-{number}") for number in range(3)} == {"worker-1", "worker-2", "worker-3"}
    operator.apply(pod(requests={"cpu": "5"}))
    operator.wait(3)
    assert why_pending(operator) == f"0/4 nodes are available: {TAINTED}, 3 Insufficient cpu. {NO_VICTIMS}"
    operator.kubectl("delete", "pod", "big-1")
    operator.wait(20)
    assert runs_on(operator)


def test_an_extended_resource_that_no_node_offers(operator: Operator) -> None:
    wanted = pod()
    wanted["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "1"}}
    operator.apply(wanted)
    operator.wait(3)
    assert why_pending(operator) == f"0/4 nodes are available: {TAINTED}, 3 Insufficient nvidia.com/gpu. {NOT_HELPFUL}"


def test_a_node_selector_that_no_node_matches_until_one_is_labelled(operator: Operator) -> None:
    operator.apply(pod(nodeSelector={"disk": "ssd"}))
    operator.wait(3)
    assert why_pending(operator) == (
        f"0/4 nodes are available: {TAINTED}, 3 node(s) didn't match Pod's node affinity/selector. {NOT_HELPFUL}"
    )
    operator.kubectl("label", "node", "worker-2", "disk=ssd")
    operator.wait(15)
    assert runs_on(operator) == "worker-2"


def test_node_affinity_that_no_node_satisfies(operator: Operator) -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["eu-1", "eu-2"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    operator.apply(pod(affinity={"nodeAffinity": required}))
    operator.wait(3)
    assert "3 node(s) didn't match Pod's node affinity/selector." in why_pending(operator)
    operator.kubectl("label", "node", "worker-3", "zone=eu-2")
    operator.wait(15)
    assert runs_on(operator) == "worker-3"


def test_taints_that_are_not_tolerated_are_named(operator: Operator) -> None:
    operator.kubectl("taint", "nodes", "worker-1", "worker-2", "dedicated=db:NoSchedule")
    operator.kubectl("taint", "nodes", "worker-3", "maintenance:NoExecute")
    operator.wait(2)
    operator.apply(pod())
    operator.wait(3)
    assert why_pending(operator) == (
        f"0/4 nodes are available: 1 node(s) had untolerated taint {{maintenance: }}, {TAINTED}, "
        f"2 node(s) had untolerated taint {{dedicated: db}}. {NOT_HELPFUL}"
    )
    operator.kubectl("taint", "nodes", "worker-2", "dedicated-")
    operator.wait(15)
    assert runs_on(operator) == "worker-2"


def test_cordoned_nodes_are_unschedulable(operator: Operator) -> None:
    operator.kubectl("cordon", "worker-1", "worker-2", "worker-3")
    operator.apply(pod())
    operator.wait(3)
    assert why_pending(operator) == (f"0/4 nodes are available: {TAINTED}, 3 node(s) were unschedulable. {NOT_HELPFUL}")
    assert operator.row("node", "worker-1")["STATUS"] == "Ready,SchedulingDisabled"
    operator.kubectl("uncordon", "worker-1")
    operator.wait(15)
    assert runs_on(operator) == "worker-1"


def test_a_host_port_is_free_once_per_node(operator: Operator) -> None:
    ports = [{"containerPort": 80, "hostPort": 8080}]
    operator.apply(*[pod(f"web-{number}", ports=ports) for number in range(3)])
    operator.wait(5)
    operator.apply(pod(ports=ports))
    operator.wait(3)
    assert why_pending(operator) == (
        f"0/4 nodes are available: {TAINTED}, "
        f"3 node(s) didn't have free ports for the requested pod ports. {NO_VICTIMS}"
    )
    node = runs_on(operator, "web-0")
    operator.kubectl("delete", "pod", "web-0")
    operator.wait(15)
    assert runs_on(operator) == node


def test_pods_that_keep_apart(operator: Operator) -> None:
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    operator.apply(*[pod(f"db-{number}", labels={"app": "db"}, affinity=apart) for number in range(3)])
    operator.wait(5)
    operator.apply(pod("app", labels={"app": "db"}, affinity=apart), pod("bystander", labels={"app": "db"}))
    operator.wait(3)
    assert why_pending(operator) == (
        f"0/4 nodes are available: {TAINTED}, 3 node(s) didn't match pod anti-affinity rules. {NO_VICTIMS}"
    )
    assert why_pending(operator, "bystander") == (
        f"0/4 nodes are available: {TAINTED}, 3 node(s) didn't satisfy existing pods anti-affinity rules. {NO_VICTIMS}"
    )
    operator.kubectl("label", "pod", "bystander", "app=web", "--overwrite")
    operator.wait(15)
    assert runs_on(operator, "bystander")


def test_a_pod_that_wants_company_waits_for_it(operator: Operator) -> None:
    near = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
    }
    operator.apply(pod(affinity=near))
    operator.wait(3)
    assert why_pending(operator) == (
        f"0/4 nodes are available: {TAINTED}, 3 node(s) didn't match pod affinity rules. {NOT_HELPFUL}"
    )
    operator.apply(pod("cache", labels={"app": "cache"}, nodeName="worker-3"))
    operator.wait(15)
    assert runs_on(operator) == "worker-3"


def test_spread_constraints(operator: Operator) -> None:
    for number, zone in ((1, "a"), (2, "b"), (3, "b")):
        operator.kubectl("label", "node", f"worker-{number}", f"zone={zone}")

    def spread(key: str) -> list[dict[str, Any]]:
        selector = {"matchLabels": {"app": "web"}}
        return [{"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}]

    operator.apply(
        pod("one", labels={"app": "web"}, nodeSelector={"zone": "a"}),
        pod("two", labels={"app": "web"}, nodeSelector={"zone": "a"}),
    )
    operator.wait(5)
    operator.apply(
        pod("app", labels={"app": "web"}, topologySpreadConstraints=spread("zone")),
        pod("racked", labels={"app": "web"}, topologySpreadConstraints=spread("rack")),
    )
    operator.wait(5)
    assert runs_on(operator) in ("worker-2", "worker-3")
    assert why_pending(operator, "racked") == (
        f"0/4 nodes are available: {TAINTED}, "
        f"3 node(s) didn't match pod topology spread constraints (missing required label). {NOT_HELPFUL}"
    )
    operator.kubectl("cordon", "worker-2", "worker-3")
    operator.apply(pod("late", labels={"app": "web"}, topologySpreadConstraints=spread("zone")))
    operator.wait(5)
    assert why_pending(operator, "late") == (
        f"0/4 nodes are available: 1 node(s) didn't match pod topology spread constraints, {TAINTED}, "
        f"2 node(s) were unschedulable. {PREEMPTION}1 No preemption victims found for incoming pod, "
        "3 Preemption is not helpful for scheduling."
    )
    operator.kubectl("uncordon", "worker-2")
    operator.wait(15)
    assert runs_on(operator, "late") == "worker-2"


def test_too_many_pods(make_operator: Any) -> None:
    operator = make_operator(nodes=1)
    operator.kubectl("create", "deployment", "many", "--image=registry.k8s.io/pause:3.10", "--replicas=120")
    operator.wait(30)
    pending = [p for p in operator.pods("app=many") if p["status"]["phase"] == "Pending"]
    taken = len(operator.get("pods", "-A", "--field-selector=spec.nodeName=worker-1")["items"])
    assert taken == 110
    assert pending
    [message] = {condition["message"] for p in pending for condition in p["status"]["conditions"]}
    assert message == (
        f"0/2 nodes are available: 1 Too many pods, {TAINTED}. no new claims to deallocate, preemption: "
        "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    operator.kubectl("scale", "deployment", "many", "--replicas=50")
    operator.wait(60)
    assert operator.row("deployment", "many")["READY"] == "50/50"


def test_a_node_that_does_not_exist_is_never_tried(operator: Operator) -> None:
    operator.apply(pod(nodeName="worker-9"))
    operator.wait(60)
    assert operator.run("get", "pod", "app").code != 0, "garbage collected: nobody will ever run it"


def test_a_gated_pod_waits_for_its_gate(operator: Operator) -> None:
    operator.apply(pod(schedulingGates=[{"name": "acme.io/quota"}]))
    operator.wait(3)
    assert operator.printed_status("app") == "SchedulingGated"
    scheduled = operator.condition("PodScheduled", "pod", "app")
    assert (scheduled["status"], scheduled["reason"]) == ("False", "SchedulingGated")
    assert scheduled["message"] == "Scheduling is blocked due to non-empty scheduling gates"
    operator.kubectl("patch", "pod", "app", "--type=json", "-p", '[{"op":"remove","path":"/spec/schedulingGates"}]')
    operator.wait(5)
    assert runs_on(operator)


def test_another_scheduler_s_pods_are_left_alone(operator: Operator) -> None:
    operator.apply(pod(schedulerName="my-scheduler"))
    operator.wait(30)
    assert operator.printed_status("app") == "Pending"
    assert operator.events("app") == []
    assert "conditions" not in operator.get("pod", "app")["status"]


# Preemption


def classes(operator: Operator) -> None:
    operator.kubectl("create", "priorityclass", "high", "--value=1000")
    operator.kubectl("create", "priorityclass", "low", "--value=10")
    operator.kubectl("create", "priorityclass", "polite", "--value=1000", "--preemption-policy=Never")


def test_an_important_pod_takes_the_place_of_a_lesser_one(operator: Operator) -> None:
    classes(operator)
    operator.apply(*[pod(f"low-{n}", requests={"cpu": "5"}, priorityClassName="low") for n in range(3)])
    operator.wait(5)
    operator.apply(pod("high", requests={"cpu": "5"}, priorityClassName="high"))
    operator.wait(0.05)
    uid = operator.get("pod", "high")["metadata"]["uid"]
    operator.wait(15)
    node = runs_on(operator, "high")
    assert operator.events("high")[0][:2] == ("Warning", "FailedScheduling")
    assert operator.events("high")[0][2] == f"0/4 nodes are available: {TAINTED}, 3 Insufficient cpu."
    left = {p["metadata"]["name"] for p in operator.get("pods")["items"]}
    [victim] = {"low-0", "low-1", "low-2"} - left
    assert ("Normal", "Preempted", f"Preempted by pod {uid} on node {node}") in operator.events(victim)


def test_a_victim_s_end_is_announced_on_its_condition(operator: Operator) -> None:
    classes(operator)
    slow = pod(
        "low", requests={"cpu": "5"}, priorityClassName="low", nodeSelector={"kubernetes.io/hostname": "worker-1"}
    )
    slow["spec"]["terminationGracePeriodSeconds"] = 30
    slow["spec"]["containers"][0] |= {"image": "busybox:1.36", "command": ["sh", "-c", "trap '' TERM; sleep 3600"]}
    operator.apply(slow)
    operator.wait(5)
    operator.apply(
        pod(
            "high", requests={"cpu": "5"}, priorityClassName="high", nodeSelector={"kubernetes.io/hostname": "worker-1"}
        )
    )
    operator.wait(5)
    assert operator.printed_status("low") == "Terminating"
    doomed = operator.condition("DisruptionTarget", "pod", "low")
    assert (doomed["status"], doomed["reason"]) == ("True", "PreemptionByScheduler")
    assert doomed["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    assert operator.row("pod", "high", "-o", "wide")["NOMINATED NODE"] == "worker-1"
    operator.wait(45)
    assert runs_on(operator, "high") == "worker-1"


@pytest.mark.parametrize(
    ("name", "reason"),
    [("polite", "not eligible due to preemptionPolicy=Never."), ("low", None)],
)
def test_who_may_not_preempt_waits(operator: Operator, name: str, reason: str | None) -> None:
    classes(operator)
    operator.apply(*[pod(f"low-{n}", requests={"cpu": "5"}, priorityClassName="low") for n in range(3)])
    operator.wait(5)
    operator.apply(pod("late", requests={"cpu": "5"}, priorityClassName=name))
    operator.wait(30)
    ending = f"no new claims to deallocate, preemption: {reason}" if reason else TOO_SMALL_VICTIMS
    assert why_pending(operator, "late") == f"0/4 nodes are available: {TAINTED}, 3 Insufficient cpu. {ending}"
    assert {operator.printed_status(f"low-{n}") for n in range(3)} == {"Running"}


def test_an_unknown_priority_class_is_refused(operator: Operator) -> None:
    refusal = operator.fails("apply", "-f", "-", stdin=json.dumps(pod(priorityClassName="urgent")))
    assert 'pods "app" is forbidden: no PriorityClass with name urgent was found' in refusal
