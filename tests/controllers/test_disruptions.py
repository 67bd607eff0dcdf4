"""Pods that others take away, or do not let in: by name alone, from dead nodes, under too many budgets, in batches."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.objects import Obj, condition, key_of, uid_of

from .stage import Stage, template, workload

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


@pytest.fixture
def stage() -> Stage:
    return Stage(nodes=1)


def lone_pod(stage: Stage, **spec: object) -> Obj:
    stage.create("pods", {"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {**template()["spec"], **spec}})
    stage.advance(5)
    return stage.the("pods", "p")


def test_eviction_for_a_taint_is_told_by_name_alone(stage: Stage) -> None:
    pod = lone_pod(stage)
    stage.kubelets.stop_seconds = 600
    stage.change("nodes", "node-1", spec__taints=[{"key": "dead", "effect": "NoExecute"}])
    stage.advance(2)
    (event,) = [e for e in stage.list("events") if e["reason"] == "TaintManagerEviction"]
    assert event["involvedObject"] == {"kind": "Pod", "namespace": "default", "name": "p", "apiVersion": "v1"}
    assert event["message"] == f"Marking for deletion Pod {key_of(pod)}"
    target = condition(stage.the("pods", "p"), "DisruptionTarget") or {}
    assert (target["reason"], target["message"], target["observedGeneration"]) == (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
        1,
    )


def test_pods_leave_a_node_out_of_service_without_its_kubelet(stage: Stage) -> None:
    stage.kubelets.stop_seconds = 10_000
    stage.kubelets.fails = lambda pod: True
    lone_pod(stage)
    stage.silent_nodes.add("node-1")
    stage.advance(60)
    stage.delete("pods", "p")
    stage.advance(120)
    assert stage.get("pods", "p") is not None
    stage.edit("nodes", "node-1", lambda node: node["spec"]["taints"].append(OUT_OF_SERVICE))
    stage.advance(30)
    assert stage.get("pods", "p") is None


def test_a_disruption_that_did_not_happen_is_forgotten(stage: Stage) -> None:
    pod = lone_pod(stage)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    target["lastTransitionTime"] = stage.world.clock.timestamp()
    status = {**pod["status"], "conditions": [*pod["status"]["conditions"], target]}
    stage.client.set_status("pods", pod, status)
    stage.advance(110)
    assert stage.condition("pods", "p", "DisruptionTarget") == ("True", "EvictionByEvictionAPI", "")
    stage.advance(15)
    assert stage.condition("pods", "p", "DisruptionTarget") == ("False", "", "")


def test_a_node_that_says_itself_that_it_is_not_ready_speaks_for_itself(stage: Stage) -> None:
    stage.set_ready(stage.the("nodes", "node-1"), "False")
    stage.advance(20)
    assert "NodeNotReady" not in {reason for _, reason, _ in stage.events("nodes", "node-1")}
    stage.set_ready(stage.the("nodes", "node-1"), "True")
    stage.silent_nodes.add("node-1")
    stage.advance(70)
    told = ("Normal", "NodeNotReady", "Node node-1 status is now: NodeNotReady")
    assert told in stage.events("nodes", "node-1")


def test_a_pod_under_two_budgets_is_told_so(stage: Stage) -> None:
    for name in ("one", "two"):
        spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
        stage.create("poddisruptionbudgets.policy", {"metadata": {"name": name}, "spec": spec})
    lone_pod(stage)
    text = 'Pod "default"/"p" matches multiple PodDisruptionBudgets.  Chose "one" arbitrarily.'
    assert ("Warning", "MultiplePodDisruptionBudgets", text) in stage.events("pods", "p")


def test_a_pod_without_a_controller_is_adopted_by_the_set_that_selects_it(stage: Stage) -> None:
    pod = lone_pod(stage)
    stage.create("replicasets.apps", workload("web", replicas=1))
    stage.advance(5)
    (owner,) = stage.the("pods", "p")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("ReplicaSet", "web")
    assert [uid_of(each) for each in stage.pods()] == [uid_of(pod)]


def test_a_batch_of_pods_is_tried_as_a_whole(stage: Stage) -> None:
    stage.create("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "3"}}})
    stage.advance(2)
    stage.create("replicasets.apps", workload("web", replicas=9))
    refused: set[str] = set()
    while not refused:
        stage.advance(0.001)
        refused = {e["message"] for e in stage.list("events") if e["reason"] == "FailedCreate"}
    # One, two, then four at once, of which none is let in.
    assert len(stage.pods()) == 3
    assert len(refused) == 4
