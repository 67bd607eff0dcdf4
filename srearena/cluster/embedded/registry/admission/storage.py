"""Plug-ins for classes of storage and ingress: the default class is filled in, and only some claims may grow."""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj, annotations_of, dig, meta, name_of
from srearena.cluster.embedded.quantity import units
from srearena.cluster.embedded.registry.admission.chain import Attributes, Plugin
from srearena.cluster.embedded.store import Store

_DEFAULT_STORAGE = "storageclass.kubernetes.io/is-default-class"
_DEFAULT_INGRESS = "ingressclass.kubernetes.io/is-default-class"
_OLD_STORAGE_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
_OLD_INGRESS_ANNOTATION = "kubernetes.io/ingress.class"


def default_class(store: Store, resource: str, annotation: str) -> Obj | None:
    """The class marked as default; the newest where several are."""
    marked = [c for c in store.objects(resource) if annotations_of(c).get(annotation) == "true"]
    return max(marked, key=lambda c: (meta(c).get("creationTimestamp", ""), name_of(c)), default=None)


class DefaultStorageClass(Plugin):
    name = "DefaultStorageClass"

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, attributes: Attributes) -> None:
        claim = attributes.obj
        if claim is None or not attributes.is_for("persistentvolumeclaims", "CREATE"):
            return
        if dig(claim, "spec", "storageClassName") is None and _OLD_STORAGE_ANNOTATION not in annotations_of(claim):
            chosen = default_class(self._store, "storageclasses.storage.k8s.io", _DEFAULT_STORAGE)
            if chosen is not None:
                claim.setdefault("spec", {})["storageClassName"] = name_of(chosen)


class DefaultIngressClass(Plugin):
    name = "DefaultIngressClass"

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, attributes: Attributes) -> None:
        ingress = attributes.obj
        if ingress is None or not attributes.is_for("ingresses.networking.k8s.io", "CREATE"):
            return
        if dig(ingress, "spec", "ingressClassName") is None and _OLD_INGRESS_ANNOTATION not in annotations_of(ingress):
            chosen = default_class(self._store, "ingressclasses.networking.k8s.io", _DEFAULT_INGRESS)
            if chosen is not None:
                ingress.setdefault("spec", {})["ingressClassName"] = name_of(chosen)


class ClaimResize(Plugin):
    name = "PersistentVolumeClaimResize"

    def __init__(self, store: Store) -> None:
        self._store = store

    def validate(self, attributes: Attributes) -> None:
        claim, old = attributes.obj, attributes.old
        if claim is None or old is None or not attributes.is_for("persistentvolumeclaims", "UPDATE"):
            return
        path = ("spec", "resources", "requests", "storage")
        if units(dig(claim, *path, default="0")) <= units(dig(old, *path, default="0")):
            return
        if dig(old, "status", "phase") != "Bound":
            raise attributes.refusal("Only bound persistent volume claims can be expanded")
        name = dig(old, "spec", "storageClassName", default="")
        storage_class = self._store.get("storageclasses.storage.k8s.io", "", name)
        if storage_class is None or not storage_class.get("allowVolumeExpansion"):
            why = (
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
                "must support resize"
            )
            raise attributes.refusal(why)
