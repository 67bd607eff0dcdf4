"""Volumes as the scheduler sees them: claims that are missing or unbound, and nodes a volume cannot be used from."""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.objects import Obj, annotations_of, dig, is_terminating, labels_of, name_of, namespace_of
from srearena.cluster.embedded.registry.claims import claim_names, smallest_free
from srearena.cluster.embedded.registry.placement import matches_terms
from srearena.cluster.embedded.scheduler.node_state import NodeState
from srearena.cluster.embedded.store import Store

NODE_CONFLICT = "node(s) had volume node affinity conflict"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
MISSING_VOLUME = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
SINGLE_POD = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@dataclass(slots=True)
class VolumeNeeds:
    """What the claims of a pod demand; `problem` is set where no node can ever do."""

    problem: str = ""
    bound: list[Obj | None] = field(default_factory=list)
    to_bind: list[Obj] = field(default_factory=list)
    exclusive: list[tuple[str, str]] = field(default_factory=list)


def volume_needs(pod: Obj, store: Store) -> VolumeNeeds:
    needs = VolumeNeeds()
    namespace = namespace_of(pod)
    immediate = False
    for claim_name in claim_names(pod):
        claim = store.get("persistentvolumeclaims", namespace, claim_name)
        if claim is None:
            needs.problem = f'persistentvolumeclaim "{claim_name}" not found'
            return needs
        if is_terminating(claim):
            needs.problem = f'persistentvolumeclaim "{claim_name}" is being deleted'
            return needs
        if dig(claim, "status", "phase") == "Lost":
            volume = dig(claim, "spec", "volumeName", default="")
            needs.problem = f'persistentvolumeclaim "{claim_name}" bound to non-existent persistentvolume "{volume}"'
            return needs
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


def waits_for_consumer(claim: Obj, store: Store) -> bool:
    storage_class = store.get("storageclasses.storage.k8s.io", "", dig(claim, "spec", "storageClassName", default=""))
    return storage_class is not None and storage_class.get("volumeBindingMode") == "WaitForFirstConsumer"


def volume_reason(needs: VolumeNeeds, node: NodeState, store: Store) -> str | None:
    for volume in needs.bound:
        if volume is None:
            return MISSING_VOLUME
        if not volume_reaches(volume, node.node):
            return NODE_CONFLICT
    for claim in needs.to_bind:
        if find_volume(claim, node.node, store) is None and not provisionable(claim, store, node.node):
            return BIND_CONFLICT
    return None


def exclusive_reason(needs: VolumeNeeds, node: NodeState) -> str | None:
    for namespace, claim_name in needs.exclusive:
        for other in node.pods.values():
            if namespace_of(other.pod) == namespace and claim_name in claim_names(other.pod):
                return SINGLE_POD
    return None


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
    selected = annotations_of(claim).get(SELECTED_NODE)
    if selected and selected != name_of(node):
        return False
    topologies = storage_class.get("allowedTopologies")
    return not topologies or any(
        all(
            labels_of(node).get(expression["key"]) in (expression.get("values") or ())
            for expression in topology.get("matchLabelExpressions") or ()
        )
        for topology in topologies
    )
