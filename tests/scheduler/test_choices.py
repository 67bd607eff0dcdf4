"""Which node is taken when several would do, and who gives way when none does."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.objects import dig, is_terminating

from .conftest import Bench


def _with_priority(bench: Bench, name: str, priority: int, **spec: Any) -> None:
    bench.pod(name, priority=priority, preemptionPolicy=spec.pop("policy", "PreemptLowerPriority"), **spec)


def test_equal_pods_spread_over_equal_nodes(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.node(name)
    for number in range(9):
        bench.pod(f"p{number}", cpu="100m", memory="64Mi")
    bench.settle()
    assert Counter(bench.node_of(f"p{n}") for n in range(9)) == {"a": 3, "b": 3, "c": 3}


def test_the_emptier_node_is_preferred(bench: Bench) -> None:
    bench.node("busy")
    bench.node("free")
    bench.pod("heavy", cpu="3", memory="6Gi", nodeSelector={"kubernetes.io/hostname": "busy"})
    bench.settle()
    bench.pod("p", cpu="500m", memory="1Gi")
    bench.settle()
    assert bench.node_of("p") == "free"


def test_soft_taints_are_avoided_while_others_are_there(bench: Bench) -> None:
    bench.node("shy", taints=[{"key": "k", "value": "v", "effect": "PreferNoSchedule"}])
    bench.node("open")
    bench.pod("p")
    bench.settle()
    assert bench.node_of("p") == "open"


def test_important_pods_evict_the_least_important(bench: Bench) -> None:
    bench.node("a", cpu="2")
    _with_priority(bench, "low", 0, cpu="1")
    _with_priority(bench, "middle", 10, cpu="1")
    bench.settle()
    _with_priority(bench, "high", 100, cpu="1")
    bench.settle()
    assert is_terminating(bench.get("low"))
    assert not is_terminating(bench.get("middle"))
    assert dig(bench.get("high"), "status", "nominatedNodeName") == "a"
    (event,) = bench.events("Preempted")
    assert event["message"] == f"Preempted by pod {bench.get('high')['metadata']['uid']} on node a"
    bench.client.delete("pods", bench.get("low"), grace_seconds=0)
    bench.settle(2)
    assert bench.node_of("high") == "a"


def test_who_waits_for_its_victims_evicts_nobody_else(bench: Bench) -> None:
    bench.node("a", cpu="1")
    _with_priority(bench, "low", 0, cpu="1", terminationGracePeriodSeconds=600)
    bench.settle()
    _with_priority(bench, "high", 100, cpu="1")
    bench.settle()
    bench.node("b", cpu="500m")
    bench.settle()
    assert bench.why_not("high") == (
        "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, "
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert dig(bench.get("high"), "status", "nominatedNodeName") == "a"


def test_evicting_all_lesser_pods_may_still_not_be_enough(bench: Bench) -> None:
    bench.node("a", cpu="2")
    _with_priority(bench, "low", 0, cpu="500m")
    _with_priority(bench, "equal", 100, cpu="1500m")
    bench.settle()
    _with_priority(bench, "high", 100, cpu="1")
    bench.settle()
    assert bench.why_not("high") == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
        "preemption: 0/1 nodes are available: 1 Insufficient cpu."
    )


def test_a_promise_is_taken_back_when_it_cannot_be_kept(bench: Bench) -> None:
    bench.node("a", cpu="1")
    _with_priority(bench, "low", 0, cpu="1")
    bench.settle()
    _with_priority(bench, "high", 100, cpu="1")
    bench.settle()
    assert dig(bench.get("high"), "status", "nominatedNodeName") == "a"
    bench.client.modify("nodes", "", "a", lambda node: node["spec"].update(unschedulable=True))
    bench.settle(2)
    assert dig(bench.get("high"), "status", "nominatedNodeName") is None


def test_a_more_important_pod_takes_over_the_promised_place(bench: Bench) -> None:
    bench.node("a", cpu="1")
    _with_priority(bench, "low", 0, cpu="1")
    bench.settle()
    _with_priority(bench, "high", 100, cpu="1")
    bench.settle()
    _with_priority(bench, "higher", 200, cpu="1")
    bench.settle()
    assert dig(bench.get("higher"), "status", "nominatedNodeName") == "a"
    assert dig(bench.get("high"), "status", "nominatedNodeName") is None
    bench.client.delete("pods", bench.get("low"), grace_seconds=0)
    bench.settle(2)
    assert bench.node_of("higher") == "a"
    assert bench.node_of("high") is None


def test_the_node_whose_victims_started_last_is_cleared(bench: Bench) -> None:
    for name, started in (("a", "2023-11-14T10:00:00Z"), ("b", "2023-11-14T11:00:00Z")):
        bench.node(name, cpu="1")
        _with_priority(bench, f"low-{name}", 0, cpu="1", nodeSelector={"kubernetes.io/hostname": name})
        bench.settle()
        pod = bench.get(f"low-{name}")
        bench.client.set_status("pods", pod, {**pod["status"], "startTime": started})
    _with_priority(bench, "high", 100, cpu="1")
    bench.settle()
    assert is_terminating(bench.get("low-b"))
    assert not is_terminating(bench.get("low-a"))


def test_pods_guarded_by_a_spent_budget_are_spared(bench: Bench) -> None:
    for name in ("a", "b"):
        bench.node(name, cpu="1")
        labels = {"app": name}
        _with_priority(bench, f"low-{name}", 0, cpu="1", labels=labels, nodeSelector={"kubernetes.io/hostname": name})
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"}}
    budget["metadata"]["namespace"] = "default"  # type: ignore[index]
    budget["spec"] = {"selector": {"matchLabels": {"app": "a"}}, "minAvailable": 1}
    bench.client.create("poddisruptionbudgets.policy", budget)
    bench.settle()
    _with_priority(bench, "high", 100, cpu="1")
    bench.settle()
    assert is_terminating(bench.get("low-b"))
    assert not is_terminating(bench.get("low-a"))


def test_a_pod_that_never_preempts_waits(bench: Bench) -> None:
    bench.node("a", cpu="1")
    _with_priority(bench, "low", 0, cpu="1")
    bench.settle()
    _with_priority(bench, "polite", 100, cpu="1", policy="Never")
    bench.settle()
    assert not is_terminating(bench.get("low"))
    assert bench.why_not("polite").endswith("preemption: not eligible due to preemptionPolicy=Never.")


def test_more_important_pods_are_tried_first(bench: Bench) -> None:
    _with_priority(bench, "low", 0, cpu="1")
    _with_priority(bench, "high", 100, cpu="1")
    bench.settle()
    bench.node("a", cpu="1")
    bench.settle(2)
    assert bench.node_of("high") == "a"
    assert bench.node_of("low") is None


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(min_value=50, max_value=1500), min_size=1, max_size=25),
    nodes=st.lists(st.integers(min_value=500, max_value=4000), min_size=1, max_size=4),
)
def test_no_node_is_ever_overcommitted_and_nobody_waits_for_nothing(sizes: list[int], nodes: list[int]) -> None:
    bench = Bench()
    for number, cpu in enumerate(nodes):
        bench.node(f"n{number}", cpu=f"{cpu}m")
    for number, cpu in enumerate(sizes):
        bench.pod(f"p{number}", cpu=f"{cpu}m")
    bench.settle(20)
    used: Counter[str] = Counter()
    waiting: list[int] = []
    for number, cpu in enumerate(sizes):
        node = bench.node_of(f"p{number}")
        if node is None:
            waiting.append(cpu)
        else:
            used[node] += cpu
    room = {f"n{number}": cpu - used[f"n{number}"] for number, cpu in enumerate(nodes)}
    assert all(left >= 0 for left in room.values())
    assert all(cpu > left for cpu in waiting for left in room.values())
