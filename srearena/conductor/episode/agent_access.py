"""The agent's identity in the cluster: a service account with an on-call engineer's rights, never the harness's.

The roles are ordinary objects, created through the API, as in any company's cluster. The agent may read everything
except Secrets outside the application's namespaces, change everything in these namespaces, and change what on-call
engineers change beyond them: nodes, DNS, webhooks, volumes. It cannot extend its own rights.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from srearena.cluster import Cluster
from srearena.conductor.errors import EnvironmentFailure
from srearena.service.errors import NotFound
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.waiting import wait_until

NAMESPACE = "platform"
ACCOUNT = "oncall"
_TOKEN_SECONDS = 24 * 3600
"""Chosen: longer than any episode."""
_READ = ["get", "list", "watch"]
_WRITE = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
_CHANGE = ["get", "list", "watch", "update", "patch"]

_READABLE_CORE = (
    "bindings componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims "
    "persistentvolumes pods pods/log pods/status podtemplates replicationcontrollers resourcequotas serviceaccounts "
    "services services/proxy pods/proxy"
).split()
_WRITABLE_CORE = (
    "configmaps endpoints events limitranges persistentvolumeclaims pods pods/exec pods/log pods/eviction "
    "pods/portforward pods/ephemeralcontainers pods/proxy services services/proxy resourcequotas secrets "
    "serviceaccounts replicationcontrollers"
).split()
_GROUPS = (
    "apps batch autoscaling networking.k8s.io policy discovery.k8s.io storage.k8s.io apiextensions.k8s.io "
    "scheduling.k8s.io admissionregistration.k8s.io rbac.authorization.k8s.io metrics.k8s.io coordination.k8s.io "
    "events.k8s.io pingcap.com"
).split()

_ROLES: dict[str, list[Obj]] = {
    "oncall-view": [
        {"apiGroups": [""], "resources": _READABLE_CORE, "verbs": _READ},
        {"apiGroups": _GROUPS, "resources": ["*"], "verbs": _READ},
        {"nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version*"], "verbs": ["get"]},
    ],
    "oncall-cluster": [
        {"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": _CHANGE},
        {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": _WRITE},
        {
            "apiGroups": ["admissionregistration.k8s.io", "scheduling.k8s.io", "storage.k8s.io"],
            "resources": ["*"],
            "verbs": _WRITE,
        },
    ],
    "oncall-repair": [
        {"apiGroups": [""], "resources": _WRITABLE_CORE, "verbs": _WRITE},
        {
            "apiGroups": ["apps", "batch", "autoscaling", "networking.k8s.io", "policy", "discovery.k8s.io"],
            "resources": ["*"],
            "verbs": _WRITE,
        },
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": _WRITE},
        {"apiGroups": ["pingcap.com"], "resources": ["*"], "verbs": _WRITE},
    ],
    "oncall-system": [
        {"apiGroups": [""], "resources": ["configmaps", "pods", "pods/log", "services"], "verbs": _WRITE},
        {"apiGroups": ["apps"], "resources": ["deployments", "deployments/scale", "daemonsets"], "verbs": _WRITE},
        {"apiGroups": ["batch"], "resources": ["cronjobs", "jobs"], "verbs": _WRITE},
    ],
}
_CLUSTER_WIDE = ("oncall-view", "oncall-cluster")


def grant(cluster: Cluster, api: Kubernetes, namespaces: Sequence[str], folder: Path) -> Path:
    """Create the identity, write its kubeconfig into `folder`, and return the path."""
    for obj in _objects(namespaces):
        api.apply(obj)
    path = _write_kubeconfig(cluster, _token(cluster, api), namespaces[0], folder)
    cluster.rewrite_kubeconfig(path)
    return path


def revoke(api: Kubernetes, namespaces: Sequence[str]) -> None:
    """Delete the identity, on a cluster that outlives the episode."""
    for obj in reversed(_objects(namespaces)):
        if obj["kind"] == "Namespace" and obj["metadata"]["name"] != NAMESPACE:
            continue
        api.delete(api.resource_of(obj).name, obj["metadata"]["name"], obj["metadata"].get("namespace"))


def _objects(namespaces: Sequence[str]) -> list[Obj]:
    rbac = "rbac.authorization.k8s.io/v1"
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    objects: list[Obj] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
    ]
    for name, rules in _ROLES.items():
        objects.append({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
    bindings: list[tuple[str, str, str]] = [("ClusterRoleBinding", name, "") for name in _CLUSTER_WIDE]
    bindings += [("RoleBinding", "oncall-repair", namespace) for namespace in namespaces]
    bindings += [("RoleBinding", "oncall-repair", "default"), ("RoleBinding", "oncall-system", "kube-system")]
    for kind, name, namespace in bindings:
        location: Obj = {"namespace": namespace} if namespace else {}
        objects.append(
            {
                "apiVersion": rbac,
                "kind": kind,
                "metadata": {"name": name, **location},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [subject],
            }
        )
    return objects


def _token(cluster: Cluster, api: Kubernetes) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token"
    request = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }

    def request_token() -> str | None:
        try:
            return str(api.raw(path, method="POST", body=request)["status"]["token"])
        except NotFound:
            return None

    return wait_until(request_token, cluster.wait, 30, what="the service account of the engineer on call")


def _write_kubeconfig(cluster: Cluster, token: str, namespace: str, folder: Path) -> Path:
    admin = yaml.safe_load(cluster.kubeconfig.read_text())
    current = admin.get("current-context")
    contexts = {entry["name"]: entry["context"] for entry in admin.get("contexts") or ()}
    if current not in contexts:
        raise EnvironmentFailure(f"{cluster.kubeconfig} has no current context")
    admin_cluster = {entry["name"]: entry["cluster"] for entry in admin["clusters"]}[contexts[current]["cluster"]]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "cluster", "cluster": admin_cluster}],
        "users": [{"name": ACCOUNT, "user": {"token": token}}],
        "contexts": [{"name": ACCOUNT, "context": {"cluster": "cluster", "user": ACCOUNT, "namespace": namespace}}],
        "current-context": ACCOUNT,
    }
    path = folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config))
    return path
