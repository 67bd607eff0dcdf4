"""Attach volumes of storage drivers to the nodes of their pods, and detach unused ones.

A volume that only one node may write to stays where it is until the last pod there is gone; a pod on another node
waits, with an event that names the reason. A node that cannot confirm having unmounted a volume is
waited for, six minutes at most. The attaching itself, which an external program does on a real cluster, takes a second.
"""

from __future__ import annotations

import hashlib
import re

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    dig,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
)
from srearena.cluster.embedded.registry.claims import claim_names
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

ATTACHMENTS = "volumeattachments.storage.k8s.io"
VOLUMES = "persistentvolumes"
CLAIMS = "persistentvolumeclaims"
DRIVERS = "csidrivers.storage.k8s.io"
"""An installed driver has one of these, and whatever attaches its volumes."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_WORK_SECONDS = 1.0
_REACTION = 0.1
_UNMOUNT_PATIENCE = 360.0
_ATTACHER_SECONDS = 120.0
# An attachment with another name was made by another client, which also removes it.
_OWN_NAME = re.compile("csi-[0-9a-f]{64}")
_SHARED = frozenset({"ReadWriteMany", "ReadOnlyMany"})


class AttachDetachController(Controller):
    name = "attachdetach-controller"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._reported: set[tuple[str, str]] = set()
        """(pod, volume) pairs whose wait was announced."""
        self._unwanted_since: dict[str, float] = {}
        self._awaited: set[str] = set()
        """Attachments that no driver has completed yet."""

    def start(self) -> None:
        self.world.on_change("pods", self._pod_changed)
        self.watch(CLAIMS, lambda claim: _named(dig(claim, "spec", "volumeName")))
        self.watch(VOLUMES, lambda volume: _named(name_of(volume)) if self._driver(volume) else ())
        self.watch(ATTACHMENTS, lambda found: _named(dig(found, "spec", "source", "persistentVolumeName")))
        self.watch(DRIVERS, self._volumes_of_driver)
        self.world.on_change("nodes", self._node_changed)

    def _pod_changed(self, change: Change) -> None:
        for pod in filter(None, (change.old, change.new)):
            if dig(pod, "spec", "nodeName") and dig(pod, "spec", "volumes"):
                for volume in self._volumes_of(pod):
                    self.enqueue(volume, _REACTION)

    def _node_changed(self, change: Change) -> None:
        for found in self.store.objects(ATTACHMENTS):
            if dig(found, "spec", "nodeName") == name_of(change.new):
                self.enqueue(dig(found, "spec", "source", "persistentVolumeName"), _REACTION)

    def _volumes_of(self, pod: Obj) -> list[str]:
        """The persistent volumes a pod uses that have to be attached."""
        found: list[str] = []
        for claim_name in claim_names(pod):
            claim = self.store.get(CLAIMS, namespace_of(pod), claim_name)
            volume = self.store.get(VOLUMES, "", dig(claim, "spec", "volumeName", default="")) if claim else None
            if volume is not None and self._driver(volume):
                found.append(name_of(volume))
        return found

    def _volumes_of_driver(self, described: Obj) -> list[str]:
        driver = name_of(described)
        return [name_of(volume) for volume in self.store.objects(VOLUMES) if self._driver(volume) == driver]

    def _driver(self, volume: Obj) -> str:
        """The driver that attaches the volume; empty where it needs no attaching."""
        driver: str = dig(volume, "spec", "csi", "driver", default="")
        described = self.store.get(DRIVERS, "", driver) if driver else None
        return "" if described is not None and dig(described, "spec", "attachRequired") is False else driver

    def reconcile(self, key: str) -> None:
        volume = self.client.get(VOLUMES, "", key)
        users = self._users(volume) if volume is not None else {}
        attachments = {
            dig(found, "spec", "nodeName", default=""): found
            for found in self.store.objects(ATTACHMENTS)
            if dig(found, "spec", "source", "persistentVolumeName") == key and _OWN_NAME.fullmatch(name_of(found))
        }
        for node, found in list(attachments.items()):
            if node in users:
                self._unwanted_since.pop(name_of(found), None)
            elif self._may_detach(found, node, key):
                self._detach(found, node, key)
        if volume is not None:
            for node, pods in users.items():
                self._attach(volume, node, pods, attachments, users)

    def _users(self, volume: Obj) -> dict[str, list[Obj]]:
        """Pods that use the volume, by node."""
        claim = dig(volume, "spec", "claimRef", default={})
        users: dict[str, list[Obj]] = {}
        if not self._driver(volume):
            return users
        for pod in self.store.objects("pods", claim.get("namespace", "")) if claim else ():
            node = dig(pod, "spec", "nodeName")
            if (
                node
                and dig(pod, "status", "phase") not in ("Succeeded", "Failed")
                and claim.get("name") in claim_names(pod)
            ):
                users.setdefault(node, []).append(pod)
        return users

    # Attaching

    def _attach(
        self, volume: Obj, node: str, pods: list[Obj], attachments: dict[str, Obj], users: dict[str, list[Obj]]
    ) -> None:
        found = attachments.get(node)
        if found is not None:
            if dig(found, "status", "attached"):
                self._announce(volume, pods)
            else:
                self._await_attacher(found)
            return
        elsewhere = [place for place in attachments if place != node]
        if elsewhere and not _SHARED & set(dig(volume, "spec", "accessModes", default=())):
            self._report_conflict(volume, pods, [pod for place in elsewhere for pod in users.get(place, ())])
            return
        driver, handle = self._driver(volume), dig(volume, "spec", "csi", "volumeHandle", default="")
        digest = hashlib.sha256(f"{handle}{driver}{node}".encode()).hexdigest()
        attachment = self.client.create(
            ATTACHMENTS,
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "VolumeAttachment",
                "metadata": {"name": f"csi-{digest}"},
                "spec": {
                    "attacher": driver,
                    "nodeName": node,
                    "source": {"persistentVolumeName": name_of(volume)},
                },
            },
        )
        attachments[node] = attachment
        self._await_attacher(attachment)

    def _await_attacher(self, attachment: Obj) -> None:
        """The driver attaches the volume soon if it is installed; otherwise the controller waits two minutes."""
        name, driver = name_of(attachment), dig(attachment, "spec", "attacher", default="")
        if self.store.get(DRIVERS, "", driver) is not None:
            self.clock.after(_WORK_SECONDS, self._complete, name)
        elif name not in self._awaited:
            self._awaited.add(name)
            self.clock.after(_ATTACHER_SECONDS, self._give_up, name)

    def _give_up(self, name: str) -> None:
        self._awaited.discard(name)
        found = self.client.get(ATTACHMENTS, "", name)
        volume_name = dig(found, "spec", "source", "persistentVolumeName", default="") if found is not None else ""
        volume = self.client.get(VOLUMES, "", volume_name) if volume_name else None
        if found is None or volume is None or dig(found, "status", "attached"):
            return
        driver, handle = self._driver(volume), dig(volume, "spec", "csi", "volumeHandle", default="")
        why = f"timed out waiting for external-attacher of {driver} CSI driver to attach volume {handle}"
        for pod in self._users(volume).get(dig(found, "spec", "nodeName", default=""), ()):
            text = f'AttachVolume.Attach failed for volume "{volume_name}" : {why}'
            self.recorder.event(pod, "Warning", "FailedAttachVolume", text)
        self.enqueue(volume_name)

    def _complete(self, name: str) -> None:
        found = self.client.get(ATTACHMENTS, "", name)
        if found is not None and not is_terminating(found):
            self.client.set_status(ATTACHMENTS, found, {"attached": True})
            self._write_node(dig(found, "spec", "nodeName", default=""))

    def _announce(self, volume: Obj, pods: list[Obj]) -> None:
        for pod in pods:
            mark = (f"{key_of(pod)}/attached", name_of(volume))
            if mark not in self._reported and dig(pod, "status", "phase") == "Pending" and not is_terminating(pod):
                self._reported.add(mark)
                self._reported.discard((key_of(pod), name_of(volume)))
                text = f'AttachVolume.Attach succeeded for volume "{name_of(volume)}" '
                self.recorder.event(pod, "Normal", "SuccessfulAttachVolume", text)

    def _report_conflict(self, volume: Obj, pods: list[Obj], others: list[Obj]) -> None:
        for pod in pods:
            if (key_of(pod), name_of(volume)) in self._reported or is_terminating(pod):
                continue
            self._reported.add((key_of(pod), name_of(volume)))
            if others:
                names = ", ".join(name_of(other) for other in others)
                why = f"Volume is already used by pod(s) {names}"
            else:
                why = "Volume is already exclusively attached to one node and can't be attached to another"
            text = f'Multi-Attach error for volume "{name_of(volume)}" {why}'
            self.recorder.event(pod, "Warning", "FailedAttachVolume", text)

    # Detaching

    def _may_detach(self, found: Obj, node: str, key: str) -> bool:
        machine = self.client.get("nodes", "", node)
        if machine is None or condition_is(machine, "Ready"):
            return True
        if any(taint.get("key") == OUT_OF_SERVICE for taint in dig(machine, "spec", "taints", default=())):
            return True
        since = self._unwanted_since.setdefault(name_of(found), self.clock.now)
        left = since + _UNMOUNT_PATIENCE - self.clock.now
        if left > 0:
            self.enqueue(key, left)
        return left <= 0

    def _detach(self, found: Obj, node: str, key: str) -> None:
        if not is_terminating(found):
            self._unwanted_since.pop(name_of(found), None)
            self.client.delete(ATTACHMENTS, found)
            self._write_node(node)
            self.enqueue(key, _WORK_SECONDS)

    def _write_node(self, node: str) -> None:
        """Write `volumesAttached` of the node's status."""
        machine = self.client.get("nodes", "", node)
        if machine is None:
            return
        attached: list[Obj] = []
        for found in self.store.objects(ATTACHMENTS):
            if dig(found, "spec", "nodeName") == node and dig(found, "status", "attached"):
                volume = self.store.get(VOLUMES, "", dig(found, "spec", "source", "persistentVolumeName", default=""))
                handle = dig(volume, "spec", "csi", "volumeHandle", default="")
                attached.append({"name": f"kubernetes.io/csi/{found['spec']['attacher']}^{handle}", "devicePath": ""})
        status = dict(machine.get("status") or {})
        if attached:
            status["volumesAttached"] = attached
        else:
            status.pop("volumesAttached", None)
        if status != machine.get("status"):
            self.client.set_status("nodes", machine, status)


def _named(volume: str | None) -> tuple[str, ...]:
    return (volume,) if volume else ()
