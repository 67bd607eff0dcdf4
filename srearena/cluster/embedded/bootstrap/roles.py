"""The RBAC objects every cluster is born with: the user-facing roles and those of the system's own components.

Rules are written short: `rule("", "pods services", "get list watch")`.
"""

from __future__ import annotations

from srearena.cluster.embedded.objects import Obj

_READ = "get list watch"
_WRITE = "create delete deletecollection patch update"
_EVERYTHING = "*"
_GROUP = "rbac.authorization.k8s.io"
_DEFAULT_LABELS = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_DEFAULT_ANNOTATIONS = {"rbac.authorization.kubernetes.io/autoupdate": "true"}


def rule(groups: str, resources: str, verbs: str, *, names: str = "") -> Obj:
    found: Obj = {
        "apiGroups": [group if group != "core" else "" for group in groups.split()] or [""],
        "resources": resources.split(),
        "verbs": verbs.split(),
    }
    if names:
        found["resourceNames"] = names.split()
    return found


def paths(urls: str, verbs: str = "get") -> Obj:
    return {"nonResourceURLs": urls.split(), "verbs": verbs.split()}


def _metadata(name: str, labels: dict[str, str] | None = None, namespace: str = "") -> Obj:
    found: Obj = {
        "name": name,
        "labels": {**_DEFAULT_LABELS, **(labels or {})},
        "annotations": dict(_DEFAULT_ANNOTATIONS),
    }
    if namespace:
        found["namespace"] = namespace
    return found


def _cluster_role(name: str, rules: list[Obj], labels: dict[str, str] | None = None) -> Obj:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": _metadata(name, labels),
        "rules": rules,
    }


def _aggregate(name: str, sources: list[str], labels: dict[str, str] | None = None) -> Obj:
    selectors = [{"matchLabels": {f"{_GROUP}/aggregate-to-{source}": "true"}} for source in sources]
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRole",
        "metadata": _metadata(name, labels),
        "aggregationRule": {"clusterRoleSelectors": selectors},
        "rules": [],
    }


def _binding(name: str, role: str, *subjects: Obj) -> Obj:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _metadata(name),
        "roleRef": {"apiGroup": _GROUP, "kind": "ClusterRole", "name": role},
        "subjects": list(subjects),
    }


def _group(name: str) -> Obj:
    return {"apiGroup": _GROUP, "kind": "Group", "name": name}


def _user(name: str) -> Obj:
    return {"apiGroup": _GROUP, "kind": "User", "name": name}


def _account(name: str, namespace: str = "kube-system") -> Obj:
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


_WORKLOADS = "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status"
_WORKLOADS += " replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"

_VIEW = [
    rule(
        "core",
        "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
        "replicationcontrollers/scale serviceaccounts services services/status",
        _READ,
    ),
    rule(
        "core",
        "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
        "resourcequotas resourcequotas/status",
        _READ,
    ),
    rule("core", "namespaces", _READ),
    rule("discovery.k8s.io", "endpointslices", _READ),
    rule("apps", _WORKLOADS, _READ),
    rule("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", _READ),
    rule("batch", "cronjobs cronjobs/status jobs jobs/status", _READ),
    rule("policy", "poddisruptionbudgets poddisruptionbudgets/status", _READ),
    rule("networking.k8s.io", "ingresses ingresses/status networkpolicies", _READ),
]

_EDIT = [
    rule("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", _READ),
    rule("core", "serviceaccounts", "impersonate"),
    rule("core", "pods pods/attach pods/exec pods/portforward pods/proxy", _WRITE),
    rule("core", "pods/eviction", "create"),
    rule(
        "core",
        "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
        "serviceaccounts services services/proxy",
        _WRITE,
    ),
    rule("core", "serviceaccounts/token", "create"),
    rule(
        "apps",
        "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
        "statefulsets/scale",
        _WRITE,
    ),
    rule("autoscaling", "horizontalpodautoscalers", _WRITE),
    rule("batch", "cronjobs jobs", _WRITE),
    rule("policy", "poddisruptionbudgets", _WRITE),
    rule("networking.k8s.io", "ingresses networkpolicies", _WRITE),
    rule("coordination.k8s.io", "leases", f"{_READ} {_WRITE}"),
]

_ADMIN = [
    rule("authorization.k8s.io", "localsubjectaccessreviews", "create"),
    rule(_GROUP, "rolebindings roles", f"{_READ} {_WRITE}"),
]

_TOPOLOGY = "nodes namespaces pods replicationcontrollers services persistentvolumeclaims persistentvolumes"

_NODE_RULES = [
    rule("authentication.k8s.io", "tokenreviews", "create"),
    rule("authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews", "create"),
    rule("core", "services", _READ),
    rule("core", "nodes", f"create {_READ}"),
    rule("core", "nodes/status nodes", "patch update"),
    rule("core", "events", "create patch update"),
    rule("core", "pods", f"create delete {_READ}"),
    rule("core", "pods/status", "patch update"),
    rule("core", "pods/eviction", "create"),
    rule("core", "configmaps secrets", _READ),
    rule("core", "persistentvolumeclaims persistentvolumes", "get"),
    rule("core", "serviceaccounts/token", "create"),
    rule("coordination.k8s.io", "leases", f"create delete {_READ} patch update"),
    rule("storage.k8s.io", "csidrivers volumeattachments", _READ),
    rule("storage.k8s.io", "csinodes", f"create delete {_READ} patch update"),
    rule("node.k8s.io", "runtimeclasses", _READ),
]

_SCHEDULER_RULES = [
    rule("events.k8s.io core", "events", "create patch update"),
    rule("coordination.k8s.io", "leases", "create get update"),
    rule("core", _TOPOLOGY, _READ),
    rule("core", "pods", f"delete {_READ}"),
    rule("core", "bindings pods/binding", "create"),
    rule("core", "pods/status", "patch update"),
    rule("apps", "replicasets statefulsets", _READ),
    rule("policy", "poddisruptionbudgets", _READ),
    rule("core", "persistentvolumeclaims persistentvolumes", f"{_READ} patch update"),
    rule("storage.k8s.io", "csidrivers csinodes csistoragecapacities storageclasses volumeattachments", _READ),
]

_PROXIER_RULES = [
    rule("core", "endpoints services", "list watch"),
    rule("core", "nodes", _READ),
    rule("events.k8s.io core", "events", "create patch update"),
    rule("discovery.k8s.io", "endpointslices", "list watch"),
]

CONTROLLERS: dict[str, list[Obj]] = {
    # The controllers of kube-controller-manager run as accounts of their own; what they need is broad and the same
    # in kind, so each may do everything to what it manages and read the rest.
    name: [rule("*", "*", _EVERYTHING)]
    for name in (
        "attachdetach-controller",
        "clusterrole-aggregation-controller",
        "cronjob-controller",
        "daemon-set-controller",
        "deployment-controller",
        "disruption-controller",
        "endpoint-controller",
        "endpointslice-controller",
        "endpointslicemirroring-controller",
        "ephemeral-volume-controller",
        "expand-controller",
        "generic-garbage-collector",
        "horizontal-pod-autoscaler",
        "job-controller",
        "namespace-controller",
        "node-controller",
        "persistent-volume-binder",
        "pod-garbage-collector",
        "pv-protection-controller",
        "pvc-protection-controller",
        "replicaset-controller",
        "replication-controller",
        "resourcequota-controller",
        "root-ca-cert-publisher",
        "service-account-controller",
        "statefulset-controller",
        "ttl-after-finished-controller",
    )
}

_PUBLIC_PATHS = "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"


def bootstrap_roles() -> list[Obj]:
    """Every role and binding, in an order in which they can be created."""
    found = [
        _cluster_role("cluster-admin", [rule("*", "*", _EVERYTHING), paths("*", _EVERYTHING)]),
        _aggregate("admin", ["admin"]),
        _aggregate("edit", ["edit"], {f"{_GROUP}/aggregate-to-admin": "true"}),
        _aggregate("view", ["view"], {f"{_GROUP}/aggregate-to-edit": "true"}),
        _cluster_role("system:aggregate-to-admin", _ADMIN, {f"{_GROUP}/aggregate-to-admin": "true"}),
        _cluster_role("system:aggregate-to-edit", _EDIT, {f"{_GROUP}/aggregate-to-edit": "true"}),
        _cluster_role("system:aggregate-to-view", _VIEW, {f"{_GROUP}/aggregate-to-view": "true"}),
        _cluster_role("system:discovery", [paths(_PUBLIC_PATHS)]),
        _cluster_role("system:monitoring", [paths("/healthz /healthz/* /livez /livez/* /metrics /readyz /readyz/*")]),
        _cluster_role("system:public-info-viewer", [paths("/healthz /livez /readyz /version /version/")]),
        _cluster_role(
            "system:basic-user",
            [
                rule("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
                rule("authentication.k8s.io", "selfsubjectreviews", "create"),
            ],
        ),
        _cluster_role(
            "system:auth-delegator",
            [
                rule("authentication.k8s.io", "tokenreviews", "create"),
                rule("authorization.k8s.io", "subjectaccessreviews", "create"),
            ],
        ),
        _cluster_role("system:node", _NODE_RULES),
        _cluster_role("system:node-proxier", _PROXIER_RULES),
        _cluster_role("system:kube-scheduler", _SCHEDULER_RULES),
        _cluster_role("system:kube-controller-manager", [rule("*", "*", _EVERYTHING)]),
        _cluster_role("system:persistent-volume-provisioner", [rule("core", "persistentvolumes", _EVERYTHING)]),
        _cluster_role(
            "system:service-account-issuer-discovery", [paths("/.well-known/openid-configuration /openid/v1/jwks")]
        ),
        _binding("cluster-admin", "cluster-admin", _group("system:masters")),
        _binding("kubeadm:cluster-admins", "cluster-admin", _group("kubeadm:cluster-admins")),
        _binding("system:basic-user", "system:basic-user", _group("system:authenticated")),
        _binding("system:discovery", "system:discovery", _group("system:authenticated")),
        _binding("system:monitoring", "system:monitoring", _group("system:monitoring")),
        _binding(
            "system:public-info-viewer",
            "system:public-info-viewer",
            _group("system:authenticated"),
            _group("system:unauthenticated"),
        ),
        _binding("system:node", "system:node", _group("system:nodes")),
        _binding("system:kube-scheduler", "system:kube-scheduler", _user("system:kube-scheduler")),
        _binding(
            "system:kube-controller-manager", "system:kube-controller-manager", _user("system:kube-controller-manager")
        ),
        _binding(
            "system:service-account-issuer-discovery",
            "system:service-account-issuer-discovery",
            _group("system:serviceaccounts"),
        ),
    ]
    for name, rules in CONTROLLERS.items():
        found.append(_cluster_role(f"system:controller:{name}", rules))
        found.append(_binding(f"system:controller:{name}", f"system:controller:{name}", _account(name)))
    return found
