"""Pods that others take away, or do not let in: by name alone, from dead nodes, under too many budgets, in batches."""

from __future__ import annotations

import pytest

from srearena.cluster.embedded.objects import Obj, condition, key_of, uid_of

from .bench import Bench, template, workload

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


@pytest.fixture
def bench() -> Bench:
    return Bench(nodes=1)


def lone_pod(bench: Bench, **spec: object) -> Obj:
    bench.create("pods", {"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {**template()["spec"], **spec}})
    bench.advance(5)
    return bench.the("pods", "p")


def test_eviction_for_a_taint_is_told_by_name_alone(bench: Bench) -> None:
    pod = lone_pod(bench)
    bench.kubelets.stop_seconds = 600
    bench.change("nodes", "node-1", spec__taints=[{"key": "dead", "effect": "NoExecute"}])
    bench.advance(2)
    (event,) = [e for e in bench.list("events") if e["reason"] == "TaintManagerEviction"]
    assert event["involvedObject"] == {"kind": "Pod", "namespace": "default", "name": "p", "apiVersion": "v1"}
    assert event["message"] == f"Marking for deletion Pod {key_of(pod)}"
    target = condition(bench.the("pods", "p"), "DisruptionTarget") or {}
    assert (target["reason"], target["message"], target["observedGeneration"]) == (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
        1,
    )


def test_pods_leave_a_node_out_of_service_without_its_kubelet(bench: Bench) -> None:
    bench.kubelets.stop_seconds = 10_000
    bench.kubelets.fails = lambda pod: True
    lone_pod(bench)
    bench.silent_nodes.add("node-1")
    bench.advance(60)
    bench.delete("pods", "p")
    bench.advance(120)
    assert bench.get("pods", "p") is not None
    bench.edit("nodes", "node-1", lambda node: node["spec"]["taints"].append(OUT_OF_SERVICE))
    bench.advance(30)
    assert bench.get("pods", "p") is None


def test_a_disruption_that_did_not_happen_is_forgotten(bench: Bench) -> None:
    pod = lone_pod(bench)
    target = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    target["lastTransitionTime"] = bench.world.clock.timestamp()
    status = {**pod["status"], "conditions": [*pod["status"]["conditions"], target]}
    bench.client.set_status("pods", pod, status)
    bench.advance(110)
    assert bench.condition("pods", "p", "DisruptionTarget") == ("True", "EvictionByEvictionAPI", "")
    bench.advance(15)
    assert bench.condition("pods", "p", "DisruptionTarget") == ("False", "", "")


def test_a_node_that_says_itself_that_it_is_not_ready_speaks_for_itself(bench: Bench) -> None:
    bench.set_ready(bench.the("nodes", "node-1"), "False")
    bench.advance(20)
    assert "NodeNotReady" not in {reason for _, reason, _ in bench.events("nodes", "node-1")}
    bench.set_ready(bench.the("nodes", "node-1"), "True")
    bench.silent_nodes.add("node-1")
    bench.advance(70)
    event = ("Normal", "NodeNotReady", "Node node-1 status is now: NodeNotReady")
    assert event in bench.events("nodes", "node-1")


def test_a_pod_under_two_budgets_is_told_so(bench: Bench) -> None:
    for name in ("one", "two"):
        spec = {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1}
        bench.create("poddisruptionbudgets.policy", {"metadata": {"name": name}, "spec": spec})
    lone_pod(bench)
    text = 'Pod "default"/"p" matches multiple PodDisruptionBudgets.  Chose "one" arbitrarily.'
    assert ("Warning", "MultiplePodDisruptionBudgets", text) in bench.events("pods", "p")


def test_a_pod_without_a_controller_is_adopted_by_the_set_that_selects_it(bench: Bench) -> None:
    pod = lone_pod(bench)
    bench.create("replicasets.apps", workload("web", replicas=1))
    bench.advance(5)
    (owner,) = bench.the("pods", "p")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("ReplicaSet", "web")
    assert [uid_of(each) for each in bench.pods()] == [uid_of(pod)]


def test_a_batch_of_pods_is_tried_as_a_whole(bench: Bench) -> None:
    bench.create("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "3"}}})
    bench.advance(2)
    bench.create("replicasets.apps", workload("web", replicas=9))
    refused: set[str] = set()
    while not refused:
        bench.advance(0.001)
        refused = {e["message"] for e in bench.list("events") if e["reason"] == "FailedCreate"}
    # One, two, then four at once, of which none is let in.
    assert len(bench.pods()) == 3
    assert len(refused) == 4
