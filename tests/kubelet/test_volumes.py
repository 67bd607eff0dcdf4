"""Volumes: what is mounted, what cannot be, and what happens when its source changes."""

from __future__ import annotations

import base64
import errno

import pytest

from srearena.cluster.embedded.machine.files import host_tree
from srearena.cluster.embedded.machine.files.inodes import Directory, File, Symlink
from srearena.cluster.embedded.objects import Obj
from tests.kubelet.harness import Lab

BUSYBOX = "busybox:1.36"


def mount(lab: Lab, volume: Obj, script: str = "sleep 100000", **mount_options: object) -> None:
    lab.run(
        image=BUSYBOX,
        command=["sh", "-c", script],
        volumeMounts=[{"name": "data", "mountPath": "/data", **mount_options}],
        spec={"volumes": [{"name": "data", **volume}], "restartPolicy": "Never", "serviceAccountName": "default"},
    )


def read(lab: Lab, path: str, name: str = "web") -> str:
    sandbox = lab.nodes.sandbox("default", name)
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.container is not None
    return record.container.files.read_text(path)


def listing(lab: Lab, path: str) -> list[str]:
    sandbox = lab.nodes.sandbox("default", "web")
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.container is not None
    return record.container.files.listdir(path)


@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "missing"}}, 'configmap "missing" not found'),
        ({"secret": {"secretName": "missing"}}, 'secret "missing" not found'),
        (
            {"configMap": {"name": "there", "items": [{"key": "nope", "path": "x"}]}},
            "configmap references non-existent config key: nope",
        ),
        (
            {"projected": {"sources": [{"configMap": {"name": "a"}}, {"secret": {"name": "b"}}]}},
            '[configmap "a" not found, secret "b" not found]',
        ),
        (
            {"hostPath": {"path": "/nowhere", "type": "Directory"}},
            "hostPath type check failed: /nowhere is not a directory",
        ),
    ],
)
def test_a_volume_that_cannot_be_mounted_holds_the_pod(lab: Lab, volume: Obj, message: str) -> None:
    lab.config_map("there", {"key": "value"})
    mount(lab, volume)
    lab.pass_time(120)
    assert lab.waiting() == ("ContainerCreating", "")
    assert lab.status()["phase"] == "Pending"
    [event] = lab.events(reason="FailedMount")
    assert event["message"] == f'MountVolume.SetUp failed for volume "data" : {message}'
    # Half a second, doubled each time: seven tries or eight in two minutes.
    assert event["count"] in (8, 9)


def test_the_pod_starts_once_the_config_map_is_there(lab: Lab) -> None:
    mount(lab, {"configMap": {"name": "late"}})
    lab.pass_time(5)
    lab.config_map("late", {"key": "value"})
    lab.pass_time(10)
    assert lab.is_ready()
    assert read(lab, "/data/key") == "value"


def test_a_config_map_is_files_behind_links(lab: Lab) -> None:
    lab.config_map("there", {"one": "1\n", "two": "2"})
    mount(lab, {"configMap": {"name": "there"}}, "ls /data; cat /data/one; echo x > /data/one")
    lab.pass_time(8)
    assert lab.log().startswith("one\ntwo\n1\n")
    assert "Read-only file system" in lab.log()


def test_a_change_reaches_the_files_within_a_minute_and_a_half(lab: Lab) -> None:
    lab.config_map("there", {"key": "old"})
    mount(lab, {"configMap": {"name": "there"}})
    lab.pass_time(8)
    lab.client.modify("configmaps", "default", "there", lambda obj: obj.update(data={"key": "new", "more": "x"}))
    assert read(lab, "/data/key") == "old"
    lab.pass_time(95)
    assert read(lab, "/data/key") == "new"
    assert [name for name in listing(lab, "/data") if not name.startswith("..")] == ["key", "more"]


def test_a_file_mounted_by_sub_path_never_changes(lab: Lab) -> None:
    lab.config_map("there", {"key": "old"})
    lab.run(
        image=BUSYBOX,
        command=["sleep", "100000"],
        volumeMounts=[{"name": "data", "mountPath": "/etc/key", "subPath": "key"}],
        spec={"volumes": [{"name": "data", "configMap": {"name": "there"}}]},
    )
    lab.pass_time(8)
    assert read(lab, "/etc/key") == "old"
    lab.client.modify("configmaps", "default", "there", lambda obj: obj.update(data={"key": "new"}))
    lab.pass_time(200)
    assert read(lab, "/etc/key") == "old"


def test_a_deleted_config_map_leaves_its_files(lab: Lab) -> None:
    created = lab.config_map("there", {"key": "kept"})
    mount(lab, {"configMap": {"name": "there"}})
    lab.pass_time(8)
    lab.client.delete("configmaps", created)
    lab.pass_time(100)
    assert lab.is_ready()
    assert read(lab, "/data/key") == "kept"


def test_secrets_are_decoded(lab: Lab) -> None:
    data = {"password": base64.b64encode(b"hunter2").decode()}
    lab.create("secrets", {"kind": "Secret", "type": "Opaque", "metadata": {"name": "keys"}, "data": data})
    mount(lab, {"secret": {"secretName": "keys", "defaultMode": 0o400}})
    lab.pass_time(8)
    assert read(lab, "/data/password") == "hunter2"


def test_the_downward_api_shows_labels_and_follows_them(lab: Lab) -> None:
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    mount(lab, {"downwardAPI": {"items": items}})
    lab.client.modify("pods", "default", "web", lambda pod: pod["metadata"].update(labels={"tier": "front"}))
    lab.pass_time(8)
    assert read(lab, "/data/labels") == 'tier="front"'
    lab.client.modify("pods", "default", "web", lambda pod: pod["metadata"].update(labels={"tier": "back"}))
    lab.pass_time(100)
    assert read(lab, "/data/labels") == 'tier="back"'


def test_an_empty_dir_is_shared_by_the_containers_and_gone_with_the_pod(lab: Lab) -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    writer = {"name": "writer", "image": BUSYBOX, "command": ["sh", "-c", "echo hi > /shared/x; sleep 9999"]}
    reader = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", "sleep 5; cat /shared/x; sleep 9999"]}
    containers = [{**writer, "volumeMounts": mounts}, {**reader, "volumeMounts": mounts}]
    lab.run_all("web", containers, spec={"volumes": [{"name": "shared", "emptyDir": {}}]})
    lab.pass_time(12)
    assert lab.log() == "hi\n"
    used = lab.kubelet.machine.disk.used
    lab.delete(grace=1)
    lab.pass_time(10)
    assert lab.kubelet.machine.disk.used < used


def test_a_claim_must_be_bound(lab: Lab) -> None:
    claim = {"persistentVolumeClaim": {"claimName": "data"}}
    mount(lab, claim)
    lab.pass_time(5)
    assert lab.messages(reason="FailedMount") == [
        "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process "
        "volumes=[data]: error processing PVC default/data: failed to fetch PVC from API server: "
        'persistentvolumeclaims "data" not found'
    ]
    created = lab.create(
        "persistentvolumeclaims",
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": "pv-1",
            },
        },
    )
    lab.pass_time(20)
    assert lab.messages(reason="FailedMount")[-1].endswith("error processing PVC default/data: PVC is not bound")
    lab.create(
        "persistentvolumes",
        {
            "kind": "PersistentVolume",
            "metadata": {"name": "pv-1"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/mnt/pv-1", "type": "DirectoryOrCreate"},
                "claimRef": {"namespace": "default", "name": "data", "uid": created["metadata"]["uid"]},
            },
        },
    )
    lab.client.set_status("persistentvolumeclaims", created, {"phase": "Bound"})
    lab.pass_time(20)
    assert lab.is_ready()


def test_data_on_a_persistent_volume_outlives_the_pod(lab: Lab) -> None:
    host = {"hostPath": {"path": "/mnt/kept"}}
    mount(lab, host, "echo one >> /data/log; cat /data/log")
    lab.pass_time(8)
    lab.delete()
    lab.pass_time(3)
    mount(lab, host, "echo two >> /data/log; cat /data/log")
    lab.pass_time(8)
    assert lab.log() == "one\ntwo\n"


def test_an_empty_dir_over_its_limit_gets_the_pod_evicted(lab: Lab) -> None:
    mount(
        lab,
        {"emptyDir": {"sizeLimit": "1Mi"}},
        "dd if=/dev/zero of=/data/big bs=1024 count=2048 2>/dev/null; sleep 9999",
    )
    lab.pass_time(60)
    status = lab.status()
    assert (status["phase"], status["reason"]) == ("Failed", "Evicted")
    assert status["message"] == 'Usage of EmptyDir volume "data" exceeds the limit "1Mi". '
    assert all(row["type"] != "DisruptionTarget" for row in status["conditions"])


def test_service_account_tokens_are_made_when_they_are_read(lab: Lab) -> None:
    requests: list[tuple[str, int]] = []

    def provide(pod: Obj, audience: str, seconds: int) -> str:
        requests.append((audience, seconds))
        return f"token-{len(requests)}"

    lab.nodes.token_provider = provide
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 7200, "audience": "vault"}}
    mount(lab, {"projected": {"sources": [source]}})
    lab.pass_time(8)
    assert not requests
    assert read(lab, "/data/token") == "token-1"
    assert requests == [("vault", 7200)]


def csi_volume(lab: Lab) -> None:
    claim = lab.create(
        "persistentvolumeclaims",
        {
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumeName": "pv-1",
            },
        },
    )
    lab.client.set_status("persistentvolumeclaims", claim, {"phase": "Bound"})
    lab.create(
        "persistentvolumes",
        {
            "kind": "PersistentVolume",
            "metadata": {"name": "pv-1"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "csi": {"driver": "disk.acme.io", "volumeHandle": "vol-1"},
                "claimRef": {"namespace": "default", "name": "data", "uid": claim["metadata"]["uid"]},
            },
        },
    )


def test_a_volume_of_a_driver_is_waited_for_until_it_is_attached(lab: Lab) -> None:
    csi_volume(lab)
    lab.client.create(
        "csidrivers.storage.k8s.io",
        {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "disk.acme.io"}, "spec": {}},
    )
    mount(lab, {"persistentVolumeClaim": {"claimName": "data"}})
    lab.pass_time(60)
    assert lab.waiting() == ("ContainerCreating", "")
    assert not lab.events(reason="FailedMount")
    attachment = lab.client.create(
        "volumeattachments.storage.k8s.io",
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "VolumeAttachment",
            "metadata": {"name": "csi-1"},
            "spec": {
                "attacher": "disk.acme.io",
                "nodeName": "worker",
                "source": {"persistentVolumeName": "pv-1"},
            },
        },
    )
    lab.client.set_status("volumeattachments.storage.k8s.io", attachment, {"attached": True})
    lab.pass_time(10)
    assert lab.is_ready()


def test_a_disk_that_breaks_fails_its_readers(lab: Lab) -> None:
    mount(lab, {"hostPath": {"path": "/mnt/data"}}, "while true; do ls /data > /dev/null || exit 9; sleep 1; done")
    lab.pass_time(8)
    assert lab.is_ready()
    lab.nodes.access.break_disk("worker", errno.EIO)
    lab.pass_time(5)
    assert lab.container()["state"]["terminated"]["exitCode"] == 9


def test_a_volume_bound_to_an_earlier_claim_of_the_name_is_not_mounted(lab: Lab) -> None:
    csi_volume(lab)
    volume = lab.client.get("persistentvolumes", "", "pv-1")
    claim = lab.client.get("persistentvolumeclaims", "default", "data")
    assert volume is not None and claim is not None
    uid = claim["metadata"]["uid"]

    def rebind(found: Obj) -> None:
        found["spec"]["claimRef"]["uid"] = "of-another"

    lab.client.modify("persistentvolumes", "", "pv-1", rebind)
    mount(lab, {"persistentVolumeClaim": {"claimName": "data"}})
    lab.pass_time(5)
    text = f"found PV object pv-1 but its pv.Spec.ClaimRef.UID of-another does not point to claim.UID {uid}"
    assert lab.messages(reason="FailedMount")[-1].endswith(f": error processing PVC default/data: {text}")


def test_a_host_path_may_be_a_link(lab: Lab) -> None:
    root = lab.kubelet.machine.files.root
    assert isinstance(root, Directory)
    host_tree.make_folders(root, "/srv/real/deep").put("file", File(b"found"))
    folder = host_tree.make_folders(root, "/srv")
    for name, target in (("link", "real"), ("far", "/srv/link/deep"), ("loop", "loop")):
        folder.put(name, Symlink(target))
    found = host_tree.find(root, "/srv/far/file")
    assert isinstance(found, File) and found.content == b"found"
    assert host_tree.find(root, "/srv/link") is host_tree.find(root, "/srv/real")
    assert host_tree.find(root, "/srv/loop") is None


@pytest.mark.parametrize("where", ["pod", "container"])
def test_a_token_can_be_read_by_the_user_that_the_pod_runs_as(lab: Lab, where: str) -> None:
    lab.create("serviceaccounts", {"kind": "ServiceAccount", "metadata": {"name": "default"}})
    volume = {"name": "own", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    identity = {"securityContext": {"runAsUser": 1000}}
    account = {"serviceAccountName": "default", "restartPolicy": "Never"}
    lab.run(
        image=BUSYBOX,
        command=[
            "sh",
            "-c",
            "stat -c '%a %u' -L /own/token; cat /own/token > /dev/null && echo ok",
        ],
        volumeMounts=[{"name": "own", "mountPath": "/own"}],
        spec={"volumes": [volume], **account, **(identity if where == "pod" else {})},
        **(identity if where == "container" else {}),
    )
    lab.pass_time(20)
    sandbox = lab.nodes.sandbox("default", "web")
    assert sandbox is not None
    record = sandbox.latest("main")
    assert record is not None and record.log.text() == "600 1000\nok\n"
