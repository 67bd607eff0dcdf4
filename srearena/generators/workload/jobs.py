"""Load generators that run as Jobs: replaced when their settings change, since a Job's template is immutable."""

from __future__ import annotations

from typing import Any

from srearena.service.kubernetes import Kubernetes

Obj = dict[str, Any]
LABELS = {"job": "workload"}
_TIMEOUT = 120.0
_LOG_LINES = 20_000


def start_job(api: Kubernetes, namespace: str, config: Obj, job: Obj) -> None:
    """Create the configuration and the Job; an existing Job of that name is replaced."""
    stop_job(api, namespace, config, job)
    api.apply(config, namespace)
    api.create(job, namespace)


def stop_job(api: Kubernetes, namespace: str, config: Obj, job: Obj) -> None:
    """Delete the Job with its pods, and its configuration; returns when the Job is gone."""
    name = job["metadata"]["name"]
    if api.find("jobs", name, namespace) is not None:
        api.delete("jobs", name, namespace, propagation="Foreground")
        api.wait_for(lambda: api.find("jobs", name, namespace) is None, _TIMEOUT, what=f"the Job {name} to be gone")
    api.delete("configmaps", config["metadata"]["name"], namespace)


def job_log(api: Kubernetes, namespace: str, name: str) -> str:
    """The log of the Job's newest pod that has started; empty where none has."""
    pods = api.list("pods", namespace, labels=f"job-name={name}")
    started = [pod for pod in pods if pod.get("status", {}).get("phase") in ("Running", "Succeeded", "Failed")]
    if not started:
        return ""
    newest = max(started, key=lambda pod: str(pod["metadata"]["creationTimestamp"]))
    return api.logs(newest["metadata"]["name"], namespace, tail=_LOG_LINES)
