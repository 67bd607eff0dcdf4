"""The inventory of a shared cluster: the state that outlives a run, can be changed in it, and must be restored.

Namespaces of the run are deleted as a whole and are not listed. Of the others only the system's and `default` are,
where an engineer on call (and so an agent) has rights. Of Secrets only names are recorded: no confidential data is
written to disk.
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
"""In the order of restoration: what can block the restoration of the others comes first."""
NAMESPACES = ("kube-system", "default")
_NAMESPACED = (
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
"""Of these, added objects are deleted; changes and deletions are left to their owners."""
_SELF_MAINTAINED = ("kube-root-ca.crt", "extension-apiserver-authentication", "cluster-info")
_RECORDED_METADATA = (
    "name",
    "namespace",
    "labels",
    "annotations",
    "finalizers",
    "ownerReferences",
    "creationTimestamp",
)


def take_inventory(api: Kubernetes) -> Baseline:
    """Record the state to restore; ApiRefused where a served resource cannot be read."""
    objects: dict[Key, Obj] = {}
    resources: list[str] = []
    for resource in CLUSTER_WIDE:
        if _served(api, resource):
            resources.append(resource)
            for obj in api.list(resource):
                objects[resource, "", obj["metadata"]["name"]] = _recorded(obj)
    for resource in (*_NAMESPACED, *ONLY_NAMES):
        if _served(api, resource):
            resources.append(resource)
            for namespace in NAMESPACES:
                for obj in api.list(resource, namespace):
                    if not _is_self_maintained(obj):
                        recorded = _named(obj) if resource in ONLY_NAMES else _recorded(obj)
                        objects[resource, namespace, obj["metadata"]["name"]] = recorded
    return Baseline(objects, {"seen": resources})


def comparable(before: Baseline, after: Baseline) -> frozenset[str]:
    """The resources that both inventories have listed; others cannot be compared."""
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


def _recorded(obj: Obj) -> Obj:
    """An object without the fields that change without a user's action."""
    recorded = {key: value for key, value in obj.items() if key != "status"}
    recorded["metadata"] = {key: value for key, value in obj["metadata"].items() if key in _RECORDED_METADATA}
    match obj["kind"]:
        case "Node":
            recorded["metadata"].pop("annotations", None)
            spec = obj.get("spec") or {}
            recorded["spec"] = {key: spec[key] for key in ("taints", "unschedulable") if spec.get(key)}
        case "Namespace":
            recorded["metadata"].pop("annotations", None)
        case "ClusterRole" if obj.get("aggregationRule"):
            recorded.pop("rules", None)
        case "PersistentVolume":
            # Controllers bind and release volumes: the claim is a status rather than an intent.
            claim = (obj.get("spec") or {}).get("claimRef")
            recorded["spec"] = {key: value for key, value in (obj.get("spec") or {}).items() if key != "claimRef"}
            recorded["metadata"].pop("finalizers", None)
            recorded["metadata"].pop("annotations", None)
            if claim:
                recorded["status"] = {"claimNamespace": claim.get("namespace", "")}
    return recorded


def _named(obj: Obj) -> Obj:
    metadata = obj["metadata"]
    recorded = {key: metadata[key] for key in ("name", "namespace", "creationTimestamp") if key in metadata}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": recorded}


def _is_self_maintained(obj: Obj) -> bool:
    """Whether a controller created the object, or a component keeps its own state in it."""
    metadata = obj["metadata"]
    annotations = metadata.get("annotations") or {}
    return (
        any(owner.get("controller") for owner in metadata.get("ownerReferences") or ())
        or any("leader" in key or key == "kubernetes.io/config.mirror" for key in annotations)
        or (
            obj["kind"] == "ConfigMap"
            and (metadata["name"] in _SELF_MAINTAINED or metadata["name"].endswith("-status"))
        )
    )
