"""The provisioner of the default storage class: a folder on the selected node for each claim, deleted with it.

It is a separate program, whose pod must be ready, and communicates with the binder only through annotations on claims.
A volume belongs to one node, which must have been selected.
"""

from __future__ import annotations

from srearena.cluster.embedded.component_logs import PROVISIONER as PROGRAM
from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.persistent_volumes import (
    CLAIMS,
    CLASSES,
    PROVISIONED_BY,
    PROVISIONER_NOTES,
    SELECTED_NODE,
    VOLUMES,
    claim_reference,
)
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    condition_is,
    dig,
    is_terminating,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.world import World

PROVISIONER = "rancher.io/local-path"
_FOLDER = "/var/local-path-provisioner"
_WORK_SECONDS = 2.0
_RETRY_FIRST = 15.0
_RETRY_LAST = 1000.0
_LOOK_AGAIN = 5.0
"""Seconds until a claim is looked at again while the program does not run."""
_MODES = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})


class LocalPathProvisioner(Controller):
    name = "local-path-provisioner"
    source = PROVISIONER

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._begun: dict[str, float] = {}
        """By UID of the claim: when work on its volume began."""
        self._refused: dict[str, int] = {}

    def start(self) -> None:
        self.watch(CLAIMS, lambda claim: (f"claim:{key_of(claim)}",) if _is_ours(claim) else ())
        self.watch(VOLUMES, lambda volume: (f"volume:{name_of(volume)}",) if _is_our_volume(volume) else ())

    def reconcile(self, key: str) -> None:
        kind, _, rest = key.partition(":")
        if kind == "volume":
            self._take_back(rest)
            return
        claim = self.client.get(CLAIMS, *split_key(rest))
        if claim is None or is_terminating(claim) or not _is_ours(claim) or dig(claim, "spec", "volumeName"):
            if claim is not None:
                self._begun.pop(uid_of(claim), None)
            return
        self._provision(key, claim)

    def _provision(self, key: str, claim: Obj) -> None:
        storage_class = self.client.get(CLASSES, "", dig(claim, "spec", "storageClassName", default=""))
        if storage_class is None or self.client.get(VOLUMES, "", f"pvc-{uid_of(claim)}") is not None:
            return
        if self.world.has_addons and not self._runs():
            self.enqueue(key, _LOOK_AGAIN)
            return
        begun = self._begun.get(uid_of(claim))
        if begun is None:
            self._begun[uid_of(claim)] = self.clock.now
            text = f'External provisioner is provisioning volume for claim "{key_of(claim)}"'
            self.recorder.event(claim, "Normal", "Provisioning", text)
            why_not = _objection(claim)
            if why_not:
                self._refuse(key, claim, storage_class, why_not)
            else:
                self.enqueue(key, _WORK_SECONDS)
        elif self.clock.now >= begun + _WORK_SECONDS - 1e-6:
            self._make_volume(key, claim, storage_class)
        else:
            self.enqueue(key, begun + _WORK_SECONDS - self.clock.now)

    def _runs(self) -> bool:
        """Whether a pod of the program is ready."""
        pods = self.world.store.objects("pods", "kube-system")
        return any(labels_of(pod).get("app") == self.name and condition_is(pod, "Ready") for pod in pods)

    def _refuse(self, key: str, claim: Obj, storage_class: Obj, why: str) -> None:
        """Record the failure, and retry with back-off."""
        text = f'failed to provision volume with StorageClass "{name_of(storage_class)}": {why}'
        self.recorder.event(claim, "Warning", "ProvisioningFailed", text)
        count = self._refused.get(uid_of(claim), 0)
        self._refused[uid_of(claim)] = count + 1
        self.clock.after(min(_RETRY_FIRST * 2**count, _RETRY_LAST), self._retry, key, uid_of(claim))

    def _retry(self, key: str, uid: str) -> None:
        self._begun.pop(uid, None)
        self.enqueue(key, 0)

    def _make_volume(self, key: str, claim: Obj, storage_class: Obj) -> None:
        name = f"pvc-{uid_of(claim)}"
        node = annotations_of(claim)[SELECTED_NODE]
        machine = self.client.get("nodes", "", node) or {}
        hostname = labels_of(machine).get("kubernetes.io/hostname", node)
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [hostname]}]}
        path = f"{_FOLDER}/{name}_{namespace_of(claim)}_{name_of(claim)}"
        volume: Obj = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {
                "name": name,
                "annotations": {"local.path.provisioner/selected-node": node, PROVISIONED_BY: PROVISIONER},
            },
            "spec": {
                "capacity": {"storage": dig(claim, "spec", "resources", "requests", "storage", default="1Gi")},
                "accessModes": list(dig(claim, "spec", "accessModes", default=[])),
                "claimRef": claim_reference(claim),
                "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
                "storageClassName": name_of(storage_class),
                "volumeMode": dig(claim, "spec", "volumeMode", default="Filesystem"),
                "hostPath": {"path": path, "type": "DirectoryOrCreate"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
        }
        try:
            self.client.create(VOLUMES, volume)
        except ApiError as problem:
            self._refuse(key, claim, storage_class, problem.message)
            return
        self._begun.pop(uid_of(claim), None)
        self._refused.pop(uid_of(claim), None)
        self.world.component_logs.write(PROGRAM, "I", "", f"Volume {name} has been created on {node}:{path}")
        self.recorder.event(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    def _take_back(self, name: str) -> None:
        volume = self.client.get(VOLUMES, "", name)
        if volume is None or is_terminating(volume) or dig(volume, "status", "phase") != "Released":
            return
        if dig(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete":
            if self.world.has_addons and not self._runs():
                self.enqueue(f"volume:{name}", _LOOK_AGAIN)
                return
            self.client.delete(VOLUMES, volume)
            self.world.component_logs.write(PROGRAM, "I", "", f"Volume {name} has been deleted")


def _objection(claim: Obj) -> str:
    if not set(dig(claim, "spec", "accessModes", default=())) <= _MODES:
        return "NodePath only supports ReadWriteOnce and ReadWriteOncePod (1.22+) access modes"
    if dig(claim, "spec", "selector") is not None:
        return "claim.Spec.Selector is not supported"
    if SELECTED_NODE not in annotations_of(claim):
        return "configuration error, no node was specified"
    return ""


def _is_ours(claim: Obj) -> bool:
    return annotations_of(claim).get(PROVISIONER_NOTES[1]) == PROVISIONER


def _is_our_volume(volume: Obj) -> bool:
    return annotations_of(volume).get(PROVISIONED_BY) == PROVISIONER
