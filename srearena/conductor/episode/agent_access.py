"""The agent's identity in the cluster: a service account with an on-call engineer's rights, never the harness's.

The roles are ordinary objects, created through the API, as in any company's cluster. The agent may read everything
except Secrets outside the application's namespaces, change everything in these namespaces, and change what on-call
engineers change beyond them: nodes, the configuration of DNS and kube-proxy, priorities, volumes, and network policies
of other teams.

It cannot widen its rights (`srearena.conductor.validity.rights` walks every account that it can reach). So outside the
application's namespaces it makes no pods and changes nothing that does: in kube-system any pod may use the account of
any controller. A workload there is restarted by deleting its pods. Admission configuration it may only delete: who
changes a webhook sees the pods and Secrets of every namespace.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from srearena.cluster import Cluster
from srearena.conductor.errors import EnvironmentFailure
from srearena.conductor.grading.baseline import Baseline
from srearena.conductor.problems.base import Problem
from srearena.service.errors import NotFound
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.service.waiting import wait_until

NAMESPACE = "platform"
ACCOUNT = "oncall"
_RBAC_GROUP = "rbac.authorization.k8s.io"
_RBAC = f"{_RBAC_GROUP}/v1"
_TOKEN_SECONDS = 24 * 3600
"""Chosen: longer than any episode."""
_READ = ["get", "list", "watch"]
_WRITE = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"]
_CHANGE = ["get", "list", "watch", "update", "patch"]

_READABLE_CORE = (
    "bindings componentstatuses configmaps endpoints events limitranges namespaces nodes nodes/metrics nodes/spec "
    "nodes/stats persistentvolumeclaims persistentvolumes pods pods/log pods/status podtemplates "
    "replicationcontrollers resourcequotas serviceaccounts services services/proxy pods/proxy"
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

_SYSTEM_SETTINGS = ["coredns", "kube-proxy"]
_ROLES: dict[str, list[Obj]] = {
    "oncall-view": [
        {"apiGroups": [""], "resources": _READABLE_CORE, "verbs": _READ},
        {"apiGroups": _GROUPS, "resources": ["*"], "verbs": _READ},
        {"nonResourceURLs": ["/healthz*", "/livez*", "/readyz*", "/version*"], "verbs": ["get"]},
    ],
    "oncall-cluster": [
        {"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": _CHANGE},
        {"apiGroups": [""], "resources": ["persistentvolumes"], "verbs": _WRITE},
        {"apiGroups": ["scheduling.k8s.io"], "resources": ["priorityclasses"], "verbs": _WRITE},
        {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses"], "verbs": _WRITE},
        {"apiGroups": ["admissionregistration.k8s.io"], "resources": ["*"], "verbs": ["delete"]},
    ],
    "oncall-repair": [
        {"apiGroups": [""], "resources": _WRITABLE_CORE, "verbs": _WRITE},
        {
            "apiGroups": [
                "apps",
                "batch",
                "autoscaling",
                "networking.k8s.io",
                "policy",
                "discovery.k8s.io",
                "coordination.k8s.io",
                "events.k8s.io",
            ],
            "resources": ["*"],
            "verbs": _WRITE,
        },
        {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"], "verbs": _WRITE},
        {"apiGroups": ["pingcap.com"], "resources": ["*"], "verbs": _WRITE},
    ],
    "oncall-system": [
        {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": _SYSTEM_SETTINGS, "verbs": _CHANGE},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},
        {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]},
        {"apiGroups": ["apps"], "resources": ["deployments/scale"], "verbs": ["update", "patch"]},
        {"apiGroups": ["batch"], "resources": ["cronjobs", "jobs"], "verbs": ["delete"]},
    ],
    "oncall-network": [{"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": _WRITE}],
}
_SESSIONS = frozenset(
    "* */* pods/* pods/exec pods/attach pods/portforward pods/ephemeralcontainers pods/proxy services/proxy".split()
)


@dataclass(frozen=True, slots=True)
class OnCallAccess:
    """Where an identity has which rights."""

    namespaces: tuple[str, ...]
    """The application's."""
    others: tuple[str, ...] = ()
    """Namespaces of other teams."""
    read_only: bool = False

    def bindings(self) -> Iterator[tuple[str, str]]:
        """Roles and namespaces; "" for the whole cluster."""
        yield "oncall-view", ""
        if self.read_only:
            return  # no Secrets either: one of them may be the token of another account
        yield "oncall-cluster", ""
        yield from (("oncall-repair", namespace) for namespace in self.namespaces)
        yield "oncall-system", "kube-system"
        yield from (("oncall-network", namespace) for namespace in self.others)


def access_to(problem: Problem, *, read_only: bool = False) -> OnCallAccess:
    """The access of an engineer on call for the application of a problem."""
    return OnCallAccess(problem.app.namespaces, problem.extra_namespaces, read_only)


def grant(cluster: Cluster, api: Kubernetes, access: OnCallAccess, folder: Path) -> Path:
    """Create the identity, write its kubeconfig into `folder`, and return the path."""
    for obj in _objects(access):
        api.apply(obj)
    path = _write_kubeconfig(cluster, _token(cluster, api), access.namespaces[0], folder)
    cluster.rewrite_kubeconfig(path)
    return path


def freeze(cluster: Cluster, api: Kubernetes, access: OnCallAccess, found: Baseline | None) -> None:
    """End the agent's access: its rights, its account, and its open connections.

    Bindings come first. An API server may accept the token of a deleted account from its cache for some seconds
    (`--token-success-cache-ttl`, 10 s), but rights end at once. The roles end too, so that another account to which the
    agent has bound them has nothing. What was bound since it came in and gives access to running containers ends as
    well: that is the one way to act without changing any object. `found` is what existed when it came in; contents are
    compared, since a client may remove the traces of a write (`managedFields`).
    """
    for kind in ("ClusterRoleBinding", "RoleBinding", "ClusterRole", "ServiceAccount"):
        for obj in _objects(access):
            if obj["kind"] == kind:
                api.delete(api.resource_of(obj).name, obj["metadata"]["name"], obj["metadata"].get("namespace"))
    for namespace in access.namespaces:
        _unbind_sessions(api, namespace, found)
    cluster.close_agent_connections()


def _unbind_sessions(api: Kubernetes, namespace: str, found: Baseline | None) -> None:
    """Delete the bindings that allow `exec` and the like and were not there before, or with another role."""
    for binding in api.list("rolebindings", namespace):
        reference = binding["roleRef"]
        resource, location = ("roles", namespace) if reference["kind"] == "Role" else ("clusterroles", "")
        role = api.find(resource, reference["name"], location or None)
        if role is None or not any(map(_opens_sessions, role.get("rules") or ())):
            continue
        known = (_known(found, "rolebindings", binding, "subjects"), _known(found, resource, role, "rules"))
        if not all(known):
            api.delete("rolebindings", binding["metadata"]["name"], namespace)


def _known(found: Baseline | None, resource: str, obj: Obj, field: str) -> bool:
    """Whether an object was there before, with the same content."""
    metadata = obj["metadata"]
    key = f"{resource}.{_RBAC_GROUP}", metadata["name"], metadata.get("namespace", "")
    before = found.get(*key) if found is not None else None
    return before is not None and before["metadata"]["uid"] == metadata["uid"] and before.get(field) == obj.get(field)


def _opens_sessions(rule: Obj) -> bool:
    return "" in (rule.get("apiGroups") or ()) and bool(_SESSIONS.intersection(rule.get("resources") or ()))


def own_objects(access: OnCallAccess) -> Iterator[tuple[str, str, str]]:
    """Resource, namespace and name of the roles and bindings of the identity, which are no part of the system."""
    for obj in _objects(access):
        if obj["apiVersion"] == _RBAC:
            resource = f"{obj['kind'].lower()}s.{_RBAC_GROUP}"
            yield resource, obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def revoke(api: Kubernetes, access: OnCallAccess) -> None:
    """Delete the identity, on a cluster that outlives the episode."""
    for obj in reversed(_objects(access)):
        if obj["kind"] == "Namespace" and obj["metadata"]["name"] != NAMESPACE:
            continue
        api.delete(api.resource_of(obj).name, obj["metadata"]["name"], obj["metadata"].get("namespace"))


def _objects(access: OnCallAccess) -> list[Obj]:
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}
    objects: list[Obj] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT, "namespace": NAMESPACE}},
    ]
    for name in dict.fromkeys(name for name, _ in access.bindings()):
        rules = _ROLES[name]
        objects.append({"apiVersion": _RBAC, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules})
    for name, namespace in access.bindings():
        kind = "RoleBinding" if namespace else "ClusterRoleBinding"
        location: Obj = {"namespace": namespace} if namespace else {}
        objects.append(
            {
                "apiVersion": _RBAC,
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
