"""The claims of a StatefulSet's pods: created before the pod, and kept or deleted by the retention policy.

A claim to be deleted with the set or with a scaled-down pod is owned by it; the garbage collector deletes it.
"""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.objects import (
    Obj,
    copy_of,
    dig,
    is_terminating,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from srearena.cluster.embedded.registry.errors import ApiError

CLAIMS = "persistentvolumeclaims"


def claims_of(owner: Obj, pod_name: str) -> dict[str, str]:
    """Claim names by the names of the volumes they are for."""
    templates = dig(owner, "spec", "volumeClaimTemplates", default=())
    return {name_of(template): f"{name_of(template)}-{pod_name}" for template in templates}


class StatefulClaims:
    def __init__(self, controller: Controller) -> None:
        self._client = controller.client
        self._recorder = controller.recorder

    def ensure(self, owner: Obj, pod_name: str) -> None:
        """Create the missing claims; ApiError on failure."""
        for template in dig(owner, "spec", "volumeClaimTemplates", default=()):
            name = f"{name_of(template)}-{pod_name}"
            known = self._client.get(CLAIMS, namespace_of(owner), name)
            if known is None:
                self._create(owner, template, name, pod_name)
            elif is_terminating(known):
                raise ApiError(f"pvc {name} is being deleted")

    def _create(self, owner: Obj, template: Obj, name: str, pod_name: str) -> None:
        source = copy_of(template)
        metadata: Obj = {
            "name": name,
            "namespace": namespace_of(owner),
            "labels": {**labels_of(template), **dig(owner, "spec", "selector", "matchLabels", default={})},
        }
        if meta(source).get("annotations"):
            metadata["annotations"] = source["metadata"]["annotations"]
        if _goes_with_set(owner):
            metadata["ownerReferences"] = [owner_reference(owner)]
        claim: Obj = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": metadata,
            "spec": source.get("spec") or {},
        }
        try:
            self._client.create(CLAIMS, claim)
        except ApiError as problem:
            text = f"create Claim {name} for Pod {pod_name} in StatefulSet {name_of(owner)} failed error: "
            self._recorder.event(owner, "Warning", "FailedCreate", text + problem.message)
            raise
        text = f"create Claim {name} Pod {pod_name} in StatefulSet {name_of(owner)} success"
        self._recorder.event(owner, "Normal", "SuccessfulCreate", text)

    def are_stale(self, owner: Obj, pod_name: str) -> bool:
        """Whether a claim belongs to a former pod of that name and must be deleted first."""
        for name in claims_of(owner, pod_name).values():
            claim = self._client.get(CLAIMS, namespace_of(owner), name)
            if any(reference.get("kind") == "Pod" for reference in meta(claim or {}).get("ownerReferences") or ()):
                return True
        return False

    def own(self, owner: Obj, pod: Obj, *, condemned: bool) -> None:
        """Bring the owners of a pod's claims in line with the retention policy."""
        wanted: list[Obj] = []
        if condemned and dig(owner, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled") == "Delete":
            wanted = [owner_reference(pod)]
        elif _goes_with_set(owner):
            wanted = [owner_reference(owner)]
        for name in claims_of(owner, name_of(pod)).values():
            claim = self._client.get(CLAIMS, namespace_of(owner), name)
            if claim is None or is_terminating(claim):
                continue
            known = meta(claim).get("ownerReferences") or []
            ours = {uid_of(owner), uid_of(pod)}
            others = [r for r in known if r.get("uid") not in ours]
            if [r for r in known if r.get("uid") in ours] != wanted:
                self._set_owners(claim, [*others, *wanted])

    def _set_owners(self, claim: Obj, owners: list[Obj]) -> None:
        def change(obj: Obj) -> None:
            obj["metadata"].pop("ownerReferences", None)
            if owners:
                obj["metadata"]["ownerReferences"] = owners

        self._client.modify(CLAIMS, namespace_of(claim), name_of(claim), change)


def _goes_with_set(owner: Obj) -> bool:
    return bool(dig(owner, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") == "Delete")
