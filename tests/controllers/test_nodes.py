"""Nodes that fall silent or are tainted, and what becomes of the pods on them."""

from __future__ import annotations

from srearena.cluster.embedded.objects import condition, dig, is_terminating, name_of
from tests.controllers.bench import Bench, template, workload

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"


def taints(bench: Bench, node: str) -> set[tuple[str, str]]:
    return {(t["key"], t["effect"]) for t in dig(bench.the("nodes", node), "spec", "taints", default=())}


def silence(bench: Bench, *nodes: str) -> None:
    """The kubelets stop: no lease, no status, nobody ends pods."""
    bench.silent_nodes.update(nodes)
    bench.kubelets.idle = lambda pod: dig(pod, "spec", "nodeName") in bench.silent_nodes


def wake(bench: Bench, node: str) -> None:
    bench.silent_nodes.discard(node)
    bench.set_ready(bench.the("nodes", node), "True")


def test_new_nodes_are_registered(bench: Bench) -> None:
    text = "Node node-1 event: Registered Node node-1 in Controller"
    assert bench.events("nodes", "node-1") == [("Normal", "RegisteredNode", text)]
    assert bench.sources("RegisteredNode") == {"node-controller"}


def test_a_silent_node_becomes_unknown_tainted_and_its_pods_unready(bench: Bench) -> None:
    bench.create("deployments.apps", workload(replicas=3))
    bench.advance(5)
    (pod,) = [pod for pod in bench.pods() if pod["spec"]["nodeName"] == "node-2"]
    silence(bench, "node-2")
    bench.advance(39)
    assert bench.condition("nodes", "node-2", "Ready")[0] == "True"  # type: ignore[index]
    bench.advance(12)
    node = bench.the("nodes", "node-2")
    for kind in ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure"):
        assert bench.condition("nodes", "node-2", kind) == (
            "Unknown",
            "NodeStatusUnknown",
            "Kubelet stopped posting node status.",
        )
    assert taints(bench, "node-2") == {(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")}
    assert all("timeAdded" in taint for taint in node["spec"]["taints"])
    assert (condition(bench.the("pods", name_of(pod)), "Ready") or {})["status"] == "False"
    assert ("Warning", "NodeNotReady", "Node is not ready") in bench.events("pods", name_of(pod))
    text = "Node node-2 status is now: NodeNotReady"
    assert ("Normal", "NodeNotReady", text) in bench.events("nodes", "node-2")


def test_pods_leave_an_unreachable_node_after_five_minutes_and_linger(bench: Bench) -> None:
    bench.create("deployments.apps", workload(replicas=3))
    bench.advance(5)
    (pod,) = [pod for pod in bench.pods() if pod["spec"]["nodeName"] == "node-2"]
    silence(bench, "node-2")
    bench.advance(340)
    assert not is_terminating(bench.the("pods", name_of(pod)))
    bench.advance(20)
    doomed = bench.the("pods", name_of(pod))
    assert is_terminating(doomed)
    text = f"Marking for deletion Pod default/{name_of(pod)}"
    assert ("Normal", "TaintManagerEviction", text) in bench.events("pods", name_of(pod))
    assert bench.sources("TaintManagerEviction") == {"taint-eviction-controller"}
    found = condition(doomed, "DisruptionTarget") or {}
    assert (found["reason"], found["message"]) == (
        "DeletionByTaintManager",
        "Taint manager: deleting due to NoExecute taint",
    )
    bench.advance(5)
    running = [p for p in bench.pods() if p["status"]["phase"] == "Running" and not is_terminating(p)]
    assert len(running) == 3  # replaced elsewhere
    bench.advance(600)
    assert bench.get("pods", name_of(pod)) is not None  # until its kubelet or an operator lets it go
    bench.delete("nodes", "node-2")
    bench.advance(61)
    assert bench.get("pods", name_of(pod)) is None


def test_a_node_that_comes_back_in_time_keeps_its_pods(bench: Bench) -> None:
    bench.create("deployments.apps", workload(replicas=3))
    bench.advance(5)
    before = {name_of(pod) for pod in bench.pods()}
    silence(bench, "node-2")
    bench.advance(200)
    (pod,) = [pod for pod in bench.pods() if pod["spec"]["nodeName"] == "node-2"]
    wake(bench, "node-2")
    bench.advance(1)
    assert taints(bench, "node-2") == set()
    text = f"Cancelling deletion of Pod default/{name_of(pod)}"
    assert ("Normal", "TaintManagerEviction", text) in bench.events("pods", name_of(pod))
    bench.advance(600)
    assert {name_of(pod) for pod in bench.pods()} == before


def test_a_node_that_says_it_is_not_ready_gets_the_other_taint(bench: Bench) -> None:
    bench.set_ready(bench.the("nodes", "node-1"), "False")
    bench.advance(1)
    assert taints(bench, "node-1") == {(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")}
    bench.set_ready(bench.the("nodes", "node-1"), "True")
    bench.advance(1)
    assert taints(bench, "node-1") == set()


def test_pressure_and_cordons_keep_new_pods_away(bench: Bench) -> None:
    def press(node: dict[str, object]) -> None:
        status = node["status"]
        assert isinstance(status, dict)
        next(c for c in status["conditions"] if c["type"] == "DiskPressure")["status"] = "True"

    bench.client.modify("nodes", "", "node-1", press, "status")
    bench.change("nodes", "node-1", spec__unschedulable=True)
    bench.advance(1)
    assert taints(bench, "node-1") == {
        ("node.kubernetes.io/disk-pressure", "NoSchedule"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    }
    bench.change("nodes", "node-1", spec__unschedulable=False)
    bench.advance(1)
    assert ("node.kubernetes.io/unschedulable", "NoSchedule") not in taints(bench, "node-1")


def test_taints_of_others_are_left_alone(bench: Bench) -> None:
    own = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    bench.change("nodes", "node-1", spec__taints=[own])
    silence(bench, "node-1")
    bench.advance(70)
    assert ("dedicated", "NoSchedule") in taints(bench, "node-1")
    assert (UNREACHABLE, "NoExecute") in taints(bench, "node-1")
    wake(bench, "node-1")
    bench.advance(1)
    assert bench.the("nodes", "node-1")["spec"]["taints"] == [own]


def test_where_every_node_is_silent_nobody_is_driven_out(bench: Bench) -> None:
    bench.create("deployments.apps", workload(replicas=3))
    bench.advance(5)
    silence(bench, "node-1", "node-2", "node-3")
    bench.advance(900)
    for node in ("node-1", "node-2", "node-3"):
        assert taints(bench, node) == {(UNREACHABLE, "NoSchedule")}
    assert not any(is_terminating(pod) for pod in bench.pods())
    wake(bench, "node-1")
    bench.advance(30)
    driven = [n for n in ("node-2", "node-3") if (UNREACHABLE, "NoExecute") in taints(bench, n)]
    assert driven == ["node-2", "node-3"]


def test_most_of_a_small_zone_gone_holds_evictions_back() -> None:
    bench = Bench(nodes=4)
    silence(bench, "node-1", "node-2", "node-3")
    bench.advance(300)
    assert all((UNREACHABLE, "NoSchedule") in taints(bench, f"node-{n}") for n in (1, 2, 3))
    assert sum((UNREACHABLE, "NoExecute") in taints(bench, f"node-{n}") for n in (1, 2, 3)) <= 2


def test_nodes_of_a_zone_are_given_up_one_every_ten_seconds() -> None:
    bench = Bench(nodes=8)
    silence(bench, "node-1", "node-2")
    bench.advance(55)
    given_up = [n for n in (1, 2) if (UNREACHABLE, "NoExecute") in taints(bench, f"node-{n}")]
    assert len(given_up) == 1
    bench.advance(11)
    assert all((UNREACHABLE, "NoExecute") in taints(bench, f"node-{n}") for n in (1, 2))


def test_an_intolerable_taint_evicts_at_once_and_a_tolerable_one_later(bench: Bench) -> None:
    patient = [{"key": "maintenance", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
    steadfast = [{"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}]
    for name, tolerations in (("none", []), ("patient", patient), ("steadfast", steadfast)):
        spec = template(tolerations=tolerations, nodeName="node-1")["spec"]
        bench.create("pods", {"metadata": {"name": name}, "spec": spec})
    bench.advance(3)
    bench.change("nodes", "node-1", spec__taints=[{"key": "maintenance", "effect": "NoExecute"}])
    bench.advance(3)
    assert sorted(name_of(pod) for pod in bench.pods()) == ["patient", "steadfast"]
    bench.advance(56)
    assert sorted(name_of(pod) for pod in bench.pods()) == ["patient", "steadfast"]
    bench.advance(5)
    assert [name_of(pod) for pod in bench.pods()] == ["steadfast"]


def test_a_deleted_node_is_said_goodbye_to(bench: Bench) -> None:
    bench.delete("nodes", "node-3")
    bench.advance(1)
    text = "Node node-3 event: Removing Node node-3 from Controller"
    assert ("Normal", "RemovingNode", text) in bench.events("nodes", "node-3")
