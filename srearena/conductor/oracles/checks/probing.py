"""Probes: short-lived pods of the harness that run a script inside the cluster, like a client there.

A probe has small requests and meets the strictest pod security level, so it is admitted wherever ordinary pods are. The
pod and its events are deleted afterwards, so that an agent does not see them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from srearena.service.errors import ApiRefused, TimedOut
from srearena.service.kubernetes import Obj
from srearena.service.waiting import wait_until

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_IMAGE = "busybox:1.36"
_TIMEOUT = 180.0
"""Seconds; covers an image pull and a scheduling retry on a busy cluster."""
_ADMISSION = 40.0
"""Seconds; above the 30 s that an admission webhook may take at most."""


class ProbeFailed(Exception):
    """The probe could not run; the message has the reason."""


def run_probe(problem: Problem, script: str, pod_settings: Obj | None = None, image: str = _IMAGE) -> str:
    """Run a shell script in a new pod of the application's namespace and return its output."""
    api, namespace = problem.kubernetes, problem.namespace
    try:
        # Admission webhooks take some of the cluster's time.
        with problem.cluster.fast_forward(_ADMISSION):
            created = api.create(_manifest(script, pod_settings or {}, image), namespace, manager="kubectl-run")
    except ApiRefused as refused:
        raise ProbeFailed(f"a new pod is not admitted in {namespace}: {refused}") from refused

    name = created["metadata"]["name"]

    def has_ended() -> bool:
        pod = api.get("pods", name, namespace)
        return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")

    try:
        wait_until(has_ended, problem.cluster.wait, _TIMEOUT, what="a probe")
        pod = api.get("pods", name, namespace)
        if pod["status"]["phase"] == "Failed":
            raise ProbeFailed(f"a new pod in {namespace} fails: {_reason(pod)}")
        return api.logs(name, namespace)
    except TimedOut as late:
        pod = api.get("pods", name, namespace)
        raise ProbeFailed(f"a new pod in {namespace} does not start: {_reason(pod)}") from late
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


def _reason(pod: Obj) -> str:
    status = pod.get("status") or {}
    for state in status.get("containerStatuses") or ():
        now = state.get("state") or {}
        details = now.get("waiting") or now.get("terminated")
        if details:
            return str(details.get("message") or details.get("reason"))
    for condition in status.get("conditions") or ():
        if condition.get("status") == "False" and condition.get("message"):
            return str(condition["message"])
    return f"it is {status.get('phase', 'Pending')}"
