"""Objects that teams add to a namespace every day and that change nothing: policies, budgets, quotas, jobs at rest.

They are of the kinds that faults add, so that a new object of such a kind proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from srearena.service.kubernetes import Obj

Maker = Callable[[str, Mapping[str, str]], Obj]
"""Makes an object for the workload of that name, with the selector of its pods."""


def _object(api_version: str, kind: str, name: str, **fields: Any) -> Obj:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def _config_map(name: str, selector: Mapping[str, str]) -> Obj:
    return _object("v1", "ConfigMap", f"{name}-dashboards", data={"panels": "latency,errors,traffic"})


def _open_policy(name: str, selector: Mapping[str, str]) -> Obj:
    """A network policy that admits everything to one workload."""
    spec = {"podSelector": {"matchLabels": dict(selector)}, "policyTypes": ["Ingress"], "ingress": [{}]}
    return _object("networking.k8s.io/v1", "NetworkPolicy", f"{name}-ingress", spec=spec)


def _budget(name: str, selector: Mapping[str, str]) -> Obj:
    spec = {"maxUnavailable": 1, "selector": {"matchLabels": dict(selector)}}
    return _object("policy/v1", "PodDisruptionBudget", name, spec=spec)


def _quota(name: str, selector: Mapping[str, str]) -> Obj:
    """A quota far above what the applications have: a hundred pods at most."""
    return _object("v1", "ResourceQuota", "object-counts", spec={"hard": {"pods": "500", "services": "300"}})


def _role(name: str, selector: Mapping[str, str]) -> Obj:
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}]
    return _object("rbac.authorization.k8s.io/v1", "Role", f"{name}-reader", rules=rules)


def _account(name: str, selector: Mapping[str, str]) -> Obj:
    return _object("v1", "ServiceAccount", f"{name}-ci")


def _suspended_job(name: str, selector: Mapping[str, str]) -> Obj:
    """A CronJob that is switched off."""
    container = {"name": "report", "image": "busybox:1.36", "command": ["sh", "-c", "date"]}
    pod = {"restartPolicy": "Never", "containers": [container]}
    job = {"schedule": "15 3 * * *", "suspend": True, "jobTemplate": {"spec": {"template": {"spec": pod}}}}
    return _object("batch/v1", "CronJob", f"{name}-report", spec=job)


def _priority(name: str, selector: Mapping[str, str]) -> Obj:
    """A priority class that no pod uses."""
    fields = {"value": 500, "description": "Batch work that can wait"}
    return _object("scheduling.k8s.io/v1", "PriorityClass", "batch-low", **fields)


INNOCENT_OBJECTS: tuple[Maker, ...] = (
    _config_map,
    _open_policy,
    _budget,
    _quota,
    _role,
    _account,
    _suspended_job,
    _priority,
)
