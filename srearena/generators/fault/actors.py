"""Manifests of actors in the cluster: service accounts with permissions, and workloads that use them.

An actor is a pod that runs a shell script with kubectl. It stops when its account loses the permission or its pod is
stopped.
"""

from __future__ import annotations

from typing import Any

from srearena.service.kubernetes import Obj

__all__ = ["KUBECTL", "account", "deployment", "script_container", "service"]

KUBECTL = "bitnami/kubectl:latest"
_RBAC = "rbac.authorization.k8s.io"


def account(name: str, namespace: str, rules: list[dict[str, Any]], acts_in: str = "") -> list[Obj]:
    """A service account in `namespace` with the permissions `rules` in `acts_in`, by default the same namespace."""
    metadata = {"name": name, "namespace": acts_in or namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": dict(metadata), "rules": rules},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": dict(metadata),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    ]


def script_container(name: str, script: str) -> Obj:
    return {"name": name, "image": KUBECTL, "imagePullPolicy": "IfNotPresent", "command": ["sh", "-c", script]}


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
