"""Canonical names of Kubernetes kinds: `deploy`, `deployments.apps` and `Deployment` are the same kind."""

from __future__ import annotations

from functools import lru_cache

# Canonical name of a kind to its other spellings: plurals and kubectl's short names.
_SPELLINGS: dict[str, tuple[str, ...]] = {
    "Pod": ("pods", "po"),
    "Service": ("services", "svc"),
    "Deployment": ("deployments", "deploy", "dep"),
    "StatefulSet": ("statefulsets", "sts"),
    "DaemonSet": ("daemonsets", "ds"),
    "ReplicaSet": ("replicasets", "rs"),
    "ReplicationController": ("replicationcontrollers", "rc"),
    "Job": ("jobs",),
    "CronJob": ("cronjobs", "cj"),
    "ConfigMap": ("configmaps", "cm", "config-map"),
    "Secret": ("secrets",),
    "Namespace": ("namespaces", "ns"),
    "Node": ("nodes", "no"),
    "Endpoints": ("endpoint", "ep"),
    "EndpointSlice": ("endpointslices",),
    "Ingress": ("ingresses", "ing"),
    "NetworkPolicy": ("networkpolicies", "netpol"),
    "HorizontalPodAutoscaler": ("horizontalpodautoscalers", "hpa"),
    "PodDisruptionBudget": ("poddisruptionbudgets", "pdb"),
    "PersistentVolumeClaim": ("persistentvolumeclaims", "pvc"),
    "PersistentVolume": ("persistentvolumes", "pv"),
    "StorageClass": ("storageclasses", "sc"),
    "ServiceAccount": ("serviceaccounts", "sa"),
    "ResourceQuota": ("resourcequotas", "quota"),
    "LimitRange": ("limitranges", "limits"),
    "Role": ("roles",),
    "RoleBinding": ("rolebindings",),
    "ClusterRole": ("clusterroles",),
    "ClusterRoleBinding": ("clusterrolebindings",),
    "PriorityClass": ("priorityclasses", "pc"),
    "CustomResourceDefinition": ("customresourcedefinitions", "crd", "crds"),
    "ValidatingWebhookConfiguration": ("validatingwebhookconfigurations",),
    "MutatingWebhookConfiguration": ("mutatingwebhookconfigurations",),
    "ValidatingAdmissionPolicy": ("validatingadmissionpolicies",),
    "ValidatingAdmissionPolicyBinding": ("validatingadmissionpolicybindings",),
    "IngressClass": ("ingressclasses",),
    "Gateway": ("gateways",),
    "AuthorizationPolicy": ("authorizationpolicies",),
    "PeerAuthentication": ("peerauthentications",),
    "Schedule": ("schedules",),
    "NetworkChaos": (),
    "StressChaos": (),
    "PodChaos": (),
    "HTTPChaos": (),
    "JVMChaos": (),
    "IOChaos": (),
    "DNSChaos": (),
    "TimeChaos": (),
    "KernelChaos": (),
    "ServiceOperation": (),
    "App": ("application",),
    "Container": ("containers",),
    "TidbCluster": ("tidbclusters", "tc"),
    "KafkaTopic": ("topic", "topics"),
    "FeatureFlag": ("flag", "flags", "featureflags", "feature-flag"),
}

_CANONICAL: dict[str, str] = {
    spelling.lower(): kind for kind, others in _SPELLINGS.items() for spelling in (kind, *others)
}

CLUSTER_SCOPED = frozenset(
    {
        "Namespace",
        "Node",
        "PersistentVolume",
        "StorageClass",
        "ClusterRole",
        "ClusterRoleBinding",
        "PriorityClass",
        "CustomResourceDefinition",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "IngressClass",
    }
)


@lru_cache(maxsize=4096)
def canonical_kind(text: str | None) -> str | None:
    """The canonical spelling of a kind; an unknown kind loses only its API group (`schedules.chaos-mesh.org`)."""
    if not text:
        return None
    stripped = text.strip()
    head = stripped.split(".", 1)[0]
    return _CANONICAL.get(stripped.lower()) or _CANONICAL.get(head.lower()) or head or None


def is_known_kind(text: str) -> bool:
    """Whether a text is a spelling of a known kind."""
    return text.strip().split(".", 1)[0].lower() in _CANONICAL
