"""What of a cluster outlives an episode and can be changed in it: the part that has to be as it was when we leave.

Namespaces of our own go as a whole and are not listed. Of the others only the system's and `default` are, where an
engineer on call (and so an agent) has rights. Secrets are known by name alone: nothing confidential is written down.
"""

from __future__ import annotations

from srearena.conductor.grading.baseline import Baseline, Key
from srearena.service.errors import UnknownResource
from srearena.service.kubernetes import Kubernetes, Obj

CLUSTER_WIDE = (
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "nodes",
    "namespaces",
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "storageclasses.storage.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "ingressclasses.networking.k8s.io",
    "runtimeclasses.node.k8s.io",
    "persistentvolumes",
)
"""In the order in which they are put right: what can keep the rest from being put right comes first."""
PLACES = ("kube-system", "default")
_IN_PLACES = (
    "resourcequotas",
    "limitranges",
    "configmaps",
    "deployments.apps",
    "daemonsets.apps",
    "statefulsets.apps",
    "services",
    "networkpolicies.networking.k8s.io",
    "cronjobs.batch",
    "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets.policy",
    "serviceaccounts",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
)
ONLY_NAMES = ("secrets", "pods", "jobs.batch")
"""Of these, what came is taken away again; what changed or went is its owner's business."""
_OWN_LIFE = ("kube-root-ca.crt", "extension-apiserver-authentication", "cluster-info")
_KEPT_METADATA = ("name", "namespace", "labels", "annotations", "finalizers", "ownerReferences", "creationTimestamp")


def take_inventory(api: Kubernetes) -> Baseline:
    """The state to come back to; ApiRefused where something that is served cannot be read."""
    objects: dict[Key, Obj] = {}
    seen: list[str] = []
    for resource in CLUSTER_WIDE:
        if _served(api, resource):
            seen.append(resource)
            for obj in api.list(resource):
                objects[resource, "", obj["metadata"]["name"]] = _kept(obj)
    for resource in (*_IN_PLACES, *ONLY_NAMES):
        if _served(api, resource):
            seen.append(resource)
            for namespace in PLACES:
                for obj in api.list(resource, namespace):
                    if not _lives_by_itself(obj):
                        kept = _named(obj) if resource in ONLY_NAMES else _kept(obj)
                        objects[resource, namespace, obj["metadata"]["name"]] = kept
    return Baseline(objects, {"seen": seen})


def comparable(before: Baseline, after: Baseline) -> frozenset[str]:
    """The resources that both inventories have looked at: of others nothing can be said."""
    return frozenset(before.facts.get("seen", ())) & frozenset(after.facts.get("seen", ()))


def as_document(inventory: Baseline) -> Obj:
    objects = [
        {"resource": resource, "namespace": namespace, "object": obj}
        for (resource, namespace, _), obj in inventory.objects.items()
    ]
    return {"seen": inventory.facts.get("seen", []), "objects": objects}


def from_document(document: Obj) -> Baseline:
    objects = {
        (entry["resource"], entry["namespace"], entry["object"]["metadata"]["name"]): entry["object"]
        for entry in document["objects"]
    }
    return Baseline(objects, {"seen": document["seen"]})


def _served(api: Kubernetes, resource: str) -> bool:
    try:
        api.resource(resource)
    except UnknownResource:
        return False
    return True


def _kept(obj: Obj) -> Obj:
    """An object as its author wrote it, without what changes by itself."""
    kept = {key: value for key, value in obj.items() if key != "status"}
    kept["metadata"] = {key: value for key, value in obj["metadata"].items() if key in _KEPT_METADATA}
    match obj["kind"]:
        case "Node":
            kept["metadata"].pop("annotations", None)
            spec = obj.get("spec") or {}
            kept["spec"] = {key: spec[key] for key in ("taints", "unschedulable") if spec.get(key)}
        case "Namespace":
            kept["metadata"].pop("annotations", None)
        case "ClusterRole" if obj.get("aggregationRule"):
            kept.pop("rules", None)
        case "PersistentVolume":
            # Whether it is bound, and to whom, changes by itself: a status rather than somebody's intent.
            claim = (obj.get("spec") or {}).get("claimRef")
            kept["spec"] = {key: value for key, value in (obj.get("spec") or {}).items() if key != "claimRef"}
            kept["metadata"].pop("finalizers", None)
            kept["metadata"].pop("annotations", None)
            if claim:
                kept["status"] = {"claimNamespace": claim.get("namespace", "")}
    return kept


def _named(obj: Obj) -> Obj:
    metadata = obj["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "creationTimestamp") if key in metadata}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": kept}


def _lives_by_itself(obj: Obj) -> bool:
    """Made by a controller, or a note that some component keeps for itself."""
    metadata = obj["metadata"]
    notes = metadata.get("annotations") or {}
    return (
        any(owner.get("controller") for owner in metadata.get("ownerReferences") or ())
        or any("leader" in key or key == "kubernetes.io/config.mirror" for key in notes)
        or (obj["kind"] == "ConfigMap" and (metadata["name"] in _OWN_LIFE or metadata["name"].endswith("-status")))
    )
