"""The table of resources the API serves: one row each, from which discovery, routing, RBAC and storage follow.

Built-in rows are below, as a v1.34 server has them; rows of custom resources come and go with their definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol

from srearena.cluster.embedded.objects import Obj

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(slots=True, frozen=True)
class Subresource:
    """`status`, `scale`, `log` ...: its verbs and the kind it speaks, where that is not the parent's."""

    name: str
    verbs: tuple[str, ...] = ("get", "patch", "update")
    group: str | None = None
    version: str | None = None
    kind: str | None = None


class Converter(Protocol):
    """Converts objects to another version; may have to wait (`AdmissionPending`)."""

    def convert(self, obj: Obj, api_version: str) -> Obj: ...

    def convert_all(self, objects: list[Obj], api_version: str) -> list[Obj]: ...


@dataclass(slots=True, frozen=True)
class Resource:
    """One served resource in one version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    stored_as: str = ""
    """The store's name for the objects, where two served resources show the same ones (events, versions)."""
    storage_version: str = ""
    """The group/version in which the objects are kept, where it is not this one."""
    custom: bool = False
    has_generation: bool = False
    """Whether metadata.generation counts changes of the spec."""
    complete: Callable[[Obj], Obj] | None = None
    """Adds to a stored object what its definition has come to default since; the given object stays as it is."""
    converter: Converter | None = None
    """Converts objects of a custom resource between versions, where these differ in more than their name."""
    deprecation: str = ""
    """What every answer about a deprecated resource warns of."""

    # What follows from the above; asked for at every write.
    api_version: str = field(init=False)
    group_resource: str = field(init=False)
    """`deployments.apps`, as error messages and RBAC show it."""
    group_kind: str = field(init=False)
    """`Deployment.apps`, as validation errors show it."""
    storage_key: str = field(init=False)
    has_status: bool = field(init=False)

    def __post_init__(self) -> None:
        suffix = f".{self.group}" if self.group else ""
        derived = {
            "api_version": f"{self.group}/{self.version}" if self.group else self.version,
            "group_resource": f"{self.plural}{suffix}",
            "group_kind": f"{self.kind}{suffix}",
            "storage_key": self.stored_as or f"{self.plural}{suffix}",
            "has_status": any(sub.name == "status" for sub in self.subresources),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    def subresource(self, name: str) -> Subresource | None:
        return next((sub for sub in self.subresources if sub.name == name), None)


STATUS = Subresource("status")
SCALE = Subresource("scale", group="autoscaling", version="v1", kind="Scale")


def _rows(group: str, version: str, *rows: Resource) -> tuple[Resource, ...]:
    return tuple(replace(row, group=group, version=version, singular=row.singular or row.kind.lower()) for row in rows)


def _row(
    plural: str,
    kind: str,
    short: str = "",
    *,
    namespaced: bool = True,
    status: bool = False,
    scale: bool = False,
    categories: str = "",
    verbs: tuple[str, ...] = ALL_VERBS,
    more: tuple[Subresource, ...] = (),
    generation: bool = False,
    stored_as: str = "",
    storage_version: str = "",
    deprecation: str = "",
) -> Resource:
    subresources = (*more, *((SCALE,) if scale else ()), *((STATUS,) if status else ()))
    return Resource(
        group="",
        version="",
        plural=plural,
        kind=kind,
        namespaced=namespaced,
        short_names=tuple(short.split()),
        categories=tuple(categories.split()),
        verbs=verbs,
        subresources=tuple(sorted(subresources, key=lambda sub: sub.name)),
        has_generation=generation,
        stored_as=stored_as,
        storage_version=storage_version,
        deprecation=deprecation,
    )


_CREATE = ("create",)
_CONNECT = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")

BUILT_IN: tuple[Resource, ...] = (
    *_rows(
        "",
        "v1",
        _row("bindings", "Binding", verbs=_CREATE),
        _row(
            "componentstatuses",
            "ComponentStatus",
            "cs",
            namespaced=False,
            verbs=("get", "list"),
            deprecation="v1 ComponentStatus is deprecated in v1.19+",
        ),
        _row("configmaps", "ConfigMap", "cm"),
        _row(
            "endpoints",
            "Endpoints",
            "ep",
            deprecation="v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        _row("events", "Event", "ev", stored_as="events"),
        _row("limitranges", "LimitRange", "limits"),
        _row(
            "namespaces",
            "Namespace",
            "ns",
            namespaced=False,
            status=True,
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
            more=(Subresource("finalize", ("update",)),),
        ),
        _row(
            "nodes",
            "Node",
            "no",
            namespaced=False,
            status=True,
            more=(Subresource("proxy", _PROXY, kind="NodeProxyOptions"),),
        ),
        _row("persistentvolumeclaims", "PersistentVolumeClaim", "pvc", status=True),
        _row("persistentvolumes", "PersistentVolume", "pv", namespaced=False, status=True),
        _row(
            "pods",
            "Pod",
            "po",
            status=True,
            categories="all",
            generation=True,
            more=(
                Subresource("attach", _CONNECT, kind="PodAttachOptions"),
                Subresource("binding", _CREATE, kind="Binding"),
                Subresource("ephemeralcontainers"),
                Subresource("eviction", _CREATE, group="policy", version="v1", kind="Eviction"),
                Subresource("exec", _CONNECT, kind="PodExecOptions"),
                Subresource("log", ("get",)),
                Subresource("portforward", _CONNECT, kind="PodPortForwardOptions"),
                Subresource("proxy", _PROXY, kind="PodProxyOptions"),
                Subresource("resize"),
            ),
        ),
        _row("podtemplates", "PodTemplate"),
        _row(
            "replicationcontrollers",
            "ReplicationController",
            "rc",
            status=True,
            scale=True,
            categories="all",
            generation=True,
        ),
        _row("resourcequotas", "ResourceQuota", "quota", status=True),
        _row("secrets", "Secret"),
        _row(
            "serviceaccounts",
            "ServiceAccount",
            "sa",
            more=(Subresource("token", _CREATE, group="authentication.k8s.io", version="v1", kind="TokenRequest"),),
        ),
        _row(
            "services",
            "Service",
            "svc",
            status=True,
            categories="all",
            more=(Subresource("proxy", _PROXY, kind="ServiceProxyOptions"),),
        ),
    ),
    *_rows(
        "admissionregistration.k8s.io",
        "v1",
        _row(
            "mutatingwebhookconfigurations",
            "MutatingWebhookConfiguration",
            namespaced=False,
            categories="api-extensions",
            generation=True,
        ),
        _row(
            "validatingadmissionpolicies",
            "ValidatingAdmissionPolicy",
            namespaced=False,
            status=True,
            categories="api-extensions",
            generation=True,
        ),
        _row(
            "validatingadmissionpolicybindings",
            "ValidatingAdmissionPolicyBinding",
            namespaced=False,
            categories="api-extensions",
            generation=True,
        ),
        _row(
            "validatingwebhookconfigurations",
            "ValidatingWebhookConfiguration",
            namespaced=False,
            categories="api-extensions",
            generation=True,
        ),
    ),
    *_rows(
        "apiextensions.k8s.io",
        "v1",
        _row(
            "customresourcedefinitions",
            "CustomResourceDefinition",
            "crd crds",
            namespaced=False,
            status=True,
            categories="api-extensions",
            generation=True,
        ),
    ),
    *_rows(
        "apiregistration.k8s.io",
        "v1",
        _row("apiservices", "APIService", namespaced=False, status=True, categories="api-extensions"),
    ),
    *_rows(
        "apps",
        "v1",
        _row("controllerrevisions", "ControllerRevision"),
        _row("daemonsets", "DaemonSet", "ds", status=True, categories="all", generation=True),
        _row("deployments", "Deployment", "deploy", status=True, scale=True, categories="all", generation=True),
        _row("replicasets", "ReplicaSet", "rs", status=True, scale=True, categories="all", generation=True),
        _row("statefulsets", "StatefulSet", "sts", status=True, scale=True, categories="all", generation=True),
    ),
    *_rows(
        "authentication.k8s.io",
        "v1",
        _row("selfsubjectreviews", "SelfSubjectReview", namespaced=False, verbs=_CREATE),
        _row("tokenreviews", "TokenReview", namespaced=False, verbs=_CREATE),
    ),
    *_rows(
        "authorization.k8s.io",
        "v1",
        _row("localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=_CREATE),
        _row("selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False, verbs=_CREATE),
        _row("selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False, verbs=_CREATE),
        _row("subjectaccessreviews", "SubjectAccessReview", namespaced=False, verbs=_CREATE),
    ),
    *_rows(
        "autoscaling",
        "v2",
        _row("horizontalpodautoscalers", "HorizontalPodAutoscaler", "hpa", status=True, categories="all"),
    ),
    *_rows(
        "autoscaling",
        "v1",
        _row(
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            "hpa",
            status=True,
            categories="all",
            storage_version="autoscaling/v2",
        ),
    ),
    *_rows(
        "batch",
        "v1",
        _row("cronjobs", "CronJob", "cj", status=True, categories="all", generation=True),
        _row("jobs", "Job", status=True, categories="all", generation=True),
    ),
    *_rows(
        "certificates.k8s.io",
        "v1",
        _row(
            "certificatesigningrequests",
            "CertificateSigningRequest",
            "csr",
            namespaced=False,
            status=True,
            more=(Subresource("approval"),),
        ),
    ),
    *_rows("coordination.k8s.io", "v1", _row("leases", "Lease")),
    *_rows("discovery.k8s.io", "v1", _row("endpointslices", "EndpointSlice", generation=True)),
    *_rows("events.k8s.io", "v1", _row("events", "Event", "ev", stored_as="events", storage_version="v1")),
    *_rows(
        "flowcontrol.apiserver.k8s.io",
        "v1",
        _row("flowschemas", "FlowSchema", namespaced=False, status=True, generation=True),
        _row(
            "prioritylevelconfigurations", "PriorityLevelConfiguration", namespaced=False, status=True, generation=True
        ),
    ),
    *_rows(
        "networking.k8s.io",
        "v1",
        _row("ingressclasses", "IngressClass", namespaced=False, generation=True),
        _row("ingresses", "Ingress", "ing", status=True, generation=True),
        _row("ipaddresses", "IPAddress", "ip", namespaced=False),
        _row("networkpolicies", "NetworkPolicy", "netpol", generation=True),
        _row("servicecidrs", "ServiceCIDR", namespaced=False, status=True),
    ),
    *_rows("node.k8s.io", "v1", _row("runtimeclasses", "RuntimeClass", namespaced=False)),
    *_rows("policy", "v1", _row("poddisruptionbudgets", "PodDisruptionBudget", "pdb", status=True, generation=True)),
    *_rows(
        "rbac.authorization.k8s.io",
        "v1",
        _row("clusterrolebindings", "ClusterRoleBinding", namespaced=False),
        _row("clusterroles", "ClusterRole", namespaced=False),
        _row("rolebindings", "RoleBinding"),
        _row("roles", "Role"),
    ),
    *_rows(
        "resource.k8s.io",
        "v1",
        _row("deviceclasses", "DeviceClass", namespaced=False, generation=True),
        _row("resourceclaims", "ResourceClaim", status=True),
        _row("resourceclaimtemplates", "ResourceClaimTemplate"),
        _row("resourceslices", "ResourceSlice", namespaced=False, generation=True),
    ),
    *_rows(
        "scheduling.k8s.io", "v1", _row("priorityclasses", "PriorityClass", "pc", namespaced=False, generation=True)
    ),
    *_rows(
        "storage.k8s.io",
        "v1",
        _row("csidrivers", "CSIDriver", namespaced=False, generation=True),
        _row("csinodes", "CSINode", namespaced=False),
        _row("csistoragecapacities", "CSIStorageCapacity"),
        _row("storageclasses", "StorageClass", "sc", namespaced=False),
        _row("volumeattachments", "VolumeAttachment", namespaced=False, status=True),
        _row("volumeattributesclasses", "VolumeAttributesClass", "vac", namespaced=False),
    ),
)

METRICS: tuple[Resource, ...] = tuple(
    replace(row, singular="")
    for row in _rows(
        "metrics.k8s.io",
        "v1beta1",
        _row("nodes", "NodeMetrics", namespaced=False, verbs=("get", "list")),
        _row("pods", "PodMetrics", verbs=("get", "list")),
    )
)
"""What metrics-server adds: computed on reading, never stored. It names no singular."""


@dataclass(slots=True, frozen=True)
class AggregatedVersion:
    """A group and version that an extension API server serves, as its discovery documents described it last."""

    rows: tuple[Resource, ...] = ()
    resource_list: bytes = b""
    open_api: bytes = b""
    """Its OpenAPI document (version 3); empty where the server has none."""


# The order in which a v1.34 server lists its groups, which decides what a short name such as `events` means.
GROUP_ORDER: tuple[str, ...] = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "resource.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "metrics.k8s.io",
)


_BUILT_IN_GROUPS = frozenset(row.group for row in BUILT_IN)


@dataclass(slots=True)
class ResourceTable:
    """All rows that are served now. `serial` moves with every change, so that caches can tell."""

    serial: int = 0
    unavailable: set[tuple[str, str]] = field(default_factory=set)
    """Groups and versions of unavailable aggregated servers."""
    aggregated: dict[tuple[str, str], AggregatedVersion] = field(default_factory=dict)
    """Groups and versions whose requests go to an extension API server. Their objects are not in the store."""
    _by_path: dict[tuple[str, str, str], Resource] = field(default_factory=dict)
    _by_kind: dict[tuple[str, str, str], Resource] = field(default_factory=dict)
    _preferred: dict[str, Resource | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in (*BUILT_IN, *METRICS):
            self.add(row)

    def add(self, row: Resource) -> None:
        self._by_path[row.group, row.version, row.plural] = row
        self._by_kind[row.group, row.version, row.kind] = row
        self._changed()

    def has_built_in(self, group: str) -> bool:
        """Whether the server itself serves a group, and not only definitions or another server."""
        return group in _BUILT_IN_GROUPS

    def remove(self, row: Resource) -> None:
        self._by_path.pop((row.group, row.version, row.plural), None)
        self._by_kind.pop((row.group, row.version, row.kind), None)
        self._changed()

    def _changed(self) -> None:
        self.serial += 1
        self._preferred.clear()

    def set_available(self, group: str, version: str, available: bool) -> None:
        """Whether the server of a group and version is available."""
        if available == ((group, version) in self.unavailable):
            (self.unavailable.discard if available else self.unavailable.add)((group, version))
            self.serial += 1

    def set_aggregated(self, group: str, version: str, served: AggregatedVersion | None) -> None:
        """What an extension API server serves of a group and version; None where it serves it no more."""
        if self.aggregated.get((group, version)) != served:
            if served is None:
                del self.aggregated[group, version]
            else:
                self.aggregated[group, version] = served
            self.serial += 1

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_path.get((group, version, plural))

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        group, _, version = api_version.rpartition("/")
        return self._by_kind.get((group, version, kind))

    def preferred(self, group_resource: str) -> Resource | None:
        """The first served version of `deployments.apps` or `pods`."""
        if group_resource not in self._preferred:
            rows = self._by_path.values()
            self._preferred[group_resource] = next((row for row in rows if row.group_resource == group_resource), None)
        return self._preferred[group_resource]

    def groups(self) -> dict[str, list[str]]:
        """Served groups in the server's order, each with its versions, preferred first."""
        found: dict[str, list[str]] = {}
        for row in self._by_path.values():
            versions = found.setdefault(row.group, [])
            if row.version not in versions:
                versions.append(row.version)
        for group, version in self.aggregated:
            versions = found.setdefault(group, [])
            if version not in versions:
                versions.append(version)
        known = [group for group in GROUP_ORDER if group in found]
        return {group: found[group] for group in (*known, *sorted(set(found) - set(known)))}

    def rows(self, group: str, version: str) -> list[Resource]:
        served = self.aggregated.get((group, version))
        if served is not None:
            return sorted(served.rows, key=lambda row: row.plural)
        return sorted(
            (row for row in self._by_path.values() if row.group == group and row.version == version),
            key=lambda row: row.plural,
        )

    def __iter__(self) -> Iterator[Resource]:
        return iter(tuple(self._by_path.values()))
