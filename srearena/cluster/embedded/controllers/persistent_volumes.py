"""The persistent volume binder: binding, provisioning, and reclaiming of volumes.

Pre-made volumes are matched by class, size, modes and labels, the smallest that fits. For a class with a provisioner
a volume is requested; with `WaitForFirstConsumer` only once the scheduler has chosen a node, and pre-made volumes of
such a class are chosen by the scheduler alone. For a claim that cannot be bound an event is recorded every fifteen
seconds, as by the real binder's resync.
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
from srearena.cluster.embedded.registry.claims import claim_names, fits, mismatch, smallest_free

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"
CLASSES = "storageclasses.storage.k8s.io"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
PROVISIONER_NOTES = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
SELECTED_NODE = "volume.kubernetes.io/selected-node"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
IN_TREE = "kubernetes.io/"
"""Provisioners of that name would have to be part of the controller manager; none is left."""
_RESYNC = 15.0


class PersistentVolumeBinder(Controller):
    name = "persistent-volume-binder"
    source = "persistentvolume-controller"

    def start(self) -> None:
        self.watch(CLAIMS, _claim_keys)
        self.watch(VOLUMES, self._volume_keys)
        self.watch("pods", _claims_of_pod)
        self.watch(CLASSES, lambda storage_class: self._waiting_claims(name_of(storage_class), None))

    def _volume_keys(self, volume: Obj) -> list[str]:
        keys = [f"volume:{name_of(volume)}"]
        claim = dig(volume, "spec", "claimRef")
        if claim:
            keys.append(f"claim:{claim.get('namespace')}/{claim.get('name')}")
        elif dig(volume, "status", "phase") == "Available":
            keys += self._waiting_claims(dig(volume, "spec", "storageClassName", default=""))
        return keys

    def _waiting_claims(self, *classes: str | None) -> list[str]:
        return [
            f"claim:{key_of(claim)}"
            for claim in self.store.objects(CLAIMS)
            if not dig(claim, "spec", "volumeName") and claim["spec"].get("storageClassName") in classes
        ]

    def reconcile(self, key: str) -> None:
        kind, _, rest = key.partition(":")
        if kind == "claim":
            claim = self.client.get(CLAIMS, *split_key(rest))
            if claim is not None:
                self._sync_claim(claim)
        else:
            volume = self.client.get(VOLUMES, "", rest)
            if volume is not None:
                self._sync_volume(volume)

    # Claims

    def _sync_claim(self, claim: Obj) -> None:
        volume_name = dig(claim, "spec", "volumeName")
        if BIND_COMPLETED in annotations_of(claim):
            self._check_bound(claim, volume_name)
        elif is_terminating(claim):
            return
        elif volume_name:
            self._bind_asked_for(claim, volume_name)
        else:
            self._find_volume(claim)

    def _check_bound(self, claim: Obj, volume_name: str | None) -> None:
        volume = self.client.get(VOLUMES, "", volume_name or "")
        if not volume_name:
            text = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            self._lose(claim, "ClaimLost", text)
        elif volume is None:
            text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            self._lose(claim, "ClaimLost", text)
        elif dig(volume, "spec", "claimRef", "uid") not in (None, "", uid_of(claim)):
            text = "Two claims are bound to the same volume, this one is bound incorrectly"
            self._lose(claim, "ClaimMisbound", text)
        elif not dig(volume, "spec", "claimRef"):
            self._bind(claim, volume)
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
        if owner and not _is_for(owner, claim):
            text = f'volume "{volume_name}" already bound to a different claim.'
            self._complain(claim, "Warning", "FailedBinding", text)
        elif not owner and (is_terminating(volume) or not fits(claim, volume)):
            why = mismatch(claim, volume) or f'the volume is marked for deletion "{volume_name}"'
            text = f'Cannot bind to requested volume "{volume_name}": {why}'
            self._complain(claim, "Warning", "VolumeMismatch", text)
        else:
            self._bind(claim, volume)

    def _find_volume(self, claim: Obj) -> None:
        claim = self._with_default_class(claim)
        storage_class = self._class_of(claim)
        waits = storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"
        volume = self._reserved_for(claim)
        if volume is None and not waits:
            volume = smallest_free(claim, self.store.objects(VOLUMES))
        if volume is not None:
            self._bind(claim, volume)
        elif waits and SELECTED_NODE not in annotations_of(claim):
            self._wait_for_consumer(claim)
        elif dig(claim, "spec", "storageClassName"):
            self._ask_for_volume(claim, storage_class)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            self._complain(claim, "Normal", "FailedBinding", text)

    def _class_of(self, claim: Obj) -> Obj | None:
        return self.client.get(CLASSES, "", dig(claim, "spec", "storageClassName", default=""))

    def _with_default_class(self, claim: Obj) -> Obj:
        """Set the default class of a claim without a class, also retroactively."""
        if claim["spec"].get("storageClassName") is not None:
            return claim
        marked = [c for c in self.store.objects(CLASSES) if annotations_of(c).get(DEFAULT_CLASS) == "true"]
        if not marked:
            return claim
        newest = max(marked, key=lambda c: (meta(c)["creationTimestamp"], name_of(c)))
        changed = self.client.modify(
            CLAIMS,
            namespace_of(claim),
            name_of(claim),
            lambda obj: obj["spec"].update(storageClassName=name_of(newest)),
        )
        return changed if changed is not None else claim

    def _reserved_for(self, claim: Obj) -> Obj | None:
        return next((v for v in self.store.objects(VOLUMES) if _is_for(dig(v, "spec", "claimRef"), claim)), None)

    def _wait_for_consumer(self, claim: Obj) -> None:
        waiting = [
            name_of(pod)
            for pod in self.store.objects("pods", namespace_of(claim))
            if name_of(claim) in claim_names(pod) and not dig(pod, "spec", "nodeName")
        ]
        if waiting:
            noun = "pod" if len(waiting) == 1 else "pods"
            text = f"waiting for {noun} {','.join(waiting)} to be scheduled"
            self._complain(claim, "Normal", "WaitForPodScheduled", text)
        else:
            text = "waiting for first consumer to be created before binding"
            self._complain(claim, "Normal", "WaitForFirstConsumer", text)

    def _ask_for_volume(self, claim: Obj, storage_class: Obj | None) -> None:
        if storage_class is None:
            wanted = dig(claim, "spec", "storageClassName", default="")
            text = f'storageclass.storage.k8s.io "{wanted}" not found'
            self._complain(claim, "Warning", "ProvisioningFailed", text)
            return
        provisioner = storage_class["provisioner"]
        if provisioner.startswith(IN_TREE):
            text = f"no volume plugin matched name: {provisioner}"
            self._complain(claim, "Warning", "ProvisioningFailed", text)
            return
        if annotations_of(claim).get(PROVISIONER_NOTES[1]) != provisioner:

            def note(current: Obj) -> None:
                current["metadata"].setdefault("annotations", {}).update(dict.fromkeys(PROVISIONER_NOTES, provisioner))

            claim = self.client.modify(CLAIMS, namespace_of(claim), name_of(claim), note) or claim
        text = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
            "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
            "correctly registered."
        )
        self._complain(claim, "Normal", "ExternalProvisioning", text)

    def _complain(self, claim: Obj, kind: str, reason: str, message: str) -> None:
        self._pending(claim)
        self.recorder.event(claim, kind, reason, message)
        self.enqueue(f"claim:{key_of(claim)}", _RESYNC)

    def _pending(self, claim: Obj) -> None:
        if dig(claim, "status", "phase") != "Pending":
            self.client.set_status(CLAIMS, claim, {"phase": "Pending"})

    # Binding

    def _bind(self, claim: Obj, volume: Obj) -> None:
        reference = claim_reference(claim)

        def take(current: Obj) -> None:
            owner = dig(current, "spec", "claimRef", default={})
            if owner.get("uid") != uid_of(claim):
                if not owner:
                    current["metadata"].setdefault("annotations", {})[BOUND_BY_CONTROLLER] = "yes"
                current["spec"]["claimRef"] = reference

        bound = self.client.modify(VOLUMES, "", name_of(volume), take)
        if bound is None:
            return
        self._set_phase(bound, "Bound")

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
        status = {"phase": "Bound", "accessModes": dig(volume, "spec", "accessModes", default=[])}
        if dig(claim, "status", "phase") != "Bound":
            # Later the capacity is managed by the volume resizer.
            status["capacity"] = dig(volume, "spec", "capacity", default={})
        if any(dig(claim, "status", key) != value for key, value in status.items()):
            self.client.set_status(CLAIMS, claim, {**(claim.get("status") or {}), **status})

    # Volumes

    def _sync_volume(self, volume: Obj) -> None:
        owner = dig(volume, "spec", "claimRef")
        if not owner or not owner.get("uid"):
            self._set_phase(volume, "Available")
            return
        claim = self.client.get(CLAIMS, owner.get("namespace", ""), owner.get("name", ""))
        if claim is not None and uid_of(claim) == owner["uid"]:
            if dig(claim, "spec", "volumeName") == name_of(volume) and BIND_COMPLETED in annotations_of(claim):
                self._set_phase(volume, "Bound")
            elif dig(claim, "spec", "volumeName") not in (None, "", name_of(volume)):
                self._let_go(volume)
            return
        if dig(volume, "status", "phase") != "Failed":
            self._set_phase(volume, "Released")
            self._reclaim(volume)

    def _let_go(self, volume: Obj) -> None:
        """The claim was bound to another volume: a provisioned one is deleted, a pre-made one is released."""
        if PROVISIONED_BY in annotations_of(volume):
            self._set_phase(volume, "Released")
            self._reclaim(volume)
            return

        def free(current: Obj) -> None:
            current["spec"].pop("claimRef", None)
            current["metadata"].get("annotations", {}).pop(BOUND_BY_CONTROLLER, None)

        if BOUND_BY_CONTROLLER in annotations_of(volume):
            self.client.modify(VOLUMES, "", name_of(volume), free)

    def _reclaim(self, volume: Obj) -> None:
        policy = dig(volume, "spec", "persistentVolumeReclaimPolicy", default="Retain")
        if policy != "Delete" or is_terminating(volume) or PROVISIONED_BY in annotations_of(volume):
            return  # the provisioner deletes its volume
        path = dig(volume, "spec", "hostPath", "path")
        if path is not None and path.startswith("/tmp/"):
            self.client.delete(VOLUMES, volume)
            return
        if path is not None:
            why = f"host_path deleter only supports /tmp/.+ but received provided {path}"
        else:
            name = name_of(volume)
            why = f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'
        self._set_phase(volume, "Failed", why)
        self.recorder.event(volume, "Warning", "VolumeFailedDelete", why)

    def _set_phase(self, volume: Obj, phase: str, message: str = "") -> None:
        if dig(volume, "status", "phase") == phase:
            return
        status = {"phase": phase, "lastPhaseTransitionTime": self.clock.timestamp()}
        if message:
            status["message"] = message
        self.client.set_status(VOLUMES, volume, status)


def claim_reference(claim: Obj) -> Obj:
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": namespace_of(claim),
        "name": name_of(claim),
        "uid": uid_of(claim),
        "resourceVersion": meta(claim)["resourceVersion"],
    }


def _is_for(reference: Obj | None, claim: Obj) -> bool:
    """Whether a volume's claimRef refers to this claim (by UID)."""
    if not reference or (reference.get("namespace"), reference.get("name")) != (namespace_of(claim), name_of(claim)):
        return False
    return reference.get("uid") in (None, "", uid_of(claim))


def _claim_keys(claim: Obj) -> list[str]:
    """A claim, and the volume that it holds or, where it is gone, held."""
    volume = dig(claim, "spec", "volumeName")
    return [f"claim:{key_of(claim)}", *([f"volume:{volume}"] if volume else [])]


def _claims_of_pod(pod: Obj) -> list[str]:
    return [f"claim:{namespace_of(pod)}/{name}" for name in claim_names(pod)]
