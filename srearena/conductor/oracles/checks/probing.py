"""A short-lived pod of the harness that tries something from inside the cluster, as a caller there would.

It asks for little and meets the strictest pod security level, so that it is admitted wherever ordinary pods are. What
it leaves behind (itself, its events) is removed: it must not be there for an agent to see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from srearena.service.errors import ApiRefused, TimedOut
from srearena.service.kubernetes import Obj
from srearena.service.waiting import wait_until

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_IMAGE = "busybox:1.36"
_PATIENCE = 180.0
_ADMISSION = 40.0


class ProbeFailed(Exception):
    """The probe could not be run; the text says why."""


def run_probe(problem: Problem, script: str, pod_settings: Obj | None = None, image: str = _IMAGE) -> str:
    """What a shell script prints in a pod of the application's namespace."""
    api, namespace = problem.kubernetes, problem.namespace
    try:
        # Where webhooks review new pods, the answer takes some of the cluster's time.
        with problem.cluster.fast_forward(_ADMISSION):
            made = api.create(_manifest(script, pod_settings or {}, image), namespace, manager="kubectl-run")
    except ApiRefused as refused:
        raise ProbeFailed(f"a new pod is not admitted in {namespace}: {refused}") from refused

    name = made["metadata"]["name"]

    def over() -> bool:
        pod = api.get("pods", name, namespace)
        return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")

    try:
        wait_until(over, problem.cluster.wait, _PATIENCE, what="a probe")
        pod = api.get("pods", name, namespace)
        if pod["status"]["phase"] == "Failed":
            raise ProbeFailed(f"a new pod in {namespace} fails: {_why(pod)}")
        return api.logs(name, namespace)
    except TimedOut as late:
        pod = api.get("pods", name, namespace)
        raise ProbeFailed(f"a new pod in {namespace} does not get to run: {_why(pod)}") from late
    finally:
        api.delete("pods", name, namespace, grace=0)
        for event in api.list("events", namespace, fields=f"involvedObject.name={name}"):
            api.delete("events", event["metadata"]["name"], namespace)


def _manifest(script: str, settings: Obj, image: str) -> Obj:
    container: dict[str, Any] = {
        "name": "shell",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": "128Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    spec: Obj = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
        **settings,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "shell-"}, "spec": spec}


def _why(pod: Obj) -> str:
    status = pod.get("status") or {}
    for state in status.get("containerStatuses") or ():
        now = state.get("state") or {}
        trouble = now.get("waiting") or now.get("terminated")
        if trouble:
            return str(trouble.get("message") or trouble.get("reason"))
    for condition in status.get("conditions") or ():
        if condition.get("status") == "False" and condition.get("message"):
            return str(condition["message"])
    return f"it is {status.get('phase', 'Pending')}"
