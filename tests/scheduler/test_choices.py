"""Which node is taken when several would do, and who gives way when none does."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.objects import dig, is_terminating

from .conftest import Bench


def _with_priority(bench: Bench, name: str, priority: int, **spec: object) -> None:
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
