"""The FlowSchemas and priority levels a server keeps by default. Nothing queues by them here; operators read them."""

from __future__ import annotations

from collections.abc import Iterator

from srearena.cluster.embedded.objects import Obj

FLOW_SCHEMAS = "flowschemas.flowcontrol.apiserver.k8s.io"
PRIORITY_LEVELS = "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"
_VERSION = "flowcontrol.apiserver.k8s.io/v1"
_AUTOUPDATE = {"apf.kubernetes.io/autoupdate-spec": "true"}
_EVERYBODY = ("Group/system:unauthenticated", "Group/system:authenticated")

# Name: shares, queues, hand size, percent that may be lent. Without queues, what does not fit is rejected.
_LIMITED = {
    "catch-all": (5, 0, 0, 0),
    "system": (30, 64, 6, 33),
    "node-high": (40, 64, 6, 25),
    "leader-election": (10, 16, 4, 0),
    "workload-high": (40, 128, 6, 50),
    "workload-low": (100, 128, 6, 90),
    "global-default": (20, 128, 6, 50),
}


def _resources(verbs: str, groups: str, resources: str, *, cluster: bool = False) -> Obj:
    found: Obj = {
        "apiGroups": [group if group != "core" else "" for group in groups.split()],
        "namespaces": ["*"],
        "resources": resources.split(),
        "verbs": verbs.split(),
    }
    return {**found, "clusterScope": True} if cluster else found


_ALL: Obj = {
    "resourceRules": [_resources("*", "*", "*", cluster=True)],
    "nonResourceRules": [{"nonResourceURLs": ["*"], "verbs": ["*"]}],
}
_NODE_UPKEEP: Obj = {
    "resourceRules": [
        _resources("*", "core", "nodes nodes/status", cluster=True),
        _resources("*", "coordination.k8s.io", "leases"),
    ]
}
_LEASES: Obj = {"resourceRules": [_resources("get create update", "coordination.k8s.io", "leases")]}
_PROBES: Obj = {"nonResourceRules": [{"nonResourceURLs": ["/healthz", "/readyz", "/livez"], "verbs": ["get"]}]}
_LEADERS = ("User/system:kube-controller-manager", "User/system:kube-scheduler", "ServiceAccount/*")

# Name, level, precedence, what tells flows apart, whose requests, which requests.
_SCHEMAS: tuple[tuple[str, str, int, str, tuple[str, ...], Obj], ...] = (
    ("exempt", "exempt", 1, "", ("Group/system:masters",), _ALL),
    ("probes", "exempt", 2, "", _EVERYBODY, _PROBES),
    ("system-leader-election", "leader-election", 100, "ByUser", _LEADERS, _LEASES),
    ("system-node-high", "node-high", 400, "ByUser", ("Group/system:nodes",), _NODE_UPKEEP),
    ("system-nodes", "system", 500, "ByUser", ("Group/system:nodes",), _ALL),
    ("kube-controller-manager", "workload-high", 800, "ByNamespace", ("User/system:kube-controller-manager",), _ALL),
    ("kube-scheduler", "workload-high", 800, "ByNamespace", ("User/system:kube-scheduler",), _ALL),
    ("kube-system-service-accounts", "workload-high", 900, "ByNamespace", ("ServiceAccount/*",), _ALL),
    ("service-accounts", "workload-low", 9000, "ByUser", ("Group/system:serviceaccounts",), _ALL),
    ("global-default", "global-default", 9900, "ByUser", _EVERYBODY, _ALL),
    ("catch-all", "catch-all", 10000, "ByUser", _EVERYBODY, _ALL),
)


def priority_levels() -> Iterator[Obj]:
    exempt = {"lendablePercent": 0, "nominalConcurrencyShares": 0}
    yield _object("PriorityLevelConfiguration", "exempt", {"type": "Exempt", "exempt": exempt})
    for name, (shares, queues, hand, lendable) in _LIMITED.items():
        response: Obj = {"type": "Reject"}
        if queues:
            queuing = {"handSize": hand, "queueLengthLimit": 50, "queues": queues}
            response = {"type": "Queue", "queuing": queuing}
        limited = {"lendablePercent": lendable, "limitResponse": response, "nominalConcurrencyShares": shares}
        yield _object("PriorityLevelConfiguration", name, {"type": "Limited", "limited": limited})


def flow_schemas() -> Iterator[Obj]:
    for name, level, precedence, method, subjects, requests in _SCHEMAS:
        spec: Obj = {
            "matchingPrecedence": precedence,
            "priorityLevelConfiguration": {"name": level},
            "rules": [{**requests, "subjects": [_subject(text) for text in subjects]}],
        }
        if method:
            spec["distinguisherMethod"] = {"type": method}
        yield _object("FlowSchema", name, spec)


def schema_status(schema: Obj, now: str) -> Obj:
    """Of a schema whose level is there."""
    level = schema["spec"]["priorityLevelConfiguration"]["name"]
    text = f'This FlowSchema references the PriorityLevelConfiguration object named "{level}" and it exists'
    found = {"type": "Dangling", "status": "False", "reason": "Found", "message": text, "lastTransitionTime": now}
    return {"conditions": [found]}


def _subject(written: str) -> Obj:
    kind, _, name = written.partition("/")
    field = kind[0].lower() + kind[1:]
    account = {"name": name, "namespace": "kube-system"}
    return {"kind": kind, field: account if kind == "ServiceAccount" else {"name": name}}


def _object(kind: str, name: str, spec: Obj) -> Obj:
    metadata = {"name": name, "annotations": dict(_AUTOUPDATE)}
    return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, "spec": spec}
