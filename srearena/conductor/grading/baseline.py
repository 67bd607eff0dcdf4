"""How a cluster was at one moment, so that later ones can be held against it.

Three are taken in an episode: before the fault, when the agent takes over, and when it is done. From them follow what
must still be there (`oracles`), and what the agent changed that the fault had not (`collateral`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from srearena.service.errors import ApiRefused, UnknownResource
from srearena.service.kubernetes import Kubernetes, Obj

WORKLOADS = ("deployments.apps", "statefulsets.apps", "daemonsets.apps")
_IN_NAMESPACES = (
    *WORKLOADS,
    "services",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "serviceaccounts",
    "resourcequotas",
    "limitranges",
    "networkpolicies.networking.k8s.io",
    "ingresses.networking.k8s.io",
    "cronjobs.batch",
    "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets.policy",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
)
_CLUSTER_WIDE = (
    "nodes",
    "namespaces",
    "storageclasses.storage.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "priorityclasses.scheduling.k8s.io",
)
_SYSTEM = "kube-system"
_OF_CONTROLLERS = (
    "deployment.kubernetes.io/",
    "kubectl.kubernetes.io/",
    "pv.kubernetes.io/",
    "node.alpha.kubernetes.io/",
    "volumes.kubernetes.io/",
)
Key = tuple[str, str, str]
"""Resource, namespace, name."""


@dataclass(frozen=True, slots=True)
class Difference:
    key: Key
    how: str
    """`added`, `removed` or `changed`."""

    def __str__(self) -> str:
        resource, namespace, name = self.key
        place = f" in {namespace}" if namespace else ""
        return f"{resource.partition('.')[0]}/{name}{place} {self.how}"


@dataclass(frozen=True, slots=True)
class Baseline:
    objects: dict[Key, Obj] = field(repr=False)
    facts: dict[str, Any] = field(default_factory=dict)
    """What checks found then and want to find again, by the check's name."""

    def of(self, *resources: str, namespace: str | None = None) -> Iterator[Obj]:
        for (resource, place, _), obj in self.objects.items():
            if resource in resources and (namespace is None or place == namespace):
                yield obj

    def get(self, resource: str, name: str, namespace: str = "") -> Obj | None:
        return self.objects.get((resource, namespace, name))

    def differences(self, other: Baseline) -> list[Difference]:
        """What is not in `other` as it was here."""
        keys = sorted(self.objects.keys() | other.objects.keys())
        found = []
        for key in keys:
            ours, theirs = self.objects.get(key), other.objects.get(key)
            if ours is None:
                found.append(Difference(key, "added"))
            elif theirs is None:
                found.append(Difference(key, "removed"))
            elif digest(ours) != digest(theirs):
                found.append(Difference(key, "changed"))
        return found


def capture(kubernetes: Kubernetes, namespaces: Sequence[str]) -> Baseline:
    """What an operator could have changed, in these namespaces, in the system's, and cluster-wide."""
    objects: dict[Key, Obj] = {}
    for namespace in (*namespaces, _SYSTEM):
        for resource in _IN_NAMESPACES:
            for obj in _listed(kubernetes, resource, namespace):
                if not _made_by_controller(obj):
                    objects[resource, namespace, obj["metadata"]["name"]] = obj
    for resource in _CLUSTER_WIDE:
        for obj in _listed(kubernetes, resource, None):
            objects[resource, "", obj["metadata"]["name"]] = obj
    return Baseline(objects)


def _listed(kubernetes: Kubernetes, resource: str, namespace: str | None) -> Iterable[Obj]:
    try:
        return kubernetes.list(resource, namespace)
    except (UnknownResource, ApiRefused):
        return ()  # a real cluster may lack an API, or keep it from us: then nobody can have changed it through us


def _made_by_controller(obj: Obj) -> bool:
    metadata = obj["metadata"]
    made = any(owner.get("controller") for owner in metadata.get("ownerReferences", ()))
    return made or metadata["name"] == "kube-root-ca.crt" or obj.get("type") == "kubernetes.io/service-account-token"


def digest(obj: Obj) -> str:
    """An object's intent as a short text: neither its status nor what controllers and tools note on it."""
    metadata = obj.get("metadata", {})
    notes = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith(_OF_CONTROLLERS) and "leader" not in key
    }
    intent = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    if obj.get("kind") == "Node":
        intent = {"spec": _node_intent(obj.get("spec") or {})}
    intent["labels"] = metadata.get("labels") or {}
    intent["annotations"] = notes
    template = (intent.get("spec") or {}).get("template") if isinstance(intent.get("spec"), dict) else None
    if isinstance(template, dict):
        intent = json.loads(json.dumps(intent))
        stamps = intent["spec"]["template"].get("metadata", {}).get("annotations") or {}
        for key in [key for key in stamps if key.startswith(_OF_CONTROLLERS)]:
            del stamps[key]
        if not stamps:
            intent["spec"]["template"].get("metadata", {}).pop("annotations", None)
    return hashlib.sha256(json.dumps(intent, sort_keys=True).encode()).hexdigest()


def _node_intent(spec: Obj) -> Obj:
    """A node's taints by conditions come and go by themselves."""
    taints = [t for t in spec.get("taints") or () if not str(t.get("key", "")).startswith("node.kubernetes.io/")]
    return {"unschedulable": bool(spec.get("unschedulable")), "taints": taints}


def collateral(before: Baseline, handed_over: Baseline, after: Baseline) -> list[Difference]:
    """What differs from before the fault although the fault had left it alone: the agent's doing, needed or not."""
    by_fault = {difference.key for difference in before.differences(handed_over)}
    since = {difference.key for difference in handed_over.differences(after)}
    return [d for d in before.differences(after) if d.key not in by_fault and d.key in since]
