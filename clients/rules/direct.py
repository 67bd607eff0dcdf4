"""The same queries and repairs without kubectl: requests to the API with the agent's kubeconfig.

Each query returns the same rows as the kubectl command in `observations`, so that the rules work the same on machines
with and without kubectl. Repairs are the kubectl commands that `findings` proposes, and no others.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from clients.rules import observations
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj

_REVISION = "deployment.kubernetes.io/revision"
_EVENTS = 60


class Direct:
    """A replacement for kubectl."""

    def __init__(self, kubeconfig: Path) -> None:
        self._api = Kubernetes(kubeconfig)

    def close(self) -> None:
        self._api.close()

    def query(self, question: str, namespace: str) -> str:
        """The output of kubectl for one of the queries in `observations`."""
        try:
            return "\n".join(_QUERIES[question](self._api, namespace))
        except ServiceError as problem:
            return f"Error: {problem}"

    def repair(self, command: str) -> str:
        """Execute a kubectl command of `findings`."""
        words = shlex.split(command)[1:]
        namespace = words[1] if words[0] == "-n" else None
        verb, *arguments = words[2:] if namespace else words
        options = dict(word.lstrip("-").partition("=")[::2] for word in arguments if word.startswith("--"))
        names = [word for word in arguments if not word.startswith("-")]
        try:
            _REPAIRS[verb](self._api, names, options, namespace)
        except ServiceError as problem:
            return f"Error: {problem}"
        return "done"


# Queries


def _at(obj: Any, *path: str) -> Any:
    for key in path:
        obj = obj.get(key) if isinstance(obj, dict) else None
    return obj


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _row(*values: Any) -> str:
    return "|".join(_cell(value) for value in values)


def _words(values: Iterable[Any]) -> str:
    return " ".join(json.dumps(value) if isinstance(value, bool) else str(value) for value in values)


def _workloads(api: Kubernetes, namespace: str) -> Iterable[str]:
    for kind in ("deployments", "statefulsets", "daemonsets"):
        for obj in api.list(kind, namespace):
            status, pod = obj.get("status") or {}, _at(obj, "spec", "template", "spec")
            ports = [port["containerPort"] for container in pod["containers"] for port in container.get("ports") or ()]
            yield _row(
                obj["kind"],
                obj["metadata"]["name"],
                _at(obj, "spec", "replicas"),
                status.get("availableReplicas"),
                status.get("updatedReplicas"),
                _at(obj, "spec", "template", "metadata", "labels"),
                _words(ports),
                pod.get("dnsPolicy"),
                obj["metadata"].get("generation"),
                _at(obj, "metadata", "annotations", _REVISION),
            )


def _services(api: Kubernetes, namespace: str) -> Iterable[str]:
    for obj in api.list("services", namespace):
        yield _row(obj["metadata"]["name"], obj["spec"].get("selector"), obj["spec"].get("ports"))


def _endpoints(api: Kubernetes, namespace: str) -> Iterable[str]:
    for piece in api.list("endpointslices", namespace):
        ready = [bool(_at(end, "conditions", "ready")) for end in piece.get("endpoints") or ()]
        yield _row(_at(piece, "metadata", "labels", "kubernetes.io/service-name"), _words(ready))


def _pods(api: Kubernetes, namespace: str) -> Iterable[str]:
    for pod in api.list("pods", namespace):
        states = _at(pod, "status", "containerStatuses") or []
        waiting = [reason for state in states if (reason := _at(state, "state", "waiting", "reason"))]
        owners = pod["metadata"].get("ownerReferences") or [{}]
        yield _row(
            pod["metadata"]["name"],
            owners[0].get("name"),
            _at(pod, "status", "phase"),
            _words(bool(state.get("ready")) for state in states),
            _words(waiting),
            _words(state.get("restartCount", 0) for state in states),
        )


def _events(api: Kubernetes, namespace: str) -> Iterable[str]:
    found = api.list("events", namespace, fields="type=Warning")
    for event in found[-_EVENTS:]:
        about = event.get("involvedObject") or {}
        yield _row(about.get("kind"), about.get("name"), event.get("reason"), event.get("message"))


def _quotas(api: Kubernetes, namespace: str) -> Iterable[str]:
    yield _words(quota["metadata"]["name"] for quota in api.list("resourcequotas", namespace))


def _policies(api: Kubernetes, namespace: str) -> Iterable[str]:
    for policy in api.list("networkpolicies", namespace):
        spec = policy.get("spec") or {}
        yield _row(policy["metadata"]["name"], spec.get("podSelector"), spec.get("ingress"), spec.get("egress"))


_QUERIES: dict[str, Callable[[Kubernetes, str], Iterable[str]]] = {
    observations.WORKLOADS: _workloads,
    observations.SERVICES: _services,
    observations.ENDPOINTS: _endpoints,
    observations.PODS: _pods,
    observations.EVENTS: _events,
    observations.QUOTAS: _quotas,
    observations.POLICIES: _policies,
}


# Repairs

Names = list[str]
Options = dict[str, str]


def _scale(api: Kubernetes, names: Names, options: Options, namespace: str | None) -> None:
    api.scale(names[0], names[1], int(options["replicas"]), namespace)


def _patch(api: Kubernetes, names: Names, options: Options, namespace: str | None) -> None:
    api.patch(names[0], names[1], json.loads(names[2]), namespace, kind="json")


def _delete(api: Kubernetes, names: Names, options: Options, namespace: str | None) -> None:
    api.delete(names[0], names[1], namespace)


def _expose(api: Kubernetes, names: Names, options: Options, namespace: str | None) -> None:
    workload = api.get(names[0], names[1], namespace)
    port = {"port": int(options["port"]), "targetPort": int(options["target-port"]), "protocol": "TCP"}
    spec = {"selector": workload["spec"]["selector"]["matchLabels"], "ports": [port]}
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": names[1]}, "spec": spec}
    api.create(service, namespace, manager="kubectl-expose")


def _rollout(api: Kubernetes, names: Names, options: Options, namespace: str | None) -> None:
    deed, _, target = names[0], *names[1].partition("/")[::2]
    chosen = [target] if target else [obj["metadata"]["name"] for obj in api.list("deployments", namespace)]
    for name in chosen:
        if deed == "restart":
            api.restart("deployments", name, namespace)
        else:
            _undo(api, name, namespace)


def _undo(api: Kubernetes, name: str, namespace: str | None) -> None:
    """Restore the template of the previous revision, like `kubectl rollout undo`."""
    deployment = api.get("deployments", name, namespace)
    sets = [
        obj
        for obj in api.list("replicasets", deployment["metadata"]["namespace"])
        if any(
            owner.get("uid") == deployment["metadata"]["uid"] for owner in obj["metadata"].get("ownerReferences", ())
        )
    ]
    sets.sort(key=_revision)
    if len(sets) < 2:
        return
    template = json.loads(json.dumps(sets[-2]["spec"]["template"]))
    (template["metadata"].get("labels") or {}).pop("pod-template-hash", None)
    change = [{"op": "replace", "path": "/spec/template", "value": template}]
    api.patch("deployments", name, change, namespace, manager="kubectl-rollout")


def _revision(obj: Obj) -> int:
    return int(_at(obj, "metadata", "annotations", _REVISION) or 0)


def _label(api: Kubernetes, names: Names, options: Options, namespace: str | None) -> None:
    api.patch(names[0], names[1], {"metadata": {"labels": {names[2].rstrip("-"): None}}}, kind="merge")


def _taint(api: Kubernetes, names: Names, options: Options, namespace: str | None) -> None:
    """Remove a taint from all nodes: `key=value:effect-`, or `key-` for any."""
    key, _, rest = names[1].rstrip("-").partition("=")
    value, _, effect = rest.partition(":")
    for node in api.list("nodes"):
        taints = node["spec"].get("taints") or []
        kept = [
            taint
            for taint in taints
            if taint["key"] != key or (rest and (taint.get("value", ""), taint["effect"]) != (value, effect))
        ]
        if kept != taints:
            api.patch("nodes", node["metadata"]["name"], {"spec": {"taints": kept or None}}, kind="merge")


_REPAIRS: dict[str, Callable[[Kubernetes, Names, Options, str | None], None]] = {
    "scale": _scale,
    "patch": _patch,
    "delete": _delete,
    "expose": _expose,
    "rollout": _rollout,
    "label": _label,
    "taint": _taint,
}
