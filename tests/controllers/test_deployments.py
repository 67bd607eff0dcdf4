"""Deployments as an operator meets them: rollouts, undo, pause, resizing, deadlines."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.controllers.deployment_rollout import bounds_of, scaled_sizes
from srearena.cluster.embedded.objects import Obj, annotations_of, condition, dig, labels_of, name_of, uid_of
from tests.controllers.bench import Bench, template, workload

DEPLOYMENTS = "deployments.apps"
SETS = "replicasets.apps"
REVISION = "deployment.kubernetes.io/revision"


def sizes(bench: Bench) -> dict[str, int]:
    """Size of each generation, by its revision."""
    return {annotations_of(s)[REVISION]: s["spec"]["replicas"] for s in bench.list(SETS)}


def set_image(bench: Bench, image: str, name: str = "web") -> None:
    bench.edit(DEPLOYMENTS, name, lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image=image))


def scaling(bench: Bench, name: str = "web") -> list[str]:
    return [
        re.sub(r"web-\w+ ", "", text)
        for _, reason, text in bench.events(DEPLOYMENTS, name)
        if reason == "ScalingReplicaSet"
    ]


def test_a_new_deployment_becomes_available(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=3))
    bench.advance(0.1)
    (replica_set,) = bench.list(SETS)
    mark = labels_of(replica_set)["pod-template-hash"]
    assert name_of(replica_set) == f"web-{mark}"
    assert re.fullmatch("[456789bcdf]{6,10}", mark)
    assert replica_set["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": mark}
    assert annotations_of(replica_set) == {
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
        REVISION: "1",
    }
    assert bench.condition(DEPLOYMENTS, "web", "Available") == (
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
    )
    bench.advance(5)
    deployment = bench.the(DEPLOYMENTS, "web")
    assert {k: v for k, v in deployment["status"].items() if k != "conditions"} == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
    }
    assert deployment["metadata"]["generation"] == 1
    assert annotations_of(deployment)[REVISION] == "1"
    assert [c["type"] for c in deployment["status"]["conditions"]] == ["Available", "Progressing"]
    assert bench.condition(DEPLOYMENTS, "web", "Progressing") == (
        "True",
        "NewReplicaSetAvailable",
        f'ReplicaSet "{name_of(replica_set)}" has successfully progressed.',
    )
    assert bench.events(DEPLOYMENTS, "web") == [
        ("Normal", "ScalingReplicaSet", f"Scaled up replica set {name_of(replica_set)} from 0 to 3")
    ]
    assert bench.sources("ScalingReplicaSet") == {"deployment-controller"}


def test_a_rolling_update_surges_and_shrinks_within_its_bounds(bench: Bench) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    bench.create(DEPLOYMENTS, workload(replicas=10, strategy=strategy))
    bench.advance(5)
    seen: list[tuple[int, int]] = []
    set_image(bench, "nginx:1.26")
    for _ in range(200):
        bench.advance(0.05)
        alive = [pod for pod in bench.pods() if not pod["metadata"].get("deletionTimestamp")]
        ready = [pod for pod in alive if (condition(pod, "Ready") or {}).get("status") == "True"]
        seen.append((len(alive), len(ready)))
    assert max(total for total, _ in seen) == 13
    assert min(ready for _, ready in seen) >= 8
    assert sizes(bench) == {"1": 0, "2": 10}
    steps = scaling(bench)
    assert steps[:3] == [
        "Scaled up replica set from 0 to 10",
        "Scaled up replica set from 0 to 3",
        "Scaled down replica set from 10 to 8",
    ]
    assert steps[-1].endswith("to 0")


def test_a_broken_image_stops_the_rollout_and_exceeds_the_deadline(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=4, progressDeadlineSeconds=60))
    bench.advance(5)
    bench.kubelets.fails = lambda pod: dig(pod, "spec", "containers", 0, "image") == "nginx:broken"
    set_image(bench, "nginx:broken")
    bench.advance(55)
    assert sizes(bench) == {"1": 3, "2": 2}  # one over, one under: 25 % of four each
    assert bench.condition(DEPLOYMENTS, "web", "Available") == (
        "True",
        "MinimumReplicasAvailable",
        "Deployment has minimum availability.",
    )
    newest = next(s for s in bench.list(SETS) if annotations_of(s)[REVISION] == "2")
    progressing = bench.condition(DEPLOYMENTS, "web", "Progressing")
    assert progressing == ("True", "ReplicaSetUpdated", f'ReplicaSet "{name_of(newest)}" is progressing.')
    bench.advance(4)
    assert bench.condition(DEPLOYMENTS, "web", "Progressing") == progressing
    bench.advance(4)
    assert bench.condition(DEPLOYMENTS, "web", "Progressing") == (
        "False",
        "ProgressDeadlineExceeded",
        f'ReplicaSet "{name_of(newest)}" has timed out progressing.',
    )
    set_image(bench, "nginx:1.27")
    bench.advance(15)
    assert bench.condition(DEPLOYMENTS, "web", "Progressing")[1] == "NewReplicaSetAvailable"  # type: ignore[index]
    assert sizes(bench) == {"1": 0, "2": 0, "3": 4}


def test_undo_brings_the_old_generation_back_under_a_new_number(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=2))
    bench.advance(5)
    (first,) = bench.list(SETS)
    set_image(bench, "nginx:1.26")
    bench.advance(10)
    set_image(bench, "nginx:1.25")
    bench.advance(10)
    assert sizes(bench) == {"2": 0, "3": 2}
    back = bench.the(SETS, name_of(first))
    assert annotations_of(back)[REVISION] == "3"
    assert annotations_of(back)["deployment.kubernetes.io/revision-history"] == "1"
    assert annotations_of(bench.the(DEPLOYMENTS, "web"))[REVISION] == "3"


def test_a_paused_deployment_does_not_roll_but_resizes(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=2))
    bench.advance(5)
    bench.change(DEPLOYMENTS, "web", spec__paused=True)
    set_image(bench, "nginx:1.26")
    bench.advance(5)
    assert bench.condition(DEPLOYMENTS, "web", "Progressing") == ("Unknown", "DeploymentPaused", "Deployment is paused")
    bench.change(DEPLOYMENTS, "web", spec__replicas=5)
    bench.advance(5)
    assert sizes(bench) == {"1": 5}
    assert bench.the(DEPLOYMENTS, "web")["status"].get("updatedReplicas", 0) == 0
    bench.change(DEPLOYMENTS, "web", spec__paused=False)
    bench.advance(0.02)
    assert bench.condition(DEPLOYMENTS, "web", "Progressing")[1] in ("DeploymentResumed", "NewReplicaSetCreated")  # type: ignore[index]
    bench.advance(15)
    assert sizes(bench) == {"1": 0, "2": 5}


def test_time_spent_paused_does_not_count_against_the_deadline(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=2, progressDeadlineSeconds=30))
    bench.advance(5)
    bench.kubelets.fails = lambda pod: True
    set_image(bench, "nginx:broken")
    bench.advance(5)
    bench.change(DEPLOYMENTS, "web", spec__paused=True)
    bench.advance(300)
    bench.change(DEPLOYMENTS, "web", spec__paused=False)
    bench.advance(20)
    assert bench.condition(DEPLOYMENTS, "web", "Progressing") == (
        "Unknown",
        "DeploymentResumed",
        "Deployment is resumed",
    )
    bench.advance(15)
    assert bench.condition(DEPLOYMENTS, "web", "Progressing")[1] == "ProgressDeadlineExceeded"  # type: ignore[index]


def test_recreate_waits_until_the_last_old_pod_is_gone(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=3, strategy={"type": "Recreate"}))
    bench.advance(5)
    old = {uid_of(pod) for pod in bench.pods()}
    bench.kubelets.stop_seconds = 20
    set_image(bench, "nginx:1.26")
    bench.advance(19)
    assert {uid_of(pod) for pod in bench.pods()} == old
    assert bench.condition(DEPLOYMENTS, "web", "Available")[0] == "False"  # type: ignore[index]
    bench.advance(5)
    assert len(bench.pods()) == 3
    assert not old & {uid_of(pod) for pod in bench.pods()}
    assert sizes(bench) == {"1": 0, "2": 3}


def test_a_resize_in_the_middle_of_a_rollout_is_shared(bench: Bench) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    bench.create(DEPLOYMENTS, workload(replicas=10, strategy=strategy))
    bench.advance(5)
    bench.kubelets.fails = lambda pod: dig(pod, "spec", "containers", 0, "image") == "nginx:broken"
    set_image(bench, "nginx:broken")
    bench.advance(10)
    assert sizes(bench) == {"1": 8, "2": 5}
    bench.change(DEPLOYMENTS, "web", spec__replicas=15)
    bench.advance(5)
    assert sizes(bench) == {"1": 11, "2": 7}  # the well-known example of the documentation


def test_only_as_many_old_generations_are_kept_as_asked_for(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=1, revisionHistoryLimit=2))
    for minor in range(25, 30):
        set_image(bench, f"nginx:1.{minor}")
        bench.advance(10)
    assert sizes(bench) == {"3": 0, "4": 0, "5": 1}


def test_scaling_to_zero_and_back_keeps_the_generation(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=2))
    bench.advance(5)
    bench.change(DEPLOYMENTS, "web", spec__replicas=0)
    bench.advance(5)
    assert bench.pods() == []
    deployment = bench.the(DEPLOYMENTS, "web")
    assert {k for k in deployment["status"] if k != "conditions"} == {"observedGeneration"}
    bench.change(DEPLOYMENTS, "web", spec__replicas=4)
    bench.advance(5)
    assert sizes(bench) == {"1": 4}
    assert scaling(bench) == [
        "Scaled up replica set from 0 to 2",
        "Scaled down replica set from 2 to 0",
        "Scaled up replica set from 0 to 4",
    ]


def test_orphaned_generations_are_adopted_again(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=2))
    bench.advance(5)
    (before,) = bench.list(SETS)
    bench.delete(DEPLOYMENTS, "web", propagation="Orphan")
    bench.advance(5)
    (orphan,) = bench.list(SETS)
    assert not orphan["metadata"].get("ownerReferences")
    assert len(bench.pods()) == 2
    bench.create(DEPLOYMENTS, workload(replicas=2))
    bench.advance(5)
    (after,) = bench.list(SETS)
    assert uid_of(after) == uid_of(before)
    assert after["metadata"]["ownerReferences"][0]["name"] == "web"


def test_pods_that_cannot_be_created_show_up_as_replica_failure(bench: Bench) -> None:
    bench.create("resourcequotas", {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "1"}}})
    bench.advance(2)
    bench.create(DEPLOYMENTS, workload(replicas=3))
    bench.advance(10)
    status, reason, message = bench.condition(DEPLOYMENTS, "web", "ReplicaFailure")  # type: ignore[misc]
    assert (status, reason) == ("True", "FailedCreate")
    assert "is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1" in message
    bench.delete("resourcequotas", "few")
    bench.edit(
        SETS, name_of(bench.list(SETS)[0]), lambda obj: obj["metadata"].setdefault("labels", {}).update(touch="1")
    )
    bench.advance(10)
    assert bench.condition(DEPLOYMENTS, "web", "ReplicaFailure") is None
    assert len(bench.pods()) == 3


def test_min_ready_seconds_hold_availability_back(bench: Bench) -> None:
    bench.create(DEPLOYMENTS, workload(replicas=1, minReadySeconds=30))
    bench.advance(25)
    status = bench.the(DEPLOYMENTS, "web")["status"]
    assert (status["readyReplicas"], status.get("availableReplicas", 0)) == (1, 0)
    bench.advance(10)
    assert bench.the(DEPLOYMENTS, "web")["status"]["availableReplicas"] == 1


def test_annotations_of_the_deployment_reach_the_newest_generation(bench: Bench) -> None:
    body = workload(replicas=1)
    body["metadata"]["annotations"] = {"kubernetes.io/change-cause": "first"}
    bench.create(DEPLOYMENTS, body)
    bench.advance(5)
    assert annotations_of(bench.list(SETS)[0])["kubernetes.io/change-cause"] == "first"
    bench.edit(DEPLOYMENTS, "web", lambda o: o["metadata"]["annotations"].update({"kubernetes.io/change-cause": "2nd"}))
    bench.advance(5)
    assert annotations_of(bench.list(SETS)[0])["kubernetes.io/change-cause"] == "2nd"
    assert annotations_of(bench.list(SETS)[0])[REVISION] == "1"


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (4, "0%", "10%", (0, 1)),
        (0, 1, 0, (1, 0)),
        (3, 0, 5, (0, 3)),
        (3, 0, 0, (0, 1)),
    ],
)
def test_bounds_round_up_and_down(
    replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    body = workload(replicas=replicas, strategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    bounds = bounds_of(body)
    assert (bounds.surge, bounds.unavailable) == expected


@given(
    st.integers(0, 50),
    st.lists(st.integers(1, 40), min_size=2, max_size=5),
    st.integers(0, 10),
)
@settings(max_examples=200, deadline=None)
def test_shares_add_up_to_what_the_deployment_may_have(wanted: int, before: list[int], surge: int) -> None:
    rolling = {"maxSurge": surge, "maxUnavailable": 1}
    deployment = workload(replicas=wanted, strategy={"type": "RollingUpdate", "rollingUpdate": rolling})
    total = sum(before)
    active: list[Obj] = [
        {
            "metadata": {
                "name": f"web-{number}",
                "creationTimestamp": f"2024-01-01T00:00:{number:02}Z",
                "annotations": {"deployment.kubernetes.io/max-replicas": str(total)},
            },
            "spec": {"replicas": size},
        }
        for number, size in enumerate(before)
    ]
    after = scaled_sizes(deployment, active)
    assert all(size >= 0 for size in after.values())
    allowed = wanted + surge if wanted else 0
    assert sum(after.values()) == allowed


def test_a_thousand_replicas_are_created_without_fuss() -> None:
    bench = Bench(kubelets=False)
    bench.create(DEPLOYMENTS, workload(replicas=1000, template=template(labels={"app": "web"})))
    bench.advance(5)
    assert len(bench.pods()) == 1000
    (replica_set,) = bench.list(SETS)
    assert replica_set["status"]["replicas"] == 1000
    messages = [text for _, reason, text in bench.events(SETS, name_of(replica_set)) if reason == "SuccessfulCreate"]
    assert len(messages) <= 26  # the recorder does not say it a thousand times
