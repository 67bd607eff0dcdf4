"""Protection of claims in use by pods and of volumes bound to claims: a finalizer until they are unused."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.objects import Obj, dig, is_terminating, meta, name_of, namespace_of
from srearena.cluster.embedded.registry.claims import claim_names

CLAIMS = "persistentvolumeclaims"
VOLUMES = "persistentvolumes"


class _Protection(Controller):
    """Keeps one finalizer on every object of one resource for as long as the object is in use."""

    resource = ""
    finalizer = ""

    def start(self) -> None:
        self.watch(self.resource)

    def is_used(self, obj: Obj) -> bool:
        """Whether the object is in use."""
        raise TypeError(f"{type(self).__name__} does not say what use is")

    def reconcile(self, key: str) -> None:
        obj = self.client.get(self.resource, *split_key(key))
        if obj is None:
            return
        protected = self.finalizer in (meta(obj).get("finalizers") or ())
        if is_terminating(obj):
            if protected and not self.is_used(obj):
                self.client.modify(self.resource, namespace_of(obj), name_of(obj), self._release)
        elif not protected:
            self.client.modify(self.resource, namespace_of(obj), name_of(obj), self._protect)

    def _protect(self, obj: Obj) -> None:
        obj["metadata"].setdefault("finalizers", []).append(self.finalizer)

    def _release(self, obj: Obj) -> None:
        obj["metadata"]["finalizers"] = [f for f in meta(obj).get("finalizers") or () if f != self.finalizer]


class ClaimProtection(_Protection):
    name = "pvc-protection-controller"
    resource = CLAIMS
    finalizer = "kubernetes.io/pvc-protection"

    def start(self) -> None:
        super().start()
        self.store.add_index("pods", "claim", _claim_keys)
        self.watch("pods", _claim_keys)

    def is_used(self, obj: Obj) -> bool:
        # A pod without a node does not count: no kubelet would start it on a claim that is going away.
        key = f"{namespace_of(obj)}/{name_of(obj)}"
        return any(dig(pod, "spec", "nodeName") for pod in self.store.indexed("pods", "claim", key))


class VolumeProtection(_Protection):
    name = "pv-protection-controller"
    resource = VOLUMES
    finalizer = "kubernetes.io/pv-protection"

    def is_used(self, obj: Obj) -> bool:
        return bool(dig(obj, "status", "phase") == "Bound")


def _claim_keys(pod: Obj) -> list[str]:
    return [f"{namespace_of(pod)}/{name}" for name in claim_names(pod)]
