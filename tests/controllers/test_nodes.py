"""Nodes that fall silent or are tainted, and what becomes of the pods on them."""

from __future__ import annotations

from srearena.cluster.embedded.objects import condition, dig, is_terminating, name_of
from tests.controllers.stage import Stage, template, workload

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def taints(stage: Stage, node: str) -> set[tuple[str, str]]:
    return {(t["key"], t["effect"]) for t in dig(stage.the("nodes", node), "spec", "taints", default=())}


def silence(stage: Stage, *nodes: str) -> None:
    """The kubelets stop: no lease, no status, nobody ends pods."""
    stage.silent_nodes.update(nodes)
    stage.kubelets.idle = lambda pod: dig(pod, "spec", "nodeName") in stage.silent_nodes


def wake(stage: Stage, node: str) -> None:
    stage.silent_nodes.discard(node)
    stage.set_ready(stage.the("nodes", node), "True")


def test_new_nodes_are_registered(stage: Stage) -> None:
    text = "Node node-1 event: Registered Node node-1 in Controller"
    assert stage.events("nodes", "node-1") == [("Normal", "RegisteredNode", text)]
    assert stage.sources("RegisteredNode") == {"node-controller"}


def test_a_silent_node_becomes_unknown_tainted_and_its_pods_unready(stage: Stage) -> None:
    stage.create("deployments.apps", workload(replicas=3))
    stage.advance(5)
    (pod,) = [pod for pod in stage.pods() if pod["spec"]["nodeName"] == "node-2"]
    silence(stage, "node-2")
    stage.advance(39)
    assert stage.condition("nodes", "node-2", "Ready")[0] == "True"  # type: ignore[index]
    stage.advance(12)
    node = stage.the("nodes", "node-2")
    for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
        assert stage.condition("nodes", "node-2", kind) == (
            "Unknown",
            "NodeStatusUnknown",
            "Kubelet stopped posting node status.",
        )
    assert taints(stage, "node-2") == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert all("timeAdded" in taint for taint in node["spec"]["taints"])
    assert (condition(stage.the("pods", name_of(pod)), "Ready") or {})["status"] == "False"
    assert ("Warning", "NodeNotReady", "Node is not ready") in stage.events("pods", name_of(pod))
    text = "Node node-2 status is now: NodeNotReady"
    assert ("Normal", "NodeNotReady", text) in stage.events("nodes", "node-2")


def test_pods_leave_an_unreachable_node_after_five_minutes_and_linger(stage: Stage) -> None:
    stage.create("deployments.apps", workload(replicas=3))
    stage.advance(5)
    (pod,) = [pod for pod in stage.pods() if pod["spec"]["nodeName"] == "node-2"]
    silence(stage, "node-2")
    stage.advance(340)
    assert not is_terminating(stage.the("pods", name_of(pod)))
    stage.advance(20)
    doomed = stage.the("pods", name_of(pod))
    assert is_terminating(doomed)
    text = f"Marking for deletion Pod default/{name_of(pod)}"
    assert ("Normal", "TaintManagerEviction", text) in stage.events("pods", name_of(pod))
    assert stage.sources("TaintManagerEviction") == {"taint-eviction-controller"}
    found = condition(doomed, "DisruptionTarget") or {}
    assert (found["reason"], found["message"]) == (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    stage.advance(5)
    running = [p for p in stage.pods() if p["status"]["phase"] == "Running" and not is_terminating(p)]
    assert len(running) == 3  # replaced elsewhere
    stage.advance(600)
    assert stage.get("pods", name_of(pod)) is not None  # until its kubelet or an operator lets it go
    stage.delete("nodes", "node-2")
    stage.advance(61)
    assert stage.get("pods", name_of(pod)) is None


def test_a_node_that_comes_back_in_time_keeps_its_pods(stage: Stage) -> None:
    stage.create("deployments.apps", workload(replicas=3))
    stage.advance(5)
    before = {name_of(pod) for pod in stage.pods()}
    silence(stage, "node-2")
    stage.advance(200)
    (pod,) = [pod for pod in stage.pods() if pod["spec"]["nodeName"] == "node-2"]
    wake(stage, "node-2")
    stage.advance(1)
    assert taints(stage, "node-2") == set()
    text = f"Cancelling deletion of Pod default/{name_of(pod)}"
    assert ("Normal", "TaintManagerEviction", text) in stage.events("pods", name_of(pod))
    stage.advance(600)
    assert {name_of(pod) for pod in stage.pods()} == before


def test_a_node_that_says_it_is_not_ready_gets_the_other_taint(stage: Stage) -> None:
    stage.set_ready(stage.the("nodes", "node-1"), "False")
    stage.advance(1)
    assert taints(stage, "node-1") == {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}
    stage.set_ready(stage.the("nodes", "node-1"), "True")
    stage.advance(1)
    assert taints(stage, "node-1") == set()


def test_pressure_and_cordons_keep_new_pods_away(stage: Stage) -> None:
    def press(node: dict[str, object]) -> None:
        status = node["status"]
        assert isinstance(status, dict)
        next(c for c in status["conditions"] if c["type"] == "DiskPressure")["status"] = "True"

    stage.client.modify("nodes", "", "node-1", press, "status")
    stage.change("nodes", "node-1", spec__unschedulable=True)
    stage.advance(1)
    assert taints(stage, "node-1") == {
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    }
    stage.change("nodes", "node-1", spec__unschedulable=False)
    stage.advance(1)
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") not in taints(stage, "node-1")


def test_taints_of_others_are_left_alone(stage: Stage) -> None:
    own = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    stage.change("nodes", "node-1", spec__taints=[own])
    silence(stage, "node-1")
    stage.advance(70)
    assert ("dedicated", "NoSchedule") in taints(stage, "node-1")
    assert (UNREACHABLE, "NoExecute") in taints(stage, "node-1")
    wake(stage, "node-1")
    stage.advance(1)
    assert stage.the("nodes", "node-1")["spec"]["taints"] == [own]


def test_where_every_node_is_silent_nobody_is_driven_out(stage: Stage) -> None:
    stage.create("deployments.apps", workload(replicas=3))
    stage.advance(5)
    silence(stage, "node-1", "node-2", "node-3")
    stage.advance(900)
    for node in ("node-1", "node-2", "node-3"):
        assert taints(stage, node) == {(UNREACHABLE, "NoSchedule")}
    assert not any(is_terminating(pod) for pod in stage.pods())
    wake(stage, "node-1")
    stage.advance(30)
    driven = [n for n in ("node-2", "node-3") if (UNREACHABLE, "NoExecute") in taints(stage, n)]
    assert driven == ["node-2", "node-3"]


def test_most_of_a_small_zone_gone_holds_evictions_back() -> None:
    stage = Stage(nodes=4)
    silence(stage, "node-1", "node-2", "node-3")
    stage.advance(300)
    assert all((UNREACHABLE, "NoSchedule") in taints(stage, f"node-{n}") for n in (1, 2, 3))
    assert sum((UNREACHABLE, "NoExecute") in taints(stage, f"node-{n}") for n in (1, 2, 3)) <= 2


def test_nodes_of_a_zone_are_given_up_one_every_ten_seconds() -> None:
    stage = Stage(nodes=8)
    silence(stage, "node-1", "node-2")
    stage.advance(55)
    given_up = [n for n in (1, 2) if (UNREACHABLE, "NoExecute") in taints(stage, f"node-{n}")]
    assert len(given_up) == 1
    stage.advance(11)
    assert all((UNREACHABLE, "NoExecute") in taints(stage, f"node-{n}") for n in (1, 2))


def test_an_intolerable_taint_evicts_at_once_and_a_tolerable_one_later(stage: Stage) -> None:
    patient = [{"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
    steadfast = [{"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}]
    for name, tolerations in (("none", []), ("patient", patient), ("steadfast", steadfast)):
        spec = template(tolerations=tolerations, nodeName="node-1")["spec"]
        stage.create("pods", {"metadata": {"name": name}, "spec": spec})
    stage.advance(3)
    stage.change("nodes", "node-1", spec__taints=[{"key": "maintenance", "effect": "NoExecute"}])
    stage.advance(3)
    assert sorted(name_of(pod) for pod in stage.pods()) == ["patient", "steadfast"]
    stage.advance(56)
    assert sorted(name_of(pod) for pod in stage.pods()) == ["patient", "steadfast"]
    stage.advance(5)
    assert [name_of(pod) for pod in stage.pods()] == ["steadfast"]


def test_a_deleted_node_is_said_goodbye_to(stage: Stage) -> None:
    stage.delete("nodes", "node-3")
    stage.advance(1)
    text = "Node node-3 event: Removing Node node-3 from Controller"
    assert ("Normal", "RemovingNode", text) in stage.events("nodes", "node-3")
