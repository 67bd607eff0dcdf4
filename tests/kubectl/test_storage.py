"""Claims that stay Pending, volumes that sit on the wrong node or are used elsewhere, and what remains of them."""

from __future__ import annotations

from typing import Any

from .operator import Operator

TAINTED = "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }"
NOT_HELPFUL = (
    "no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."
)
DRIVER = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "disk.csi.acme.io"}, "spec": {}}
DISK = {"driver": "disk.csi.acme.io", "volumeHandle": "vol-1"}


def claim(name: str = "data", size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, **spec},
    }


def volume(name: str = "disk", size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    source = {} if "csi" in spec else {"hostPath": {"path": f"/var/disks/{name}"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, **source, **spec},
    }


def storage_class(name: str, provisioner: str, mode: str = "Immediate", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def user(name: str = "app", of: str = "data", **spec: Any) -> dict[str, Any]:
    container = {
        "name": "app",
        "image": "busybox:1.36",
        "command": ["sleep", "36000"],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": of}}],
            **spec,
        },
    }


def why_pending(operator: Operator, name: str = "app") -> str:
    assert operator.printed_status(name) == "Pending"
    message: str = operator.condition("PodScheduled", "pod", name)["message"]
    return message


def test_a_pod_whose_claim_nobody_made(operator: Operator) -> None:
    operator.apply(user())
    operator.wait(3)
    assert why_pending(operator) == '0/4 nodes are available: persistentvolumeclaim "data" not found. not found'
    operator.apply(claim())
    operator.wait(20)
    assert operator.printed_status("app") == "Running"


def test_a_claim_waits_for_its_first_consumer(operator: Operator) -> None:
    operator.apply(claim())
    operator.wait(20)
    row = operator.row("pvc", "data")
    assert (row["STATUS"], row["VOLUME"], row["STORAGECLASS"]) == ("Pending", "", "standard")
    assert operator.events("data") == [
        ("Normal", "WaitForFirstConsumer", "waiting for first consumer to be created before binding")
    ]
    operator.apply(user())
    operator.wait(20)
    assert operator.printed_status("app") == "Running"
    row = operator.row("pvc", "data")
    uid = operator.get("pvc", "data")["metadata"]["uid"]
    assert (row["STATUS"], row["VOLUME"], row["CAPACITY"], row["ACCESS MODES"]) == (
        "Bound",
        f"pvc-{uid}",
        "1Gi",
        "RWO",
    )
    assert {"ExternalProvisioning", "Provisioning", "ProvisioningSucceeded"} <= set(operator.reasons("data"))
    described = operator.kubectl("describe", "pvc", "data")
    assert "Used By:       app" in described


def test_a_claim_without_any_class_waits_for_a_volume_that_fits(operator: Operator) -> None:
    operator.apply(claim(storageClassName="", size="5Gi"), volume("small", "1Gi"), user())
    operator.wait(20)
    assert operator.row("pvc", "data")["STATUS"] == "Pending"
    assert (
        "Normal",
        "FailedBinding",
        "no persistent volumes available for this claim and no storage class is set",
    ) in operator.events("data")
    assert why_pending(operator) == (
        "0/4 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found"
    )
    operator.apply(volume("large", "10Gi"))
    operator.wait(30)
    row = operator.row("pvc", "data")
    assert (row["STATUS"], row["VOLUME"], row["CAPACITY"]) == ("Bound", "large", "10Gi")
    assert operator.row("pv", "large")["CLAIM"] == "default/data"
    assert operator.row("pv", "small")["STATUS"] == "Available"
    assert operator.printed_status("app") == "Running"


def test_a_class_that_does_not_exist(operator: Operator) -> None:
    operator.apply(claim(storageClassName="fast"))
    operator.wait(20)
    assert operator.row("pvc", "data")["STATUS"] == "Pending"
    assert ("Warning", "ProvisioningFailed", 'storageclass.storage.k8s.io "fast" not found') in operator.events("data")
    operator.apply(storage_class("fast", "rancher.io/local-path", "WaitForFirstConsumer"), user())
    operator.wait(30)
    assert operator.row("pvc", "data")["STATUS"] == "Bound"


def test_a_provisioner_that_nobody_runs(operator: Operator) -> None:
    operator.apply(storage_class("cloud", "ebs.csi.aws.com"), claim(storageClassName="cloud"))
    operator.wait(60)
    assert operator.row("pvc", "data")["STATUS"] == "Pending"
    assert operator.events("data") == [
        (
            "Normal",
            "ExternalProvisioning",
            "Waiting for a volume to be created either by the external provisioner 'ebs.csi.aws.com' or manually by "
            "the system administrator. If volume creation is delayed, please verify that the provisioner is running "
            "and correctly registered.",
        )
    ]


def test_a_class_without_a_provisioner(operator: Operator) -> None:
    operator.apply(storage_class("manual", "kubernetes.io/no-provisioner"), claim(storageClassName="manual"))
    operator.wait(20)
    failed = ("Warning", "ProvisioningFailed", "no volume plugin matched name: kubernetes.io/no-provisioner")
    assert failed in operator.events("data")
    operator.apply(volume(storageClassName="manual"))
    operator.wait(20)
    assert operator.row("pvc", "data")["STATUS"] == "Bound"


def test_local_volumes_that_are_not_there_to_bind(operator: Operator) -> None:
    operator.apply(
        storage_class("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        claim(storageClassName="local"),
        user(),
    )
    operator.wait(20)
    assert why_pending(operator) == (
        f"0/4 nodes are available: {TAINTED}, 3 node(s) didn't find available persistent volumes to bind. {NOT_HELPFUL}"
    )
    assert ("Normal", "WaitForPodScheduled", "waiting for pod app to be scheduled") in operator.events("data")
    affinity = {
        "required": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["worker-2"]}]}
            ]
        }
    }
    operator.apply(volume(storageClassName="local", nodeAffinity=affinity))
    operator.wait(30)
    assert operator.row("pod", "app", "-o", "wide")["NODE"] == "worker-2"
    assert operator.printed_status("app") == "Running"


def test_a_volume_ties_its_pods_to_its_node(operator: Operator) -> None:
    operator.apply(claim(), user())
    operator.wait(20)
    node = operator.row("pod", "app", "-o", "wide")["NODE"]
    operator.kubectl("exec", "app", "--", "sh", "-c", "echo kept > /data/file")
    operator.kubectl("delete", "pod", "app")
    operator.wait(10)
    operator.kubectl("cordon", node)
    operator.apply(user())
    operator.wait(5)
    message = (
        f"0/4 nodes are available: 1 node(s) had untolerated taint {{node-role.kubernetes.io/control-plane: }}, "
        f"1 node(s) were unschedulable, 2 node(s) didn't match PersistentVolume's node affinity. {NOT_HELPFUL}"
    )
    assert why_pending(operator) == message
    operator.kubectl("uncordon", node)
    operator.wait(20)
    assert operator.row("pod", "app", "-o", "wide")["NODE"] == node
    assert operator.kubectl("exec", "app", "--", "cat", "/data/file") == "kept\n"


def test_a_volume_in_use_cannot_move_to_another_node(operator: Operator) -> None:
    operator.apply(
        DRIVER,
        volume(csi=DISK, storageClassName="manual"),
        claim(storageClassName="manual", volumeName="disk"),
        user("first", nodeSelector={"kubernetes.io/hostname": "worker-1"}),
    )
    operator.wait(30)
    assert operator.printed_status("first") == "Running"
    attached = ("Normal", "SuccessfulAttachVolume", 'AttachVolume.Attach succeeded for volume "disk" ')
    assert attached in operator.events("first")
    operator.apply(user("second", nodeSelector={"kubernetes.io/hostname": "worker-2"}))
    operator.wait(200)
    assert operator.printed_status("second") == "ContainerCreating"
    events = operator.events("second")
    conflict = 'Multi-Attach error for volume "disk" Volume is already used by pod(s) first'
    assert ("Warning", "FailedAttachVolume", conflict) in events
    assert "FailedMount" not in [reason for _, reason, _ in events], "the kubelet waits without a word"
    operator.kubectl("delete", "pod", "first")
    operator.wait(60)
    assert operator.printed_status("second") == "Running"
    assert attached in operator.events("second")
    [attachment] = operator.get("volumeattachments")["items"]
    assert attachment["spec"]["nodeName"] == "worker-2"


def test_a_volume_of_a_driver_that_is_not_installed(operator: Operator) -> None:
    operator.apply(
        volume(csi=DISK, storageClassName="manual"), claim(storageClassName="manual", volumeName="disk"), user()
    )
    operator.wait(150)
    assert operator.printed_status("app") == "ContainerCreating"
    assert (
        "Warning",
        "FailedAttachVolume",
        'AttachVolume.Attach failed for volume "disk" : timed out waiting for external-attacher of disk.csi.acme.io '
        "CSI driver to attach volume vol-1",
    ) in operator.events("app")
    operator.apply(DRIVER)
    operator.wait(60)
    assert operator.printed_status("app") == "Running"


def test_a_driver_attaches_only_so_many_volumes_to_a_node(operator: Operator) -> None:
    assert operator.row("csinode", "worker-1")["DRIVERS"] == "0"
    drivers = '{"spec":{"drivers":[{"name":"disk.csi.acme.io","nodeID":"n","allocatable":{"count":1}}]}}'
    operator.kubectl("patch", "csinode", "worker-1", "--type=merge", "-p", drivers)
    here = {"kubernetes.io/hostname": "worker-1"}
    operator.apply(DRIVER)
    for name in ("one", "two"):
        operator.apply(
            volume(name, csi={**DISK, "volumeHandle": name}, storageClassName="manual"),
            claim(name, storageClassName="manual", volumeName=name),
        )
    operator.wait(5)
    operator.apply(user("first", of="one", nodeSelector=here))
    operator.wait(20)
    operator.apply(user("second", of="two", nodeSelector=here))
    operator.wait(5)
    assert why_pending(operator, "second").startswith(
        f"0/4 nodes are available: 1 node(s) exceed max volume count, {TAINTED}, "
        "2 node(s) didn't match Pod's node affinity/selector."
    )
    operator.kubectl("delete", "pod", "first")
    operator.wait(30)
    assert operator.printed_status("second") == "Running"


def test_a_volume_of_another_zone(operator: Operator) -> None:
    for node, zone in (("worker-1", "a"), ("worker-2", "b"), ("worker-3", "b")):
        operator.kubectl("label", "node", node, f"topology.kubernetes.io/zone={zone}")
    labelled = volume(storageClassName="manual")
    labelled["metadata"]["labels"] = {"topology.kubernetes.io/zone": "c"}
    operator.apply(labelled, claim(storageClassName="manual", volumeName="disk"))
    operator.wait(5)
    operator.apply(user())
    operator.wait(5)
    assert why_pending(operator) == (
        f"0/4 nodes are available: {TAINTED}, 3 node(s) had no available volume zone. {NOT_HELPFUL}"
    )
    operator.kubectl("label", "node", "worker-3", "topology.kubernetes.io/zone=c", "--overwrite")
    operator.wait(20)
    assert operator.row("pod", "app", "-o", "wide")["NODE"] == "worker-3"


def test_two_replicas_cannot_share_a_volume_of_one_pod(operator: Operator) -> None:
    operator.apply({**claim(), "spec": {**claim()["spec"], "accessModes": ["ReadWriteOncePod"]}}, user("first"))
    operator.wait(20)
    operator.apply(user("second"))
    operator.wait(5)
    assert (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    ) in why_pending(operator, "second")
    operator.kubectl("delete", "pod", "first")
    operator.wait(20)
    assert operator.printed_status("second") == "Running"


def test_a_claim_in_use_is_not_deleted_under_its_pod(operator: Operator) -> None:
    operator.apply(claim(), user())
    operator.wait(20)
    operator.kubectl("delete", "pvc", "data", "--wait=false")
    operator.wait(10)
    assert operator.row("pvc", "data")["STATUS"] == "Terminating"
    assert operator.get("pvc", "data")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    [name] = [pv["metadata"]["name"] for pv in operator.get("pv")["items"]]
    operator.kubectl("delete", "pod", "app")
    operator.wait(10)
    assert operator.run("get", "pvc", "data").code != 0
    assert operator.run("get", "pv", name).code != 0, "the class deletes volumes with their claims"


def test_a_retained_volume_is_released_and_not_bound_again(operator: Operator) -> None:
    operator.apply(volume(persistentVolumeReclaimPolicy="Retain"), claim(storageClassName=""))
    operator.wait(20)
    assert operator.row("pvc", "data")["STATUS"] == "Bound"
    operator.kubectl("delete", "pvc", "data")
    operator.wait(5)
    assert operator.row("pv", "disk")["STATUS"] == "Released"
    operator.apply(claim(storageClassName=""))
    operator.wait(20)
    assert operator.row("pvc", "data")["STATUS"] == "Pending"
    operator.kubectl("patch", "pv", "disk", "--type=json", "-p", '[{"op":"remove","path":"/spec/claimRef"}]')
    operator.wait(30)
    assert operator.row("pvc", "data")["STATUS"] == "Bound"


def test_a_claim_that_lost_its_volume(operator: Operator) -> None:
    operator.apply(volume(), claim(storageClassName=""))
    operator.wait(20)
    operator.kubectl("delete", "pv", "disk", "--wait=false")
    operator.wait(3)
    assert operator.row("pv", "disk")["STATUS"] == "Terminating"
    operator.kubectl("patch", "pv", "disk", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    operator.wait(5)
    assert operator.row("pvc", "data")["STATUS"] == "Lost"
    lost = ("Warning", "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!")
    assert lost in operator.events("data")


def test_a_claim_grows_only_where_its_class_allows(operator: Operator) -> None:
    operator.apply(claim(), user())
    operator.wait(20)
    bigger = '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}'
    refusal = operator.fails("patch", "pvc", "data", "-p", bigger)
    assert (
        'persistentvolumeclaims "data" is forbidden: only dynamically provisioned pvc can be resized and the '
        "storageclass that provisions the pvc must support resize"
    ) in refusal
