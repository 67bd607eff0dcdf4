"""Volume filters: missing or unbound claims, and nodes on which a volume cannot be used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from srearena.cluster.embedded.objects import (
    Obj,
    annotations_of,
    controller_of,
    dig,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    uid_of,
)
from srearena.cluster.embedded.registry.claims import claim_names, smallest_free
from srearena.cluster.embedded.registry.placement import matches_terms
from srearena.cluster.embedded.scheduler.node_state import NodeState
from srearena.cluster.embedded.store import Store

NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
MISSING_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
SINGLE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
TOO_MANY = "node(s) exceed max volume count"
NO_ZONE = "node(s) had no available volume zone"
_ZONE_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_OLD_ZONE_LABELS = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
NO_PROVISIONER = "kubernetes.io/no-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@dataclass(slots=True)
class VolumeNeeds:
    """The claims of a pod; `problem` is set where no node can satisfy them."""

    problem: str = ""
    bound: list[Obj | None] = field(default_factory=list)
    to_bind: list[Obj] = field(default_factory=list)
    exclusive: list[tuple[str, str]] = field(default_factory=list)


def volume_needs(pod: Obj, store: Store) -> VolumeNeeds:
    needs = VolumeNeeds()
    namespace = namespace_of(pod)
    immediate = False
    claims = {name: store.get("persistentvolumeclaims", namespace, name) for name in claim_names(pod)}
    needs.problem = _claim_problem(pod, claims)
    if needs.problem:
        return needs
    for claim_name, claim in claims.items():
        assert claim is not None
        if "ReadWriteOncePod" in dig(claim, "spec", "accessModes", default=()):
            needs.exclusive.append((namespace, claim_name))
        volume_name = dig(claim, "spec", "volumeName")
        if volume_name and dig(claim, "status", "phase") == "Bound":
            needs.bound.append(store.get("persistentvolumes", "", volume_name))
        elif waits_for_consumer(claim, store) and not volume_name:
            needs.to_bind.append(claim)
        else:
            immediate = True
    if immediate:
        needs.problem = "pod has unbound immediate PersistentVolumeClaims"
    return needs


def _claim_problem(pod: Obj, claims: dict[str, Obj | None]) -> str:
    """Errors in the claims themselves: all must exist before any is checked further."""
    named = {dig(volume, "persistentVolumeClaim", "claimName") for volume in dig(pod, "spec", "volumes", default=())}
    for name, claim in claims.items():
        if claim is None and name in named:
            return f'persistentvolumeclaim "{name}" not found'
    for name, claim in claims.items():
        if claim is None:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        if dig(claim, "status", "phase") == "Lost":
            volume = dig(claim, "spec", "volumeName", default="")
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
        if is_terminating(claim):
            return f'persistentvolumeclaim "{name}" is being deleted'
        owner = controller_of(claim) or {}
        if name not in named and owner.get("uid") != uid_of(pod):
            namespace = namespace_of(pod)
            return f"PVC {namespace}/{name} was not created for pod {namespace}/{name_of(pod)} (pod is not owner)"
    return ""


def waits_for_consumer(claim: Obj, store: Store) -> bool:
    storage_class = store.get("storageclasses.storage.k8s.io", "", dig(claim, "spec", "storageClassName", default=""))
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def volume_reasons(needs: VolumeNeeds, node: NodeState, store: Store) -> list[str]:
    """Both kinds of conflict are reported: of bound volumes and of unbound claims."""
    reasons: list[str] = []
    missing = False
    for volume in needs.bound:
        if volume is None:
            missing = True
            break
        if not volume_reaches(volume, node.node):
            reasons.append(NODE_CONFLICT)
            break
    if not all(_bindable(claim, node.node, store) for claim in needs.to_bind):
        reasons.append(BIND_CONFLICT)
    return [*reasons, MISSING_VOLUME] if missing else reasons


def _bindable(claim: Obj, node: Obj, store: Store) -> bool:
    """A claim with a selected node can be provisioned only there."""
    selected = annotations_of(claim).get(SELECTED_NODE)
    if selected is None and find_volume(claim, node, store) is not None:
        return True
    return selected in (None, name_of(node)) and provisionable(claim, store, node)


def limit_reason(needs: VolumeNeeds, node: NodeState, store: Store) -> str | None:
    """Whether the volumes exceed the driver's attach limit from the CSINode object."""
    wanted = {handle for volume in needs.bound if volume is not None and (handle := _handle(volume))}
    if not wanted:
        return None
    described = store.get("csinodes.storage.k8s.io", "", name_of(node.node))
    limits = {
        row.get("name"): dig(row, "allocatable", "count") for row in dig(described, "spec", "drivers", default=())
    }
    if not any(limits.get(driver) is not None for driver, _ in wanted):
        return None
    attached = {
        handle
        for other in node.pods.values()
        for name in claim_names(other.pod)
        if (volume := _volume_of(namespace_of(other.pod), name, store)) is not None and (handle := _handle(volume))
    }
    for driver in {driver for driver, _ in wanted - attached}:
        limit = limits.get(driver)
        if limit is not None and sum(1 for d, _ in wanted | attached if d == driver) > limit:
            return TOO_MANY
    return None


def _handle(volume: Obj) -> tuple[str, str] | None:
    """Driver and handle of a volume that a driver attaches."""
    source = dig(volume, "spec", "csi")
    return (source["driver"], source.get("volumeHandle", "")) if source else None


def _volume_of(namespace: str, claim_name: str, store: Store) -> Obj | None:
    claim = store.get("persistentvolumeclaims", namespace, claim_name)
    return store.get("persistentvolumes", "", dig(claim, "spec", "volumeName", default="")) if claim else None


def zone_reason(needs: VolumeNeeds, node: NodeState) -> str | None:
    """Whether a volume is labelled with a zone that is not the node's; nodes without a zone label pass."""
    here = labels_of(node.node)
    if not any(label in here for label in (*_ZONE_LABELS, *_OLD_ZONE_LABELS)):
        return None
    for volume in needs.bound:
        for label, value in labels_of(volume or {}).items():
            if label not in _ZONE_LABELS and label not in _OLD_ZONE_LABELS:
                continue
            mine = here.get(label) or here.get(_OLD_ZONE_LABELS.get(label, ""))
            if mine not in value.split("__"):
                return NO_ZONE
    return None


def exclusive_claims_in_use(needs: VolumeNeeds, nodes: Iterable[NodeState]) -> bool:
    """Whether a ReadWriteOncePod claim is already used by another pod."""
    return bool(needs.exclusive) and any(
        namespace_of(other.pod) == namespace and claim_name in claim_names(other.pod)
        for node in nodes
        for other in node.pods.values()
        for namespace, claim_name in needs.exclusive
    )


def volume_reaches(volume: Obj, node: Obj) -> bool:
    required = dig(volume, "spec", "nodeAffinity", "required")
    return required is None or matches_terms(required.get("nodeSelectorTerms") or (), node)


def find_volume(claim: Obj, node: Obj, store: Store) -> Obj | None:
    """The smallest free volume that fits the claim and can be used from the node."""
    return smallest_free(claim, (v for v in store.objects("persistentvolumes") if volume_reaches(v, node)))


def provisionable(claim: Obj, store: Store, node: Obj) -> bool:
    name = dig(claim, "spec", "storageClassName", default="")
    storage_class = store.get("storageclasses.storage.k8s.io", "", name)
    if storage_class is None or storage_class.get("provisioner") == NO_PROVISIONER:
        return False
    topologies = storage_class.get("allowedTopologies")
    return not topologies or any(
        all(
            labels_of(node).get(expression["key"]) in (expression.get("values") or ())
            for expression in topology.get("matchLabelExpressions") or ()
        )
        for topology in topologies
    )
