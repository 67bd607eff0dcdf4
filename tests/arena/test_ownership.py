"""What counts as made by a controller: an owner reference alone says nothing."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.conductor.grading.ownership import Owners, is_garbage, is_generated, made_by_operator
from srearena.service.kubernetes import Obj

LABELS = {"app": "web"}
PROGRAM = {"containers": [{"name": "main", "image": "report:1", "command": ["report"]}]}
SPECS: dict[str, tuple[str, Obj]] = {
    "Deployment": ("apps", {"selector": {"matchLabels": LABELS}}),
    "ReplicaSet": ("apps", {"selector": {"matchLabels": LABELS}}),
    "StatefulSet": ("apps", {"selector": {"matchLabels": LABELS}}),
    "ReplicationController": ("", {"selector": LABELS}),
    "Job": ("batch", {"selector": {"matchLabels": LABELS}, "template": {"spec": PROGRAM}}),
    "CronJob": ("batch", {"jobTemplate": {"spec": {"template": {"spec": PROGRAM}}}}),
    "Node": ("", {}),
    "Service": ("", {}),
    "Pod": ("", {"volumes": [{"name": "scratch", "ephemeral": {}}]}),
    "TidbCluster": ("pingcap.com", {}),
}
OWNERS: Owners = {
    kind: (
        group,
        {"kind": kind, "metadata": {"name": "web", "namespace": "" if kind == "Node" else "shop"}, "spec": spec},
    )
    for kind, (group, spec) in SPECS.items()
}
"""One of each kind, whose UID is its kind."""
SLICE = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}


def owned(owner: str, kind: str, name: str = "web-1", namespace: str = "shop", **rest: Any) -> Obj:
    reference = {"apiVersion": f"{SPECS[owner][0]}/v1".lstrip("/"), "kind": owner, "uid": owner, "controller": True}
    metadata = {"name": name, "namespace": namespace, "ownerReferences": [reference], **rest}
    spec = metadata.pop("spec", {})
    return {"kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    "obj",
    [
        owned("ReplicaSet", "Pod", labels={**LABELS, "pod-template-hash": "5f9"}),
        owned("ReplicationController", "Pod", labels=LABELS),
        owned("StatefulSet", "Pod", labels=LABELS),
        owned("Job", "Pod", labels=LABELS, spec=PROGRAM),
        owned("Deployment", "ReplicaSet", labels=LABELS),
        owned("CronJob", "Job", name="web-29384700"),
        owned("CronJob", "Job", name="by-hand", spec={"template": {"spec": PROGRAM}}),
        owned("Service", "EndpointSlice", labels=SLICE),
        owned("Pod", "PersistentVolumeClaim", name="web-scratch"),
        owned("Node", "Pod", namespace="kube-system", annotations={"kubernetes.io/config.mirror": "5f9"}),
        owned("TidbCluster", "StatefulSet"),
    ],
    ids=lambda obj: f"{obj['kind']} {obj['metadata']['name']} of a {obj['metadata']['ownerReferences'][0]['kind']}",
)
def test_what_controllers_make_is_generated(obj: Obj) -> None:
    assert is_generated(obj, OWNERS)
    stranger = {**obj, "metadata": {**obj["metadata"], "namespace": "elsewhere"}}
    assert not is_generated(stranger, OWNERS), "an owner in another namespace makes nothing here"


@pytest.mark.parametrize(
    "obj",
    [
        owned("ReplicaSet", "Pod", labels={"app": "helper"}),
        owned("StatefulSet", "Pod", name="web-helper", labels=LABELS),
        owned("Job", "Pod", labels=LABELS, spec={"containers": [{"name": "main", "image": "helper"}]}),
        owned("Deployment", "ReplicaSet", labels={"app": "helper"}),
        owned("CronJob", "Job", name="helper", spec={"template": {"spec": {"containers": []}}}),
        owned("Service", "EndpointSlice"),
        owned("Pod", "PersistentVolumeClaim", name="web-data"),
        owned("Node", "Pod", annotations={"kubernetes.io/config.mirror": "5f9"}),
        owned("Deployment", "ConfigMap", labels=LABELS),
        owned("TidbCluster", "RoleBinding"),
    ],
    ids=lambda obj: f"{obj['kind']} {obj['metadata']['name']} of a {obj['metadata']['ownerReferences'][0]['kind']}",
)
def test_what_they_do_not_make_is_not(obj: Obj) -> None:
    assert not is_generated(obj, OWNERS)


def test_what_lost_its_controller_is_garbage_and_operators_are_known_by_their_resource() -> None:
    pod, other = owned("ReplicaSet", "Pod", labels=LABELS), owned("TidbCluster", "Pod")
    assert is_garbage(pod, {}) and not is_generated(pod, {})
    assert not is_garbage(pod, OWNERS) and not is_garbage(other, {}) and not made_by_operator(pod, OWNERS)
    assert made_by_operator(other, OWNERS)
