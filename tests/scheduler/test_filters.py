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
    assert bench.why_not("p") == '0/1 nodes are available: persistentvolumeclaim "data" not found. not found'


def test_a_claim_of_an_ephemeral_volume_is_waited_for(bench: Bench) -> None:
    bench.node("a")
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    bench.pod("p", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": claim}}])
    bench.settle()
    assert bench.why_not("p") == (
        "0/1 nodes are available: waiting for ephemeral volume controller to create "
        'the persistentvolumeclaim "p-v". not found'
    )


def _only_on(*names: str) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(names)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def test_nodes_that_affinity_does_not_name_are_not_looked_at(bench: Bench) -> None:
    for name in ("a", "b", "c"):
        bench.node(name, cpu="1")
    bench.pod("first", cpu="1", affinity=_only_on("a"))
    bench.settle()
    bench.pod("second", cpu="1", affinity=_only_on("a"))
    bench.settle()
    assert bench.why_not("second") == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
        "no new claims to deallocate, preemption: 0/3 nodes are available: "
        "1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
    )


def test_a_claim_for_one_pod_keeps_a_second_from_every_node(bench: Bench) -> None:
    bench.node("a")
    bench.node("b")
    storage = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "later"}}
    storage |= {"provisioner": "example.com/disk", "volumeBindingMode": "WaitForFirstConsumer"}
    bench.client.create("storageclasses.storage.k8s.io", storage)
    wanted = {"accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {**wanted, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/data"}, "storageClassName": "later"}
    volume.pop("resources")
    claim = {**wanted, "storageClassName": "later", "volumeName": "disk"}
    for kind, name, spec in (("PersistentVolume", "disk", volume), ("PersistentVolumeClaim", "data", claim)):
        obj = {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        if kind == "PersistentVolumeClaim":
            obj["metadata"] = {"name": name, "namespace": "default"}
        stored = bench.client.create(f"{kind.lower()}s", obj)
        bench.client.set_status(f"{kind.lower()}s", stored, {"phase": "Bound"})
    mounts = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]
    bench.pod("first", volumes=mounts)
    bench.settle()
    bench.pod("second", volumes=mounts)
    bench.settle()
    assert bench.why_not("second") == (
        "0/2 nodes are available: 2 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access "
        "mode already in-use by another pod. " + NO_VICTIMS.format(n=2)
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
    bench.settle(299)
    assert len(bench.events("FailedScheduling")) == 1
    # The first failure changed the pod's status, so the second tells of another version of the pod.
    bench.settle(40)
    first, second = bench.events("FailedScheduling")
    assert (first["message"], first["action"]) == (second["message"], "Scheduling")
    assert "series" not in second
    bench.settle(330)
    (series,) = [event["series"] for event in bench.events("FailedScheduling") if "series" in event]
    assert series["count"] == 2


def test_a_long_explanation_is_cut_in_the_event_only(bench: Bench) -> None:
    for number in range(40):
        taint = {"key": f"example.com/reserved-for-team-number-{number}", "value": "", "effect": "NoSchedule"}
        bench.node(f"n{number}", taints=[taint])
    bench.pod("p")
    bench.settle()
    (event,) = bench.events("FailedScheduling")
    assert len(event["message"]) == 1024 and event["message"].endswith(" ...")
    assert len(bench.why_not("p")) > 1024


def test_the_condition_names_the_generation_it_speaks_of(bench: Bench) -> None:
    bench.pod("p")
    bench.settle()
    (scheduled,) = bench.get("p")["status"]["conditions"]
    assert scheduled["observedGeneration"] == 1
    assert "lastProbeTime" in scheduled and scheduled["lastProbeTime"] is None
