"""Claims find volumes: binding, dynamic provisioning, and what becomes of a volume when its claim goes.

Pre-made volumes are matched by class, size, modes and labels, the smallest that fits. A class with a provisioner gets
a new volume made for the claim; with `WaitForFirstConsumer` only once the scheduler has chosen a node. A claim that
cannot be served says why in an event every fifteen seconds, as the real binder's resync does.
"""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    dig,
    is_terminating,
    key_of,
    meta,
    name_of,
    namespace_of,
    uid_of,
)
from srearena.cluster.embedded.recorder import Recorder
from srearena.cluster.embedded.registry.claims import claim_names, fits, mismatch, smallest_free
from srearena.cluster.embedded.registry.identity import service_account
from srearena.cluster.embedded.world import World

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONER_NOTES = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_RESYNC = 15.0
_PROVISIONING_SECONDS = 2.0
_PROVISIONERS = frozenset({"rancher.io/local-path", "k8s.io/minikube-hostpath", "docker.io/hostpath"})
"""The provisioners that this cluster runs."""


class PersistentVolumeBinder(Controller):
    name = "persistent-volume-binder"
    event_source = "persistentvolume-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        user = service_account("kube-system", self.name)
        self.recorder = Recorder(world, self.event_source, user, field_manager="kube-controller-manager")
        self._provisioner = Recorder(world, "rancher.io/local-path", service_account("kube-system", "local-path"))
        self._provisioning: set[str] = set()

    def start(self) -> None:
        self.watch(CLAIMS, _claim_keys)
        self.watch(VOLUMES, self._volume_keys)
        self.watch("pods", _claims_of_pod)
        self.watch(CLASSES, lambda storage_class: self._waiting_claims(name_of(storage_class)))

    def _volume_keys(self, volume: Obj) -> list[str]:
        keys = [f"volume:{name_of(volume)}"]
        claim = dig(volume, "spec", "claimRef")
        if claim:
            keys.append(f"claim:{claim.get('namespace')}/{claim.get('name')}")
        elif dig(volume, "status", "phase") == "Available":
            keys += self._waiting_claims(dig(volume, "spec", "storageClassName", default=""))
        return keys

    def _waiting_claims(self, storage_class: str) -> list[str]:
        return [
            f"claim:{key_of(claim)}"
            for claim in self.store.objects(CLAIMS)
            if not dig(claim, "spec", "volumeName")
            and dig(claim, "spec", "storageClassName", default="") == storage_class
        ]

    def reconcile(self, key: str) -> None:
        kind, _, rest = key.partition(":")
        if kind == "claim":
            namespace, name = split_key(rest)
            claim = self.client.get(CLAIMS, namespace, name)
            if claim is not None:
                self._sync_claim(claim)
        else:
            volume = self.client.get(VOLUMES, "", rest)
            if volume is not None:
                self._sync_volume(volume)

    # Claims

    def _sync_claim(self, claim: Obj) -> None:
        if is_terminating(claim) and not dig(claim, "spec", "volumeName"):
            return
        volume_name = dig(claim, "spec", "volumeName")
        if BIND_COMPLETED in annotations_of(claim):
            self._check_bound(claim)
        elif volume_name:
            self._bind_asked_for(claim, volume_name)
        else:
            self._find_volume(claim)

    def _check_bound(self, claim: Obj) -> None:
        volume = self.client.get(VOLUMES, "", claim["spec"]["volumeName"])
        if volume is None:
            self._lose(claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Any data on the volume is lost!")
        elif dig(volume, "spec", "claimRef", "uid") not in (None, uid_of(claim)):
            text = "Bound claim has lost reference to PersistentVolume. Any data on the volume is lost!"
            self._lose(claim, "ClaimMisbound", text)
        else:
            self._mark_bound(claim, volume)

    def _lose(self, claim: Obj, reason: str, message: str) -> None:
        if dig(claim, "status", "phase") != "Lost":
            self.client.set_status(CLAIMS, claim, {"phase": "Lost"})
            self.recorder.event(claim, "Warning", reason, message)

    def _bind_asked_for(self, claim: Obj, volume_name: str) -> None:
        volume = self.client.get(VOLUMES, "", volume_name)
        if volume is None:
            self._pending(claim)
            self.enqueue(f"claim:{key_of(claim)}", _RESYNC)
            return
        owner = dig(volume, "spec", "claimRef", default={})
        if owner and (owner.get("namespace"), owner.get("name")) != (namespace_of(claim), name_of(claim)):
            text = f'volume "{volume_name}" already bound to a different claim.'
            self._complain(claim, "Warning", "FailedBinding", text)
        elif owner.get("uid") not in (None, "", uid_of(claim)):
            self._complain(
                claim, "Warning", "FailedBinding", f'volume "{volume_name}" already bound to a different claim.'
            )
        elif not owner and not fits(claim, volume):
            text = f'Cannot bind to requested volume "{volume_name}": ' + mismatch(claim, volume)
            self._complain(claim, "Warning", "VolumeMismatch", text)
        else:
            self._bind(claim, volume)

    def _find_volume(self, claim: Obj) -> None:
        storage_class = self.client.get(CLASSES, "", dig(claim, "spec", "storageClassName", default=""))
        selected = annotations_of(claim).get(SELECTED_NODE)
        waits = (
            storage_class is not None
            and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
            and not selected
        )
        reserved = self._reserved_for(claim)
        if reserved is not None:
            self._bind(claim, reserved)
            return
        if waits:
            self._wait_for_consumer(claim)
            return
        volume = smallest_free(claim, self.store.objects(VOLUMES))
        if volume is not None:
            self._bind(claim, volume)
        elif storage_class is not None and storage_class.get("provisioner") != NO_PROVISIONER:
            self._provision(claim, storage_class)
        else:
            self._report_no_volume(claim, storage_class)

    def _reserved_for(self, claim: Obj) -> Obj | None:
        for volume in self.store.objects(VOLUMES):
            owner = dig(volume, "spec", "claimRef", default={})
            if (owner.get("namespace"), owner.get("name")) == (namespace_of(claim), name_of(claim)) and owner.get(
                "uid"
            ) in (None, "", uid_of(claim)):
                return volume
        return None

    def _wait_for_consumer(self, claim: Obj) -> None:
        waiting = [
            name_of(pod)
            for pod in self.store.objects("pods", namespace_of(claim))
            if name_of(claim) in claim_names(pod) and not dig(pod, "spec", "nodeName")
        ]
        if waiting:
            noun = "pod" if len(waiting) == 1 else "pods"
            text = f"waiting for {noun} {', '.join(waiting)} to be scheduled"
            self._complain(claim, "Normal", "WaitForPodScheduled", text)
        else:
            text = "waiting for first consumer to be created before binding"
            self._complain(claim, "Normal", "WaitForFirstConsumer", text)

    def _report_no_volume(self, claim: Obj, storage_class: Obj | None) -> None:
        wanted = dig(claim, "spec", "storageClassName", default="")
        if storage_class is not None:
            text = f"no volume plugin matched name: {storage_class['provisioner']}"
            self._complain(claim, "Warning", "ProvisioningFailed", text)
        elif wanted:
            text = f'storageclass.storage.k8s.io "{wanted}" not found'
            self._complain(claim, "Warning", "ProvisioningFailed", text)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self._complain(claim, "Normal", "FailedBinding", text)

    def _complain(self, claim: Obj, kind: str, reason: str, message: str) -> None:
        self._pending(claim)
        self.recorder.event(claim, kind, reason, message)
        self.enqueue(f"claim:{key_of(claim)}", _RESYNC)

    def _pending(self, claim: Obj) -> None:
        if dig(claim, "status", "phase") != "Pending":
            self.client.set_status(CLAIMS, claim, {"phase": "Pending"})

    def _bind(self, claim: Obj, volume: Obj) -> None:
        reference = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": namespace_of(claim),
            "name": name_of(claim),
            "uid": uid_of(claim),
            "resourceVersion": meta(claim)["resourceVersion"],
        }

        def take(current: Obj) -> None:
            owner = dig(current, "spec", "claimRef", default={})
            if owner.get("uid") != uid_of(claim):
                if not owner:
                    current["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
                current["spec"]["claimRef"] = reference

        bound = self.client.modify(VOLUMES, "", name_of(volume), take)
        if bound is None:
            return
        self.client.set_status(VOLUMES, bound, {**(bound.get("status") or {}), "phase": "Bound"})

        def settle(current: Obj) -> None:
            notes = current["metadata"].setdefault("annotations", {})
            notes[BIND_COMPLETED] = "yes"
            if not dig(current, "spec", "volumeName"):
                notes[BOUND_BY_CONTROLLER] = "yes"
                current["spec"]["volumeName"] = name_of(volume)

        settled = self.client.modify(CLAIMS, namespace_of(claim), name_of(claim), settle)
        if settled is not None:
            self._mark_bound(settled, bound)

    def _mark_bound(self, claim: Obj, volume: Obj) -> None:
        status = {
            "phase": "Bound",
            "accessModes": dig(volume, "spec", "accessModes", default=[]),
            "capacity": dig(volume, "spec", "capacity", default={}),
        }
        if any(dig(claim, "status", key) != value for key, value in status.items()):
            self.client.set_status(CLAIMS, claim, {**(claim.get("status") or {}), **status})

    # Provisioning

    def _provision(self, claim: Obj, storage_class: Obj) -> None:
        provisioner = storage_class["provisioner"]
        self._pending(claim)
        if PROVISIONER_NOTES[1] not in annotations_of(claim):

            def note(current: Obj) -> None:
                current["metadata"].setdefault("annotations", {}).update(dict.fromkeys(PROVISIONER_NOTES, provisioner))

            claim = self.client.modify(CLAIMS, namespace_of(claim), name_of(claim), note) or claim
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        self.recorder.event(claim, "Normal", "ExternalProvisioning", text)
        self.enqueue(f"claim:{key_of(claim)}", _RESYNC)
        if provisioner not in _PROVISIONERS or uid_of(claim) in self._provisioning:
            return
        self._provisioning.add(uid_of(claim))
        begun = f'External provisioner is provisioning volume for claim "{key_of(claim)}"'
        self._provisioner.event(claim, "Normal", "Provisioning", begun)
        self.clock.after(_PROVISIONING_SECONDS, self._make_volume, key_of(claim), uid_of(claim), storage_class)

    def _make_volume(self, key: str, uid: str, storage_class: Obj) -> None:
        self._provisioning.discard(uid)
        claim = self.client.get(CLAIMS, *split_key(key))
        if claim is None or uid_of(claim) != uid or dig(claim, "spec", "volumeName"):
            return
        name = f"pvc-{uid}"
        node = annotations_of(claim).get(SELECTED_NODE)
        path = f"/var/local-path-provisioner/{name}_{namespace_of(claim)}_{name_of(claim)}"
        spec: Obj = {
            "capacity": {"storage": dig(claim, "spec", "resources", "requests", "storage", default="1Gi")},
            "accessModes": list(dig(claim, "spec", "accessModes", default=[])),
            "claimRef": {
                "kind": "PersistentVolumeClaim",
                "apiVersion": "v1",
                "namespace": namespace_of(claim),
                "name": name_of(claim),
                "uid": uid,
                "resourceVersion": meta(claim)["resourceVersion"],
            },
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": name_of(storage_class),
            "volumeMode": dig(claim, "spec", "volumeMode", default="Filesystem"),
            "hostPath": {"path": path, "type": "DirectoryOrCreate"},
        }
        if node:
            term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
        volume: Obj = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "annotations": {PROVISIONED_BY: storage_class["provisioner"]}},
            "spec": spec,
        }
        self.client.create(VOLUMES, volume)
        self._provisioner.event(claim, "Normal", "ProvisioningSucceeded", f"Successfully provisioned volume {name}")

    # Volumes

    def _sync_volume(self, volume: Obj) -> None:
        owner = dig(volume, "spec", "claimRef")
        if not owner:
            self._set_phase(volume, "Available")
            return
        claim = self.client.get(CLAIMS, owner.get("namespace", ""), owner.get("name", ""))
        if claim is not None and owner.get("uid") and uid_of(claim) != owner["uid"]:
            claim = None
        if claim is not None:
            if dig(claim, "spec", "volumeName") == name_of(volume) and BIND_COMPLETED in annotations_of(claim):
                self._set_phase(volume, "Bound")
            elif not owner.get("uid"):
                self._set_phase(volume, "Available")
            return
        if not owner.get("uid"):
            self._set_phase(volume, "Available")
            return
        if dig(volume, "status", "phase") == "Failed":
            return
        self._set_phase(volume, "Released")
        self._reclaim(volume)

    def _reclaim(self, volume: Obj) -> None:
        policy = dig(volume, "spec", "persistentVolumeReclaimPolicy", default="Retain")
        if policy != "Delete" or is_terminating(volume):
            return
        if annotations_of(volume).get(PROVISIONED_BY) in _PROVISIONERS:
            self.client.delete(VOLUMES, volume)
            return
        reason = "error getting deleter volume plugin for volume"
        message = f'{reason} "{name_of(volume)}": no volume plugin matched'
        self._set_phase(volume, "Failed", message)
        self.recorder.event(volume, "Warning", "VolumeFailedDelete", message)

    def _set_phase(self, volume: Obj, phase: str, message: str = "") -> None:
        if dig(volume, "status", "phase") == phase:
            return
        status = {"phase": phase, "lastPhaseTransitionTime": self.clock.timestamp()}
        if message:
            status["message"] = message
        self.client.set_status(VOLUMES, volume, status)


def _claim_keys(claim: Obj) -> list[str]:
    """A claim, and the volume that it holds or, where it is gone, held."""
    volume = dig(claim, "spec", "volumeName")
    return [f"claim:{key_of(claim)}", *([f"volume:{volume}"] if volume else [])]


def _claims_of_pod(pod: Obj) -> list[str]:
    return [f"claim:{namespace_of(pod)}/{name}" for name in claim_names(pod)]
