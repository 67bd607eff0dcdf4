"""Baselines: the state of a cluster at one moment, for comparison with later states.

An episode captures three: before the fault, when the agent starts, and when it is done. Oracles compare with the first;
`srearena.conductor.grading.collateral` finds what the agent changed without need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from srearena.conductor.grading.ownership import Owners, is_garbage, is_generated, made_by_operator
from srearena.service.errors import ApiRefused, UnknownResource
from srearena.service.kubernetes import Kubernetes, Obj

WORKLOADS = ("deployments.apps", "statefulsets.apps", "daemonsets.apps")
_NAMESPACED = (
    *WORKLOADS,
    "replicasets.apps",
    "replicationcontrollers",
    "pods",
    "services",
    "endpointslices.discovery.k8s.io",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "serviceaccounts",
    "resourcequotas",
    "limitranges",
    "networkpolicies.networking.k8s.io",
    "ingresses.networking.k8s.io",
    "jobs.batch",
    "cronjobs.batch",
    "horizontalpodautoscalers.autoscaling",
    "poddisruptionbudgets.policy",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
)
_BY_CONTROLLERS = ("pods", "endpointslices.discovery.k8s.io", "jobs.batch", "replicasets.apps")
"""What controllers make, each before its owners."""
_CLUSTER_WIDE = (
    "nodes",
    "namespaces",
    "persistentvolumes",
    "storageclasses.storage.k8s.io",
    "ingressclasses.networking.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "apiservices.apiregistration.k8s.io",
)
_DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io"
SYSTEM_NAMESPACES = ("kube-system", "default")
"""Captured besides the application's namespaces: an engineer on call may write there too."""
_CONTROLLER_ANNOTATIONS = (
    "deployment.kubernetes.io/",
    "deprecated.daemonset.template.generation",
    "kubectl.kubernetes.io/",
    "pv.kubernetes.io/",
    "node.alpha.kubernetes.io/",
    "volume.kubernetes.io/",
    "volume.beta.kubernetes.io/",
    "volumes.kubernetes.io/",
    "endpoints.kubernetes.io/",
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
    of_operators: dict[Key, Obj] = field(default_factory=dict, repr=False)
    """Objects that custom resources own, which are left out of `objects`."""

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
            elif intent_of(before) != intent_of(after):
                differences.append(Difference(key, "changed"))
        return differences


def capture(kubernetes: Kubernetes, namespaces: Iterable[str], resources: Collection[str] = ()) -> Baseline:
    """Capture what an operator can change: in these and the system's namespaces, and cluster-wide.

    `resources` restricts it to some resources, all objects of which are included.
    """
    included = {*namespaces, *SYSTEM_NAMESPACES}
    objects: dict[Key, Obj] = {}
    if resources:
        for resource in resources:
            _add(objects, resource, _list_built_in(kubernetes, resource), included)
        return Baseline(objects)
    # What controllers make is listed before its owners: then each owner is known, also of what is made meanwhile.
    early = {resource: _list_built_in(kubernetes, resource) for resource in _BY_CONTROLLERS}
    for resource in (*_NAMESPACED, *_CLUSTER_WIDE):
        found = early[resource] if resource in early else _list_built_in(kubernetes, resource)
        _add(objects, resource, found, included)
    for definition in _list_built_in(kubernetes, _DEFINITIONS):
        objects[_DEFINITIONS, "", definition["metadata"]["name"]] = definition
        resource = definition["metadata"]["name"]
        _add(objects, resource, _list(kubernetes, resource), included)
    owners: Owners = {str(obj["metadata"].get("uid")): (key[0].partition(".")[2], obj) for key, obj in objects.items()}
    return Baseline(
        {key: obj for key, obj in objects.items() if not is_generated(obj, owners) and not is_garbage(obj, owners)},
        of_operators={key: obj for key, obj in objects.items() if made_by_operator(obj, owners)},
    )


def _add(objects: dict[Key, Obj], resource: str, found: Iterable[Obj], namespaces: Collection[str]) -> None:
    for obj in found:
        namespace = obj["metadata"].get("namespace", "")
        if not namespace or namespace in namespaces:
            objects[resource, namespace, obj["metadata"]["name"]] = obj


def _list_built_in(kubernetes: Kubernetes, resource: str) -> Iterable[Obj]:
    """As `_list`, for resources that a cluster serves from its start or never: not looked for again."""
    return _list(kubernetes, resource) if kubernetes.knows(resource) else ()


def _list(kubernetes: Kubernetes, resource: str) -> Iterable[Obj]:
    try:
        return kubernetes.list(resource)
    except (UnknownResource, ApiRefused):
        return ()  # not served, or not readable: then it cannot have been changed through this client either


def intent_of(obj: Obj) -> Obj:
    """What an operator set: the object without status and without annotations of controllers and tools."""
    metadata = obj.get("metadata", {})
    intent = {key: value for key, value in obj.items() if key not in ("metadata", "status", "apiVersion", "kind")}
    if obj.get("kind") == "Node":
        intent = {"spec": _node_intent(obj.get("spec") or {})}
    intent["labels"] = metadata.get("labels") or {}
    intent["annotations"] = _operator_annotations(metadata)
    template = (intent.get("spec") or {}).get("template") if isinstance(intent.get("spec"), dict) else None
    if isinstance(template, dict) and isinstance(template.get("metadata") or {}, dict):  # a custom one may be anything
        template_metadata = dict(template.get("metadata") or {})
        template_metadata["annotations"] = _operator_annotations(template_metadata)
        intent["spec"] = {**intent["spec"], "template": {**template, "metadata": template_metadata}}
    return intent


def _operator_annotations(metadata: Obj) -> Any:
    annotations = metadata.get("annotations") or {}
    if not isinstance(annotations, dict):
        return annotations
    return {
        key: value
        for key, value in annotations.items()
        if not key.startswith(_CONTROLLER_ANNOTATIONS) and "leader" not in key
    }


def _node_intent(spec: Obj) -> Obj:
    """A node's spec without the taints that a controller sets by conditions."""
    taints = [t for t in spec.get("taints") or () if not str(t.get("key", "")).startswith("node.kubernetes.io/")]
    return {"unschedulable": bool(spec.get("unschedulable")), "taints": taints}
