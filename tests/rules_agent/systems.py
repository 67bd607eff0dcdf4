"""Small systems as the rule-based agent observes them: a few objects, without a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from clients.rules.system import Alert, Obj, System, moment

SPACE = "shop"
DEPLOYED, CHANGED, ALERTED = "2026-01-05T10:00:00Z", "2026-01-05T10:09:00Z", "2026-01-05T10:10:00Z"


def managed(fields: Mapping[str, Any], manager: str = "kubectl-edit", at: str = CHANGED) -> Obj:
    """An entry of managedFields."""
    return {"manager": manager, "operation": "Update", "time": at, "fieldsV1": dict(fields)}


def metadata(name: str, *entries: Obj) -> Obj:
    first = managed({"f:spec": {}}, "deployer", DEPLOYED)
    return {"name": name, "namespace": SPACE, "creationTimestamp": DEPLOYED, "managedFields": [first, *entries]}


def container(**fields: Any) -> Obj:
    return {"name": "main", "image": "registry/program:1.0", "ports": [{"containerPort": 8080}], **fields}


def deployment(name: str, *, ready: bool = True, replicas: int = 1, history: tuple[Obj, ...] = (), **pod: Any) -> Obj:
    """A Deployment whose pods have the label app; `history` are the pod specs of its earlier revisions."""
    spec = {"containers": [container()], **pod}
    available = replicas if ready else 0
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {**metadata(name), "uid": f"uid-{name}"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": spec},
        },
        "status": {"availableReplicas": available, "updatedReplicas": replicas},
        "history": [*history, spec],
    }


def service(
    name: str, *, selector: Mapping[str, str] | None = None, target: int = 8080, entries: tuple[Obj, ...] = ()
) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(name, *entries),
        "spec": {"selector": selector or {"app": name}, "ports": [{"port": 8080, "targetPort": target}]},
    }


def pod(workload: Obj, **fields: Any) -> Obj:
    """The pod of the newest revision of a Deployment."""
    name = workload["metadata"]["name"]
    newest = f"{name}-{len(workload['history']):05d}"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata(f"{newest}-aaaaa"),
            "labels": {"app": name},
            "ownerReferences": [{"name": newest, "uid": f"uid-{newest}"}],
        },
        "spec": workload["spec"]["template"]["spec"],
        "status": {"phase": "Running"},
        **fields,
    }


def alert(name: str, subject: str, at: str = ALERTED) -> Alert:
    return Alert(name, moment(at), {"service_name": subject}, "")


def system(*objects: Obj, alerts: tuple[Alert, ...] = ()) -> System:
    """The objects by resource, with a ReplicaSet and a pod for each revision of a Deployment."""
    found = System(SPACE, alerts=list(alerts), now=moment(ALERTED) + 60)
    for obj in objects:
        if obj["kind"] == "Deployment":
            _with_revisions(found, obj)
        plural = {"NetworkPolicy": "networkpolicies"}.get(obj["kind"], f"{obj['kind'].lower()}s")
        found.objects.setdefault(plural, []).append(obj)
    return found


def _with_revisions(found: System, workload: Obj) -> None:
    name = workload["metadata"]["name"]
    for number, spec in enumerate(workload["history"], 1):
        replica_set = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                **metadata(f"{name}-{number:05d}"),
                "creationTimestamp": DEPLOYED if number == 1 else CHANGED,
                "annotations": {"deployment.kubernetes.io/revision": str(number)},
                "ownerReferences": [{"name": name, "uid": f"uid-{name}"}],
            },
            "spec": {"template": {"metadata": {}, "spec": spec}},
        }
        found.objects.setdefault("replicasets", []).append(replica_set)
    found.objects.setdefault("pods", []).append(pod(workload))
