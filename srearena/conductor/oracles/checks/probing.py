"""Probes: short-lived pods of the harness that run a script inside the cluster, like a client there.

A probe has small requests, meets the strictest pod security level and tolerates the taints that the application
tolerates, so it runs wherever ordinary pods do. The pod and its events are deleted afterwards, so that an agent does
not see them. A probe that admission or anyone else has changed is not read: see `probe_integrity`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.grading.pod_templates import pod_spec
from srearena.conductor.oracles.checks.probe_integrity import unexpected
from srearena.service.errors import ApiRefused, NotFound, TimedOut
from srearena.service.kubernetes import Obj
from srearena.service.waiting import wait_until

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_IMAGE = "busybox:1.36"
_MEMORY = "128Mi"
_TIMEOUT = 180.0
"""Seconds; covers an image pull and a scheduling retry on a busy cluster."""
_NEVER_READY = "example.com/never"
RESTRICTED: Obj = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "runAsUser": 65534,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""What the strictest pod security level demands of a container."""
_ADMISSION = 40.0
"""Seconds; above the 30 s that an admission webhook may take at most."""


class ProbeFailed(Exception):
    """The probe could not run; the message has the reason."""


def run_probe(
    problem: Problem,
    script: str,
    pod_settings: Obj | None = None,
    image: str = _IMAGE,
    labels: Mapping[str, str] | None = None,
    memory: str = _MEMORY,
) -> str:
    """Run a shell script in a new pod of the application's namespace and return its output.

    With `labels` the pod is treated by network policies as one with these labels. It never becomes ready, so that no
    Service sends requests to it.
    """
    api, namespace = problem.kubernetes, problem.namespace
    settings = {"tolerations": _tolerations(problem), **(pod_settings or {})}
    sent = _manifest(script, settings, image, dict(labels or {}), memory)
    try:
        # Admission webhooks take some of the cluster's time.
        with problem.cluster.fast_forward(_ADMISSION):
            created = api.create(sent, namespace, manager="kubectl-run")
    except ApiRefused as refused:
        raise ProbeFailed(f"a new pod is not admitted in {namespace}: {refused}") from refused

    name = created["metadata"]["name"]

    def has_ended() -> bool:
        pod = api.get("pods", name, namespace)
        return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")

    try:
        _require_unchanged(problem, sent, created)
        wait_until(has_ended, problem.cluster.wait, _TIMEOUT, what="a probe")
        pod = api.get("pods", name, namespace)
        _require_unchanged(problem, sent, pod)
        if pod["status"]["phase"] == "Failed":
            raise ProbeFailed(f"a new pod in {namespace} fails: {_reason(pod)}")
        return api.logs(name, namespace)
    except NotFound as gone:
        raise ProbeFailed(f"a new pod in {namespace} was deleted while it ran") from gone
    except TimedOut as late:
        found = api.find("pods", name, namespace)
        reason = _reason(found) if found else "it was deleted"
        raise ProbeFailed(f"a new pod in {namespace} does not start: {reason}") from late
    finally:
        if created["metadata"].get("finalizers"):  # only foreign admission adds some
            api.patch("pods", name, {"metadata": {"finalizers": None}}, namespace, kind="merge")
        api.delete("pods", name, namespace, grace=0)
        for event in api.list("events", namespace, fields=f"involvedObject.name={name}"):
            api.delete("events", event["metadata"]["name"], namespace)


def _require_unchanged(problem: Problem, sent: Obj, stored: Obj) -> None:
    found = unexpected(problem, sent, stored)
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise ProbeFailed(f"a new pod in {problem.namespace} is not as it was sent: {'; '.join(found[:3])}{more}")


def _tolerations(problem: Problem) -> list[Obj]:
    """The taints that the application's workloads tolerate, once each.

    Those of DaemonSets do not count, and neither do a toleration of everything or of a node's conditions: a probe on a
    broken node would fail for no fault of the application.
    """
    found: list[Obj] = []
    for resource in ("deployments.apps", "statefulsets.apps"):
        for workload in problem.kubernetes.list(resource, problem.namespace):
            for toleration in workload["spec"]["template"]["spec"].get("tolerations") or ():
                key = str(toleration.get("key") or "")
                if key and not key.startswith("node.kubernetes.io/") and toleration not in found:
                    found.append(toleration)
    return found


def declared_image(problem: Problem, workload: str) -> str:
    """The image of a workload before the fault; ProbeFailed where there was none."""
    assert problem.baseline is not None
    for found in problem.baseline.of(*WORKLOADS, namespace=problem.namespace):
        if found["metadata"]["name"] == workload:
            return str(pod_spec(found)["containers"][0]["image"])
    raise ProbeFailed(f"there was no {workload} before the fault")


def _manifest(script: str, settings: Obj, image: str, labels: dict[str, str], memory: str) -> Obj:
    container: dict[str, Any] = {
        "name": "shell",
        "image": image,
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "1", "memory": memory}},
        "securityContext": RESTRICTED,
    }
    spec: Obj = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "containers": [container],
        **settings,
    }
    metadata: Obj = {"generateName": "shell-"}
    if labels:
        metadata["labels"] = labels
        spec["readinessGates"] = [{"conditionType": _NEVER_READY}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


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
