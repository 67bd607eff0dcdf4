"""StatefulSets: order, identity, claims, revisions, partitions, and rollouts that are stuck for good reason."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.objects import dig, is_terminating, labels_of, name_of, uid_of
from tests.controllers.bench import Bench, template, workload

SETS = "statefulsets.apps"
CLAIMS = "persistentvolumeclaims"
REVISIONS = "controllerrevisions.apps"
HASH = "controller-revision-hash"


def make(bench: Bench, replicas: int = 3, **spec: Any) -> None:
    bench.create(SETS, workload("db", serviceName="db", replicas=replicas, **spec))


def with_claims(**more: Any) -> dict[str, Any]:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return {"volumeClaimTemplates": [claim], **more}


def names(bench: Bench) -> list[str]:
    return [name_of(pod) for pod in bench.pods()]


def set_image(bench: Bench, image: str) -> None:
    bench.edit(SETS, "db", lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image=image))


def images(bench: Bench) -> list[str]:
    return [dig(pod, "spec", "containers", 0, "image") for pod in bench.pods()]


def test_pods_come_up_one_after_the_other_with_names_of_their_own(bench: Bench) -> None:
    make(bench)
    bench.advance(0.5)
    assert names(bench) == ["db-0"]
    bench.advance(1)
    assert names(bench) == ["db-0", "db-1"]
    bench.advance(5)
    assert names(bench) == ["db-0", "db-1", "db-2"]
    pod = bench.the("pods", "db-1")
    revision = bench.list(REVISIONS)[0]
    assert labels_of(pod) == {
        "app": "db",
        HASH: name_of(revision),
        "statefulset.kubernetes.io/pod-name": "db-1",
        "apps.kubernetes.io/pod-index": "1",
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("db-1", "db")
    assert bench.the(SETS, "db")["status"] == {
        "observedGeneration": 1,
        "replicas": 3,
        "readyReplicas": 3,
        "currentReplicas": 3,
        "updatedReplicas": 3,
        "availableReplicas": 3,
        "currentRevision": name_of(revision),
        "updateRevision": name_of(revision),
        "collisionCount": 0,
    }
    assert bench.events(SETS, "db") == [
        ("Normal", "SuccessfulCreate", f"create Pod db-{n} in StatefulSet db successful") for n in range(3)
    ]
    assert bench.sources("SuccessfulCreate") == {"statefulset-controller"}


def test_a_pod_that_is_not_ready_holds_up_the_next(bench: Bench) -> None:
    bench.kubelets.fails = lambda pod: name_of(pod) == "db-1"
    make(bench)
    bench.advance(60)
    assert names(bench) == ["db-0", "db-1"]


def test_parallel_pods_do_not_wait(bench: Bench) -> None:
    bench.kubelets.fails = lambda pod: True
    make(bench, podManagementPolicy="Parallel")
    bench.advance(0.5)
    assert names(bench) == ["db-0", "db-1", "db-2"]
    bench.change(SETS, "db", spec__replicas=0)
    bench.advance(0.5)
    assert all(is_terminating(pod) for pod in bench.pods())


def test_each_pod_has_claims_that_survive_it(bench: Bench) -> None:
    make(bench, 2, **with_claims())
    bench.advance(10)
    claims = {name_of(claim): claim for claim in bench.list(CLAIMS)}
    assert sorted(claims) == ["data-db-0", "data-db-1"]
    assert labels_of(claims["data-db-0"]) == {"app": "db"}
    assert bench.the("pods", "db-0")["spec"]["volumes"][0] == {
        "name": "data",
        "persistentVolumeClaim": {"claimName": "data-db-0"},
    }
    assert ("Normal", "SuccessfulCreate", "create Claim data-db-0 Pod db-0 in StatefulSet db success") in bench.events(
        SETS, "db"
    )
    before = uid_of(claims["data-db-1"])
    bench.delete("pods", "db-1")
    bench.change(SETS, "db", spec__replicas=1)
    bench.advance(10)
    assert names(bench) == ["db-0"]
    assert uid_of(bench.the(CLAIMS, "data-db-1")) == before
    bench.delete(SETS, "db")
    bench.advance(10)
    assert len(bench.list(CLAIMS)) == 2


def test_claims_go_when_the_policy_says_so(bench: Bench) -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    make(bench, 2, **with_claims(persistentVolumeClaimRetentionPolicy=policy))
    bench.advance(10)
    owners = [dig(claim, "metadata", "ownerReferences", 0, "kind") for claim in bench.list(CLAIMS)]
    assert owners == ["StatefulSet", "StatefulSet"]
    bench.change(SETS, "db", spec__replicas=1)
    bench.advance(10)
    assert [name_of(claim) for claim in bench.list(CLAIMS)] == ["data-db-0"]
    bench.delete(SETS, "db")
    bench.advance(10)
    assert bench.list(CLAIMS) == []


def test_scaling_down_takes_the_last_first_and_waits(bench: Bench) -> None:
    make(bench)
    bench.advance(10)
    bench.kubelets.stop_seconds = 5
    bench.change(SETS, "db", spec__replicas=1)
    bench.advance(1)
    assert [name_of(pod) for pod in bench.pods() if is_terminating(pod)] == ["db-2"]
    bench.advance(5)
    assert [name_of(pod) for pod in bench.pods() if is_terminating(pod)] == ["db-1"]
    bench.advance(5)
    assert names(bench) == ["db-0"]


def test_a_rolling_update_goes_from_the_last_to_the_first(bench: Bench) -> None:
    make(bench)
    bench.advance(10)
    old = bench.the(SETS, "db")["status"]["currentRevision"]
    set_image(bench, "nginx:1.26")
    bench.advance(2)
    status = bench.the(SETS, "db")["status"]
    assert status["currentRevision"] == old != status["updateRevision"]
    assert images(bench)[0] == "nginx:1.25"
    bench.advance(20)
    assert images(bench) == ["nginx:1.26"] * 3
    status = bench.the(SETS, "db")["status"]
    assert status["currentRevision"] == status["updateRevision"] != old
    deleted = [text for _, reason, text in bench.events(SETS, "db") if reason == "SuccessfulDelete"]
    assert deleted == [f"delete Pod db-{n} in StatefulSet db successful" for n in (2, 1, 0)]


def test_a_partition_keeps_the_pods_below_it(bench: Bench) -> None:
    make(bench, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
    bench.advance(10)
    set_image(bench, "nginx:1.26")
    bench.advance(20)
    assert images(bench) == ["nginx:1.25", "nginx:1.25", "nginx:1.26"]
    status = bench.the(SETS, "db")["status"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    bench.delete("pods", "db-0")
    bench.advance(10)
    assert images(bench) == ["nginx:1.25", "nginx:1.25", "nginx:1.26"]  # it came back as it was
    bench.change(SETS, "db", spec__updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    bench.advance(20)
    assert images(bench) == ["nginx:1.26"] * 3


def test_on_delete_waits_for_the_operator(bench: Bench) -> None:
    make(bench, updateStrategy={"type": "OnDelete"})
    bench.advance(10)
    set_image(bench, "nginx:1.26")
    bench.advance(20)
    assert images(bench) == ["nginx:1.25"] * 3
    bench.delete("pods", "db-1")
    bench.advance(10)
    assert images(bench) == ["nginx:1.25", "nginx:1.26", "nginx:1.25"]


def test_a_broken_revision_stays_stuck_after_undo_until_its_pod_is_deleted(bench: Bench) -> None:
    make(bench)
    bench.advance(10)
    bench.kubelets.fails = lambda pod: dig(pod, "spec", "containers", 0, "image") == "nginx:broken"
    set_image(bench, "nginx:broken")
    bench.advance(30)
    assert images(bench) == ["nginx:1.25", "nginx:1.25", "nginx:broken"]
    set_image(bench, "nginx:1.25")
    bench.advance(60)
    assert images(bench) == ["nginx:1.25", "nginx:1.25", "nginx:broken"]
    bench.delete("pods", "db-2")
    bench.advance(20)
    assert images(bench) == ["nginx:1.25"] * 3
    numbers = sorted(revision["revision"] for revision in bench.list(REVISIONS))
    assert numbers == [2, 3]  # the first came back as the third


def test_a_pod_that_ended_is_made_again(bench: Bench) -> None:
    make(bench, 1)
    bench.advance(5)
    before = uid_of(bench.the("pods", "db-0"))
    bench.finish(bench.the("pods", "db-0"), "Failed", exit_code=1)
    bench.advance(5)
    assert uid_of(bench.the("pods", "db-0")) != before
    assert ("Normal", "SuccessfulDelete", "delete Pod db-0 in StatefulSet db successful") in bench.events(SETS, "db")


def test_a_refused_pod_is_said_to_be_so(bench: Bench) -> None:
    bench.create("resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    bench.advance(2)
    make(bench, 1)
    bench.advance(2)
    (kind, reason, text), *_ = bench.events(SETS, "db")
    assert (kind, reason) == ("Warning", "FailedCreate")
    assert text.startswith('create Pod db-0 in StatefulSet db failed error: pods "db-0" is forbidden: exceeded quota')


def test_a_claim_on_its_way_out_is_waited_for(bench: Bench) -> None:
    claim = {"metadata": {"name": "data-db-0", "finalizers": ["example.com/hold"]}, "spec": {}}
    claim["spec"] = with_claims()["volumeClaimTemplates"][0]["spec"]
    bench.create(CLAIMS, claim)
    bench.delete(CLAIMS, "data-db-0")
    make(bench, 1, **with_claims())
    bench.advance(2)
    assert bench.events(SETS, "db")[0] == (
        "Warning",
        "FailedCreate",
        "create Pod db-0 in StatefulSet db failed error: pvc data-db-0 is being deleted",
    )
    bench.edit(CLAIMS, "data-db-0", lambda obj: obj["metadata"].update(finalizers=[]))
    bench.advance(5)
    assert names(bench) == ["db-0"]


def test_ordinals_may_start_elsewhere(bench: Bench) -> None:
    make(bench, 2, ordinals={"start": 5})
    bench.advance(10)
    assert names(bench) == ["db-5", "db-6"]


def test_pods_are_adopted_by_a_set_made_again(bench: Bench) -> None:
    make(bench, 2)
    bench.advance(10)
    before = {uid_of(pod) for pod in bench.pods()}
    bench.delete(SETS, "db", propagation="Orphan")
    bench.advance(5)
    make(bench, 2)
    bench.advance(10)
    assert {uid_of(pod) for pod in bench.pods()} == before
    assert len(bench.list(REVISIONS)) == 1


def test_a_pod_with_fitting_labels_but_another_name_is_left_alone(bench: Bench) -> None:
    bench.create("pods", {"metadata": {"name": "other", "labels": {"app": "db"}}, "spec": template()["spec"]})
    make(bench, 1)
    bench.advance(5)
    assert "ownerReferences" not in bench.the("pods", "other")["metadata"]
    assert bench.the(SETS, "db")["status"]["replicas"] == 1


def test_old_revisions_are_forgotten(bench: Bench) -> None:
    make(bench, 1, revisionHistoryLimit=1)
    for minor in range(26, 31):
        set_image(bench, f"nginx:1.{minor}")
        bench.advance(10)
    assert len(bench.list(REVISIONS)) == 2


def test_a_partition_counts_from_the_first_ordinal(bench: Bench) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    make(bench, replicas=2, ordinals={"start": 5}, updateStrategy=strategy)
    bench.advance(10)
    set_image(bench, "nginx:1.26")
    bench.advance(30)
    assert names(bench) == ["db-5", "db-6"]
    assert images(bench) == ["nginx:1.25", "nginx:1.26"]
