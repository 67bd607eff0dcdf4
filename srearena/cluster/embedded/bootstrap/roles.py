"""The initial RBAC objects: those the API server reconciles, and those kubeadm adds for joining nodes.

The rules are in tables beside this module; this module builds roles and bindings from them.
"""

from __future__ import annotations

from collections.abc import Iterator

from srearena.cluster.embedded.bootstrap.controller_roles import CONTROLLER_RULES
from srearena.cluster.embedded.bootstrap.rules import rule
from srearena.cluster.embedded.bootstrap.system_roles import NAMESPACED_RULES, SYSTEM_RULES
from srearena.cluster.embedded.objects import Obj

_GROUP = "rbac.authorization.k8s.io"
_DEFAULTS: Obj = {
    "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
    "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
}
_JOINING = "Group/system:bootstrappers:kubeadm:default-node-token"

# Aggregated ClusterRoles, and the roles they are aggregated into.
_AGGREGATES = {"admin": "", "edit": "admin", "view": "edit"}

# Subjects of the default ClusterRoles. The node authorizer grants nodes theirs: their binding has no subjects.
_HOLDERS: dict[str, tuple[str, ...]] = {
    "cluster-admin": ("Group/system:masters",),
    "system:monitoring": ("Group/system:monitoring",),
    "system:discovery": ("Group/system:authenticated",),
    "system:basic-user": ("Group/system:authenticated",),
    "system:public-info-viewer": ("Group/system:authenticated", "Group/system:unauthenticated"),
    "system:node-proxier": ("User/system:kube-proxy",),
    "system:kube-controller-manager": ("User/system:kube-controller-manager",),
    "system:kube-dns": ("ServiceAccount/kube-dns",),
    "system:kube-scheduler": ("User/system:kube-scheduler",),
    "system:volume-scheduler": ("User/system:kube-scheduler",),
    "system:node": (),
    "system:service-account-issuer-discovery": ("Group/system:serviceaccounts",),
}

# Bindings of Roles: namespace, binding, role, subjects.
_NAMESPACED_HOLDERS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("kube-public", "system:controller:bootstrap-signer", "", ("ServiceAccount/bootstrap-signer",)),
    (
        "kube-system",
        "system::extension-apiserver-authentication-reader",
        "extension-apiserver-authentication-reader",
        ("User/system:kube-controller-manager", "User/system:kube-scheduler"),
    ),
    (
        "kube-system",
        "system::leader-locking-kube-controller-manager",
        "",
        (
            "User/system:kube-controller-manager",
            "ServiceAccount/kube-controller-manager",
            "ServiceAccount/leader-election-controller",
        ),
    ),
    (
        "kube-system",
        "system::leader-locking-kube-scheduler",
        "",
        ("User/system:kube-scheduler", "ServiceAccount/kube-scheduler"),
    ),
    ("kube-system", "system:controller:bootstrap-signer", "", ("ServiceAccount/bootstrap-signer",)),
    ("kube-system", "system:controller:cloud-provider", "", ("ServiceAccount/cloud-provider",)),
    ("kube-system", "system:controller:token-cleaner", "", ("ServiceAccount/token-cleaner",)),
)

# What kubeadm adds: cluster roles bound, then roles with their one rule and who may use them.
_KUBEADM_HOLDERS: dict[str, tuple[str, str]] = {
    "kubeadm:cluster-admins": ("cluster-admin", "Group/kubeadm:cluster-admins"),
    "kubeadm:get-nodes": ("kubeadm:get-nodes", _JOINING),
    "kubeadm:kubelet-bootstrap": ("system:node-bootstrapper", _JOINING),
    "kubeadm:node-autoapprove-bootstrap": (
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        _JOINING,
    ),
    "kubeadm:node-autoapprove-certificate-rotation": (
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        "Group/system:nodes",
    ),
}
_KUBEADM_ROLES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("kube-public", "kubeadm:bootstrap-signer-clusterinfo", "cluster-info", ("User/system:anonymous",)),
    ("kube-system", "kube-proxy", "kube-proxy", (_JOINING,)),
    ("kube-system", "kubeadm:kubelet-config", "kubelet-config", ("Group/system:nodes", _JOINING)),
    ("kube-system", "kubeadm:nodes-kubeadm-config", "kubeadm-config", (_JOINING, "Group/system:nodes")),
)


def _object(kind: str, name: str, namespace: str = "", /, *, default: bool = True, **content: object) -> Obj:
    metadata: Obj = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if default:
        metadata.update({key: dict(value) for key, value in _DEFAULTS.items()})
    return {"apiVersion": f"{_GROUP}/v1", "kind": kind, "metadata": metadata, **content}


def _reference(kind: str, name: str) -> Obj:
    return {"apiGroup": _GROUP, "kind": kind, "name": name}


def _subjects(written: tuple[str, ...]) -> list[Obj]:
    """`Kind/name` of each; service accounts are those of kube-system."""
    found = []
    for kind, _, name in (text.partition("/") for text in written):
        account = kind == "ServiceAccount"
        found.append({"kind": kind, "name": name, "namespace": "kube-system"} if account else _reference(kind, name))
    return found


def _cluster_role(name: str, rules: list[Obj]) -> Obj:
    found = _object("ClusterRole", name, rules=rules)
    if name in _AGGREGATES:
        selector = {"matchLabels": {f"{_GROUP}/aggregate-to-{name}": "true"}}
        found["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    gathered = _AGGREGATES.get(name) or name.partition("system:aggregate-to-")[2]
    if gathered:
        found["metadata"]["labels"][f"{_GROUP}/aggregate-to-{gathered}"] = "true"
    return found


def _cluster_binding(name: str, role: str, subjects: tuple[str, ...], *, default: bool = True) -> Obj:
    found = _object("ClusterRoleBinding", name, default=default, roleRef=_reference("ClusterRole", role))
    if subjects:
        found["subjects"] = _subjects(subjects)
    return found


def _binding(namespace: str, name: str, role: str, subjects: tuple[str, ...], *, default: bool = True) -> Obj:
    reference = _reference("Role", role)
    return _object("RoleBinding", name, namespace, default=default, roleRef=reference, subjects=_subjects(subjects))


def bootstrap_roles() -> Iterator[Obj]:
    """Every role and binding, in an order in which they can be created."""
    for name in _AGGREGATES:
        yield _cluster_role(name, [])
    for name, rules in SYSTEM_RULES.items():
        yield _cluster_role(name, rules)
    for name, holders in _HOLDERS.items():
        yield _cluster_binding(name, name, holders)
    for short, rules in CONTROLLER_RULES.items():
        name = f"system:controller:{short}"
        yield _cluster_role(name, rules)
        yield _cluster_binding(name, name, (f"ServiceAccount/{short}",))
    for (namespace, name), rules in NAMESPACED_RULES.items():
        yield _object("Role", name, namespace, rules=rules)
    for namespace, name, role, holders in _NAMESPACED_HOLDERS:
        yield _binding(namespace, name, role or name, holders)
    yield from _kubeadm_roles()


def _kubeadm_roles() -> Iterator[Obj]:
    yield _object("ClusterRole", "kubeadm:get-nodes", default=False, rules=[rule("core", "nodes", "get")])
    for name, (role, holder) in _KUBEADM_HOLDERS.items():
        yield _cluster_binding(name, role, (holder,), default=False)
    for namespace, name, configuration, holders in _KUBEADM_ROLES:
        rules = [rule("core", "configmaps", "get", names=configuration)]
        yield _object("Role", name, namespace, default=False, rules=rules)
        yield _binding(namespace, name, name, holders, default=False)
