"""Generic ephemeral volumes: a claim for each, created from the pod's template and deleted with the pod."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.objects import (
    Obj,
    controller_of,
    copy_of,
    dig,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from srearena.cluster.embedded.registry.errors import Conflict

CLAIMS = "persistentvolumeclaims"


class EphemeralVolumeController(Controller):
    name = "ephemeral-volume-controller"
    source = "ephemeral_volume"

    def start(self) -> None:
        self.watch("pods", lambda pod: (key_of(pod),) if _ephemeral_volumes(pod) else ())
        self.watch_owned(CLAIMS, "Pod")

    def reconcile(self, key: str) -> None:
        pod = self.client.get("pods", *split_key(key))
        if pod is None or is_terminating(pod) or dig(pod, "status", "phase") in ("Succeeded", "Failed"):
            return
        for volume in _ephemeral_volumes(pod):
            self._ensure_claim(pod, volume)

    def _ensure_claim(self, pod: Obj, volume: Obj) -> None:
        name = f"{name_of(pod)}-{volume['name']}"
        known = self.client.get(CLAIMS, namespace_of(pod), name)
        if known is not None:
            if (controller_of(known) or {}).get("uid") != uid_of(pod):
                why = f"PVC {key_of(known)} was not created for pod {key_of(pod)} (pod is not owner)"
                self.recorder.event(pod, "Warning", "FailedBinding", f"ephemeral volume {volume['name']}: {why}")
                raise Conflict(CLAIMS, name, why)  # a claim of another owner: wait until it is deleted
            return
        template = copy_of(volume["ephemeral"].get("volumeClaimTemplate") or {})
        source = template.get("metadata") or {}
        claim: Obj = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                **{part: source[part] for part in ("labels", "annotations") if source.get(part)},
                "name": name,
                "namespace": namespace_of(pod),
                "ownerReferences": [owner_reference(pod)],
            },
            "spec": template.get("spec") or {},
        }
        self.client.create(CLAIMS, claim)


def _ephemeral_volumes(pod: Obj) -> list[Obj]:
    return [volume for volume in dig(pod, "spec", "volumes", default=()) if volume.get("ephemeral")]
