"""Baselines: the state of a cluster at one moment, for comparison with later states.

An episode captures three: before the fault, when the agent starts, and when it is done. Oracles compare with the first;
`collateral` finds what the agent changed and the fault had not.
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
_NAMESPACED = (
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
_CONTROLLER_ANNOTATIONS = (
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
    """One object that differs between two baselines."""

    key: Key
    how: str
    """`added`, `removed` or `changed`."""

    def __str__(self) -> str:
        resource, namespace, name = self.key
        location = f" in {namespace}" if namespace else ""
        return f"{resource.partition('.')[0]}/{name}{location} {self.how}"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The objects of a cluster, and what checks measured, at one moment."""

    objects: dict[Key, Obj] = field(repr=False)
    facts: dict[str, Any] = field(default_factory=dict)
    """What each check measured for later comparison, by the check's name."""

    def of(self, *resources: str, namespace: str | None = None) -> Iterator[Obj]:
        for (resource, object_namespace, _), obj in self.objects.items():
            if resource in resources and (namespace is None or object_namespace == namespace):
                yield obj

    def get(self, resource: str, name: str, namespace: str = "") -> Obj | None:
        return self.objects.get((resource, namespace, name))

    def differences(self, other: Baseline) -> list[Difference]:
        """The objects that were added, removed or changed from this baseline to `other`."""
        keys = sorted(self.objects.keys() | other.objects.keys())
        differences = []
        for key in keys:
            before, after = self.objects.get(key), other.objects.get(key)
            if before is None:
                differences.append(Difference(key, "added"))
            elif after is None:
                differences.append(Difference(key, "removed"))
            elif digest(before) != digest(after):
                differences.append(Difference(key, "changed"))
        return differences


def capture(kubernetes: Kubernetes, namespaces: Sequence[str]) -> Baseline:
    """Capture what an operator can change: in these namespaces, in kube-system, and cluster-wide."""
    objects: dict[Key, Obj] = {}
    for namespace in (*namespaces, _SYSTEM):
        for resource in _NAMESPACED:
            for obj in _list(kubernetes, resource, namespace):
                if not _is_generated(obj):
                    objects[resource, namespace, obj["metadata"]["name"]] = obj
    for resource in _CLUSTER_WIDE:
        for obj in _list(kubernetes, resource, None):
            objects[resource, "", obj["metadata"]["name"]] = obj
    return Baseline(objects)


def _list(kubernetes: Kubernetes, resource: str, namespace: str | None) -> Iterable[Obj]:
    try:
        return kubernetes.list(resource, namespace)
    except (UnknownResource, ApiRefused):
        return ()  # not served, or not readable: then it cannot have been changed through this client either


def _is_generated(obj: Obj) -> bool:
    """Whether a controller created the object, so that it is not an operator's intent."""
    metadata = obj["metadata"]
    controlled = any(owner.get("controller") for owner in metadata.get("ownerReferences", ()))
    return (
        controlled or metadata["name"] == "kube-root-ca.crt" or obj.get("type") == "kubernetes.io/service-account-token"
    )


def digest(obj: Obj) -> str:
    """A hash of the object's intent, without status and without annotations of controllers and tools."""
    metadata = obj.get("metadata", {})
    annotations = {
        key: value
        for key, value in (metadata.get("annotations") or {}).items()
        if not key.startswith(_CONTROLLER_ANNOTATIONS) and "leader" not in key
    }
    intent = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    if obj.get("kind") == "Node":
        intent = {"spec": _node_intent(obj.get("spec") or {})}
    intent["labels"] = metadata.get("labels") or {}
    intent["annotations"] = annotations
    template = (intent.get("spec") or {}).get("template") if isinstance(intent.get("spec"), dict) else None
    if isinstance(template, dict):
        intent = json.loads(json.dumps(intent))
        template_annotations = intent["spec"]["template"].get("metadata", {}).get("annotations") or {}
        for key in [key for key in template_annotations if key.startswith(_CONTROLLER_ANNOTATIONS)]:
            del template_annotations[key]
        if not template_annotations:
            intent["spec"]["template"].get("metadata", {}).pop("annotations", None)
    return hashlib.sha256(json.dumps(intent, sort_keys=True).encode()).hexdigest()


def _node_intent(spec: Obj) -> Obj:
    """A node's spec without the taints that a controller sets by conditions."""
    taints = [t for t in spec.get("taints") or () if not str(t.get("key", "")).startswith("node.kubernetes.io/")]
    return {"unschedulable": bool(spec.get("unschedulable")), "taints": taints}


def collateral(before: Baseline, handed_over: Baseline, after: Baseline) -> list[Difference]:
    """The differences that the agent caused: objects that the fault had not changed."""
    by_fault = {difference.key for difference in before.differences(handed_over)}
    by_agent = {difference.key for difference in handed_over.differences(after)}
    return [d for d in before.differences(after) if d.key not in by_fault and d.key in by_agent]
