"""What an object counts for in a resource quota, and which quotas count it. Pure: the store is not looked at."""

from __future__ import annotations

from collections.abc import Mapping

from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.quantity import ZERO, Quantity, parse
from srearena.cluster.embedded.registry.strategies.pod_resources import HUGE_PAGES, aggregate

Usage = dict[str, Quantity]
ONE = Quantity.of(1)
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_SHORT_NAMES = {
    "configmaps": "configmaps",
    "persistentvolumeclaims": "persistentvolumeclaims",
    "pods": "pods",
    "replicationcontrollers": "replicationcontrollers",
    "resourcequotas": "resourcequotas",
    "secrets": "secrets",
    "services": "services",
}


def usage_of(resource: str, obj: Obj) -> Usage:
    """What one object of `resource` (`pods`, `deployments.apps`) uses of everything a quota can name."""
    used: Usage = {f"count/{resource}": ONE}
    if resource in _SHORT_NAMES and not (resource == "pods" and not counts(obj)):
        used[_SHORT_NAMES[resource]] = ONE
    if resource == "pods":
        return _pod(obj, used)
    if resource == "services":
        used.update(_service(obj))
    elif resource == "persistentvolumeclaims":
        used.update(_claim(obj))
    return used


def counts(pod: Obj) -> bool:
    """Whether a pod still uses anything: it is neither finished nor long overdue."""
    return dig(pod, "status", "phase") not in ("Succeeded", "Failed")


def _pod(pod: Obj, used: Usage) -> Usage:
    if not counts(pod):
        return used
    spec = pod.get("spec") or {}
    requests, limits = _whole(spec, "requests"), _whole(spec, "limits")
    for name, value in (spec.get("overhead") or {}).items():
        requests[name] = requests.get(name, ZERO) + parse(value)
    for name in _COMPUTE:
        if name in requests:
            used[f"requests.{name}"] = used[name] = requests[name]
        if name in limits:
            used[f"limits.{name}"] = limits[name]
    for name, value in requests.items():
        if "/" in name or name.startswith(HUGE_PAGES):
            used[f"requests.{name}"] = value
        if name.startswith(HUGE_PAGES):
            used[name] = value
    return used


def _whole(spec: Obj, key: str) -> Usage:
    """Requests or limits of the pod as a whole: of its containers, unless it states its own."""
    own = dig(spec, "resources", key, default={})
    return {**aggregate(spec, key), **{name: parse(value) for name, value in own.items()}}


def _service(service: Obj) -> Usage:
    used: Usage = {}
    kind = dig(service, "spec", "type", default="ClusterIP")
    if kind == "LoadBalancer":
        used["services.loadbalancers"] = ONE
    if kind in ("NodePort", "LoadBalancer"):
        ports = dig(service, "spec", "ports", default=())
        if kind == "LoadBalancer" and dig(service, "spec", "allocateLoadBalancerNodePorts") is False:
            ports = [port for port in ports if port.get("nodePort")]
        used["services.nodeports"] = Quantity.of(len(ports))
    return used


def _claim(claim: Obj) -> Usage:
    storage = parse(dig(claim, "spec", "resources", "requests", "storage", default="0"))
    used: Usage = {"requests.storage": storage}
    storage_class = dig(claim, "spec", "storageClassName")
    if storage_class:
        prefix = f"{storage_class}.storageclass.storage.k8s.io"
        used[f"{prefix}/requests.storage"] = storage
        used[f"{prefix}/persistentvolumeclaims"] = ONE
    return used


def hard_limits(quota: Obj) -> Usage:
    return {name: parse(value) for name, value in dig(quota, "spec", "hard", default={}).items()}


def counted_limits(quota: Obj) -> Usage:
    """The limits that are in force: those of which the controller has counted the use."""
    return {name: parse(value) for name, value in dig(quota, "status", "hard", default={}).items()}


def missing_from_pod(pod: Obj, limited: Mapping[str, Quantity]) -> list[str]:
    """What containers must state because the quota limits it: `limits.cpu for: a,b`."""
    found: list[str] = []
    if dig(pod, "spec", "resources", "requests") or dig(pod, "spec", "resources", "limits"):
        return found
    containers = [*dig(pod, "spec", "containers", default=()), *dig(pod, "spec", "initContainers", default=())]
    for name in sorted(limited):
        kind, resource = (
            ("limits", name[7:]) if name.startswith("limits.") else ("requests", name.removeprefix("requests."))
        )
        if resource not in ("cpu", "memory"):
            continue
        silent = sorted({c.get("name", "") for c in containers if dig(c, "resources", kind, resource) is None})
        if silent:
            found.append(f"{name} for: {','.join(silent)}")
    return found


def in_scope(quota: Obj, resource: str, obj: Obj) -> bool:
    """Whether the quota's scopes cover the object."""
    scopes = [{"scopeName": name, "operator": "Exists"} for name in dig(quota, "spec", "scopes", default=())]
    scopes += dig(quota, "spec", "scopeSelector", "matchExpressions", default=())
    return all(_scope_matches(scope, resource, obj) for scope in scopes)


def _crosses_namespaces(pod: Obj) -> bool:
    """Whether a pod's (anti-)affinity to pods names other namespaces than its own, or selects namespaces."""
    terms: list[Obj] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = dig(pod, "spec", "affinity", kind, default={})
        terms += affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        preferred = affinity.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        terms += [row.get("podAffinityTerm") or {} for row in preferred]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)


def _scope_matches(scope: Obj, resource: str, obj: Obj) -> bool:
    if resource != "pods":
        return False
    name, operator, values = scope.get("scopeName"), scope.get("operator"), scope.get("values") or ()
    best_effort = bool(dig(obj, "status", "qosClass") == "BestEffort")
    terminating = dig(obj, "spec", "activeDeadlineSeconds") is not None
    match name:
        case "BestEffort":
            return best_effort
        case "NotBestEffort":
            return not best_effort
        case "Terminating":
            return terminating
        case "NotTerminating":
            return not terminating
        case "CrossNamespacePodAffinity":
            return _crosses_namespaces(obj)
        case "PriorityClass":
            own = dig(obj, "spec", "priorityClassName", default="")
            if operator == "In":
                return bool(own in values)
            if operator == "NotIn":
                return bool(own not in values)
            return bool(own) if operator == "Exists" else not own
        case _:
            return False
