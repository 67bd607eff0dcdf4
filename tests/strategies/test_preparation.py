"""What the server writes itself when objects are created, changed and deleted."""

from __future__ import annotations

import base64
from copy import deepcopy

import pytest

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import BadRequest
from srearena.cluster.embedded.registry.identity import User
from tests.strategies.server import ROWS, UID, answer, context, options, registry, strategy_of


def _pod(**spec: object) -> Obj:
    containers = [{"name": "web", "image": "web:1"}]
    metadata = {"name": "web", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def _with_resources(*resources: Obj) -> Obj:
    containers = [{"name": f"c{i}", "image": "web:1", "resources": r} for i, r in enumerate(resources)]
    return _pod(containers=containers)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ([{}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {"limits": {"cpu": "2", "memory": "2Gi"}}], "Guaranteed"),
        ([{"limits": {"ephemeral-storage": "1Gi"}}], "BestEffort"),
        ([{"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
    ],
)
def test_a_pod_is_born_pending_with_its_class(resources: list[Obj], expected: str) -> None:
    assert answer(_with_resources(*resources)).obj["status"] == {"phase": "Pending", "qosClass": expected}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.25", "IfNotPresent"),
        ("registry.example.com:5000/team/web", "Always"),
        ("registry.example.com:5000/team/web:v2", "IfNotPresent"),
        ("web@sha256:" + "a" * 64, "IfNotPresent"),
        ("web:latest@sha256:" + "a" * 64, "Always"),
        ("Not A Name", "IfNotPresent"),
        ("a" * 64, "IfNotPresent"),
        ("localhost/web", "Always"),
    ],
)
def test_images_are_pulled_again_where_their_tag_moves(image: str, policy: str) -> None:
    pod = answer(_pod(containers=[{"name": "web", "image": image}])).obj
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_amounts_are_kept_in_canonical_form() -> None:
    pod = answer(_with_resources({"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}})).obj
    resources = pod["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}


def test_what_is_no_amount_cannot_be_read() -> None:
    with pytest.raises(BadRequest) as caught:
        answer(_with_resources({"limits": {"cpu": "lots"}}))
    assert caught.value.message == (
        'Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )


@pytest.mark.parametrize(
    ("spec", "status", "wish", "seconds"),
    [
        ({"nodeName": "n", "terminationGracePeriodSeconds": 45}, {}, {}, 45),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 45}, {}, {"gracePeriodSeconds": 5}, 5),
        ({"nodeName": "n"}, {}, {"gracePeriodSeconds": 0}, 0),
        ({"nodeName": "n"}, {}, {"gracePeriodSeconds": -3}, 1),
        ({"terminationGracePeriodSeconds": 45}, {}, {}, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 45}, {"phase": "Succeeded"}, {}, 0),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 45}, {"phase": "Failed"}, {"gracePeriodSeconds": 9}, 0),
    ],
)
def test_how_long_a_deletion_waits_for_a_pod(spec: Obj, status: Obj, wish: Obj, seconds: int) -> None:
    grace = strategy_of(ROWS["v1", "Pod"]).grace_seconds
    assert grace is not None
    assert grace({"spec": spec, "status": status}, wish, context()) == seconds


def test_gated_pods_say_why_they_wait() -> None:
    condition = answer(_pod(schedulingGates=[{"name": "example.com/hold"}])).obj["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


def test_a_job_is_found_by_its_own_uid() -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sum", "namespace": "x"},
        "spec": {"template": template},
    }
    spec = answer(job).obj["spec"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": UID}}
    assert spec["template"]["metadata"]["labels"] == {
        "batch.kubernetes.io/controller-uid": UID,
        "batch.kubernetes.io/job-name": "sum",
        "controller-uid": UID,
        "job-name": "sum",
    }


def test_plain_text_of_a_secret_becomes_data() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "x"}}
    stored = answer({**secret, "data": {"kept": "eA==", "new": "eA=="}, "stringData": {"new": "y"}}).obj
    assert "stringData" not in stored
    assert stored["data"] == {"kept": "eA==", "new": base64.b64encode(b"y").decode()}


def test_a_namespace_carries_its_name_and_gives_up_its_finalizer_only_through_finalize() -> None:
    where = registry()
    row = where.row("namespaces")
    stored = where.create(row, "", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}, options())
    assert stored["metadata"]["labels"] == {"kubernetes.io/metadata.name": "shop"}
    assert (stored["spec"], stored["status"]) == ({"finalizers": ["kubernetes"]}, {"phase": "Active"})

    def emptied(namespace: Obj) -> Obj:
        namespace["spec"] = {"finalizers": []}
        return namespace

    assert where.update(row, "", "shop", emptied, options())["spec"] == {"finalizers": ["kubernetes"]}
    assert where.update(row, "", "shop", emptied, options(), subresource="finalize")["spec"] == {"finalizers": []}


def test_volumes_and_claims_are_protected_while_in_use() -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    stored = answer(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "namespace": "x"},
            "spec": claim,
        }
    )
    assert stored.obj["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert stored.obj["status"] == {"phase": "Pending"}
    volume = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    stored = answer({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": volume})
    assert stored.obj["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


def test_the_moment_a_volume_changed_phase_is_the_servers_to_say() -> None:
    where = registry()
    row = where.row("persistentvolumes")
    spec = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/x"}}
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": spec}
    first = where.create(row, "", volume, options())["status"]["lastPhaseTransitionTime"]
    where.clock.advance(60)

    def available(obj: Obj) -> Obj:
        obj["status"] = {"phase": "Available"}
        return obj

    later = where.update(row, "", "v", available, options(), subresource="status")["status"]
    assert later["phase"] == "Available"
    assert later["lastPhaseTransitionTime"] > first


def test_a_rollout_counts_changed_annotations_as_a_new_generation() -> None:
    where = registry()
    row = where.row("deployments.apps")
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    where.create(row, "shop", obj, options())

    def annotated(deployment: Obj) -> Obj:
        deployment["metadata"]["annotations"] = {"note": "x"}
        return deployment

    def labelled(deployment: Obj) -> Obj:
        deployment["metadata"]["labels"] = {"tier": "front"}
        return deployment

    assert where.update(row, "shop", "web", annotated, options())["metadata"]["generation"] == 2
    assert where.update(row, "shop", "web", labelled, options())["metadata"]["generation"] == 2


def test_who_asks_for_a_certificate_is_written_by_the_server() -> None:
    request = base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----\nx\n-----END CERTIFICATE REQUEST-----\n").decode()
    spec = {"request": request, "signerName": "example.com/ca", "usages": ["client auth"], "username": "root"}
    obj = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": "r"},
        "spec": spec,
    }
    strategy = strategy_of(ROWS["certificates.k8s.io/v1", "CertificateSigningRequest"])
    stored = deepcopy(obj)
    assert strategy.prepare_create and strategy.validate_create
    strategy.prepare_create(stored, context(user=User("jane", ("dev",))))
    assert (stored["spec"]["username"], stored["spec"]["groups"]) == ("jane", ["dev"])
    assert strategy.validate_create(stored) == []


def test_writing_a_pods_status_keeps_its_class() -> None:
    where = registry()
    row = where.row("pods")
    where.create(row, "shop", _pod(), options())

    def running(pod: Obj) -> Obj:
        pod["status"] = {"phase": "Running", "podIP": "10.0.0.7"}
        return pod

    status = where.update(row, "shop", "web", running, options(), subresource="status")["status"]
    assert status == {"phase": "Running", "podIP": "10.0.0.7", "podIPs": [{"ip": "10.0.0.7"}], "qosClass": "BestEffort"}


def test_ephemeral_containers_come_only_through_their_own_door() -> None:
    where = registry()
    row = where.row("pods")
    where.create(row, "shop", _pod(), options())

    def debugged(pod: Obj) -> Obj:
        pod["spec"]["ephemeralContainers"] = [{"name": "debug", "image": "busybox"}]
        pod["spec"]["nodeName"] = "elsewhere"
        return pod

    changed = where.update(row, "shop", "web", debugged, options(), subresource="ephemeralcontainers")
    assert [c["name"] for c in changed["spec"]["ephemeralContainers"]] == ["debug"]
    assert "nodeName" not in changed["spec"]
    assert changed["metadata"]["generation"] == 2
