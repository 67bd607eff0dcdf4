"""Actors in the cluster: accounts with rights, and programs that use them, as teams put them there.

What an actor does is a shell script with kubectl in a pod; it stops when its account loses the right, or when somebody
stops the pod.
"""

from __future__ import annotations

from typing import Any

from srearena.service.kubernetes import Obj

__all__ = ["KUBECTL", "account", "deployment", "script_container", "service"]

KUBECTL = "bitnami/kubectl:latest"
_RBAC = "rbac.authorization.k8s.io"


def account(name: str, namespace: str, rules: list[dict[str, Any]], acts_in: str = "") -> list[Obj]:
    """A service account in `namespace` that may do what `rules` say in `acts_in`, which is its own by default."""
    there = {"name": name, "namespace": acts_in or namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": dict(there), "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": dict(there),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    ]


def script_container(name: str, script: str) -> Obj:
    return {"name": name, "image": KUBECTL, "command": ["sh", "-c", script]}


def deployment(name: str, namespace: str, pod: Obj, replicas: int = 1) -> Obj:
    """A Deployment whose pods are labelled with its name."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(labels)},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": dict(labels)},
            "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
        },
    }


def service(name: str, namespace: str, port: int) -> Obj:
    """A Service for such a Deployment."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": name}},
        "spec": {"selector": {"app": name}, "ports": [{"port": port, "targetPort": port}]},
    }
