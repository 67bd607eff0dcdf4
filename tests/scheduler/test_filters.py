"""Why a pod is not placed, filter by filter, in the scheduler's own words."""

from __future__ import annotations

from typing import Any

import pytest

from .conftest import Bench

NOT_HELPFUL = (
    "no new claims to deallocate, preemption: 0/{n} nodes are available: {n} Preemption is not helpful for scheduling."
)
NO_VICTIMS = (
    "no new claims to deallocate, preemption: 0/{n} nodes are available: "
    "{n} No preemption victims found for incoming pod."
)


def test_a_pod_goes_to_a_node_and_an_event_says_so(bench: Bench) -> None:
    bench.node("a")
    bench.pod("p")
    bench.settle()
    assert bench.node_of("p") == "a"
    (event,) = bench.events("Scheduled")
    assert event["message"] == "Successfully assigned default/p to a"
    assert event["reportingComponent"] == "default-scheduler"


def test_without_nodes_the_pod_waits_for_one(bench: Bench) -> None:
    bench.pod("p")
    bench.settle()
    assert bench.why_not("p") == "no nodes available to schedule pods"
    bench.node("a")
    bench.settle(2)
    assert bench.node_of("p") == "a"


def test_insufficient_resources_are_counted_per_node(bench: Bench) -> None:
    bench.node("a", cpu="1")
    bench.node("b", cpu="2", memory="1Gi")
    bench.pod("p", cpu="3", memory="2Gi")
    bench.settle()
    assert bench.why_not(
        "p"
    ) == "0/2 nodes are available: 1 Insufficient memory, 2 Insufficient cpu. " + NOT_HELPFUL.format(n=2)


def test_a_full_node_frees_up_when_a_pod_goes(bench: Bench) -> None:
    bench.node("a", cpu="1")
    bench.pod("first", cpu="800m")
    bench.settle()
    bench.pod("second", cpu="800m")
    bench.settle()
    assert bench.why_not("second") == "0/1 nodes are available: 1 Insufficient cpu. " + NO_VICTIMS.format(n=1)
    bench.client.delete("pods", bench.get("first"), grace_seconds=0)
    bench.settle(2)
    assert bench.node_of("second") == "a"


def test_pod_count_limits_a_node(bench: Bench) -> None:
    bench.node("a", pods=1)
    bench.pod("one")
    bench.settle()
    bench.pod("two")
    bench.settle()
    assert bench.why_not("two").startswith("0/1 nodes are available: 1 Too many pods. ")


def test_taints_keep_pods_away_unless_tolerated(bench: Bench) -> None:
    bench.node("a", taints=[{"key": "dedicated", "value": "db", "effect": "NoSchedule"}])
    bench.pod("p")
    bench.pod("q", tolerations=[{"key": "dedicated", "operator": "Equal", "value": "db", "effect": "NoSchedule"}])
    bench.settle()
    assert bench.why_not("p") == (
        "0/1 nodes are available: 1 node(s) had untolerated taint {dedicated: db}. " + NOT_HELPFUL.format(n=1)
    )
    assert bench.node_of("q") == "a"


def test_a_cordoned_node_takes_nothing_until_uncordoned(bench: Bench) -> None:
    bench.node("a")
    bench.client.modify("nodes", "", "a", lambda node: node["spec"].update(unschedulable=True))
    bench.pod("p")
    bench.settle()
    assert bench.why_not("p").startswith("0/1 nodes are available: 1 node(s) were unschedulable. ")
    bench.client.modify("nodes", "", "a", lambda node: node["spec"].pop("unschedulable"))
    bench.settle(2)
    assert bench.node_of("p") == "a"


@pytest.mark.parametrize(
    "demand",
    [
        {"nodeSelector": {"disk": "ssd"}},
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}]}
                        ]
                    }
                }
            }
        },
    ],
)
def test_node_selectors_and_affinity(bench: Bench, demand: dict[str, Any]) -> None:
    bench.node("a")
    bench.pod("p", **demand)
    bench.settle()
    assert bench.why_not("p").startswith(
        "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. "
    )
    bench.node("b", disk="ssd")
    bench.settle(2)
    assert bench.node_of("p") == "b"


def test_host_ports_are_taken_once_per_node(bench: Bench) -> None:
    bench.node("a")
    port = [{"containerPort": 9100, "hostPort": 9100, "protocol": "TCP"}]
    bench.pod("one", ports=port)
    bench.settle()
    bench.pod("two", ports=port)
    bench.settle()
    assert bench.why_not("two").startswith(
        "0/1 nodes are available: 1 node(s) didn't have free ports for the requested pod ports. "
    )


def _apart(app: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def test_anti_affinity_wants_a_node_per_pod(bench: Bench) -> None:
    bench.node("a")
    bench.node("b")
    for name in ("one", "two", "three"):
        bench.pod(name, labels={"app": "x"}, affinity=_apart("x"))
        bench.settle()
    assert {bench.node_of("one"), bench.node_of("two")} == {"a", "b"}
    assert bench.why_not("three").startswith(
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. "
    )


def test_existing_pods_keep_others_away(bench: Bench) -> None:
    bench.node("a")
    bench.pod("recluse", affinity=_apart("noisy"))
    bench.settle()
    bench.pod("noisy", labels={"app": "noisy"})
    bench.settle()
    assert bench.why_not("noisy").startswith(
        "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules. "
    )


def test_affinity_joins_the_others_and_the_first_may_start(bench: Bench) -> None:
    bench.node("a")
    bench.node("b")
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for name in ("one", "two", "three"):
        bench.pod(name, labels={"app": "x"}, affinity=together)
        bench.settle()
    assert bench.node_of("one") is not None
    assert bench.node_of("one") == bench.node_of("two") == bench.node_of("three")
    bench.pod(
        "stranger",
        labels={"app": "y"},
        affinity={
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"labelSelector": {"matchLabels": {"app": "nobody"}}, "topologyKey": "kubernetes.io/hostname"}
                ]
            }
        },
    )
    bench.settle()
    assert bench.why_not("stranger").startswith("0/2 nodes are available: 2 node(s) didn't match pod affinity rules. ")


def test_topology_spread_keeps_the_skew(bench: Bench) -> None:
    bench.node("a", zone="east")
    bench.node("b", zone="west", cpu="100m")
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "x"}},
    }
    for name in ("one", "two", "three"):
        bench.pod(name, labels={"app": "x"}, cpu="90m", topologySpreadConstraints=[constraint])
        bench.settle()
    assert {bench.node_of("one"), bench.node_of("two")} == {"a", "b"}
    bench.pod("four", labels={"app": "x"}, cpu="90m", topologySpreadConstraints=[constraint])
    bench.settle()
    assert bench.why_not("four") == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match pod topology spread constraints. "
        + NO_VICTIMS.format(n=2)
    )


def test_a_missing_claim_stops_the_pod_everywhere(bench: Bench) -> None:
    bench.node("a")
    bench.pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    bench.settle()
    assert bench.why_not("p") == (
        '0/1 nodes are available: persistentvolumeclaim "data" not found. ' + NOT_HELPFUL.format(n=1)
    )


def test_gated_pods_are_not_tried(bench: Bench) -> None:
    bench.node("a")
    bench.pod("p", schedulingGates=[{"name": "example.com/wait"}])
    bench.settle()
    assert bench.why_not("p") == "Scheduling is blocked due to non-empty scheduling gates"
    assert bench.events("FailedScheduling") == []
    bench.client.modify("pods", "default", "p", lambda pod: pod["spec"].pop("schedulingGates"))
    bench.settle()
    assert bench.node_of("p") == "a"


def test_pods_of_another_scheduler_are_left_alone(bench: Bench) -> None:
    bench.node("a")
    bench.pod("p", schedulerName="mine")
    bench.settle()
    assert bench.node_of("p") is None
    assert bench.events("FailedScheduling") == []


def test_repeated_failures_become_a_series(bench: Bench) -> None:
    bench.node("a", cpu="1")
    bench.pod("big", cpu="4")
    bench.settle(301)
    (event,) = bench.events("FailedScheduling")
    assert event["series"]["count"] == 2
