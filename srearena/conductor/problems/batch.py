"""Scheduled jobs and controllers that cause damage or fail."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import ClassVar

from srearena.conductor.oracles.checks import Check
from srearena.conductor.oracles.checks.sustained_readiness import SustainedReadiness
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.origins import OriginProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components, itself_and_callers
from srearena.conductor.problems.variation import Choice
from srearena.generators.fault.actors import account, deployment, script_container
from srearena.service.errors import TimedOut
from srearena.service.kubernetes import Obj
from srearena.service.waiting import wait_until

_TIMEOUT = 180.0


@problem(
    "nightly_rebalance_oom_hotel_reservation",
    app="hotel_reservation",
    service="recommendation",
    victims=("recommendation", "frontend"),
)
class NightlyRebalance(OriginProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components, "victims": itself_and_callers}
    family = "nightly_rebalance_oom"
    difficulty = "hard"
    fault = "recurring_memory_limit"
    root_kind = "CronJob"
    origin = "vpa-updater"
    origin_namespace = "kube-system"
    also_changed = ("Deployment/{service}",)  # it stays as the last run has set it
    contributing = ("Role/vpa-updater", "RoleBinding/vpa-updater", "kube-system/ServiceAccount/vpa-updater")
    explanation = (
        "The CronJob vpa-updater in kube-system sets the memory limit of {service} to 4Mi every minute: new pods are "
        "killed as soon as they start, and a repaired limit is set back."
    )
    remedy = """\
kubectl -n kube-system delete cronjob vpa-updater
kubectl -n {ns} patch deployment {service} --type=json \
-p '[{"op": "remove", "path": "/spec/template/spec/containers/0/resources/limits/memory"}]'"""

    def more_checks(self) -> Iterable[Check]:
        return [SustainedReadiness()]


# A job with a sidecar

_REPORTS = "booking-report"


def _report_job(namespace: str) -> Obj:
    """A CronJob that runs every minute, with a sidecar that ships its log and ends with it."""
    pod = {
        "restartPolicy": "Never",
        "initContainers": [
            {
                "name": "log-shipper",
                "image": "busybox:1.36",
                "restartPolicy": "Always",
                "command": ["sh", "-c", "while true; do sleep 5; done"],
            }
        ],
        "containers": [
            {"name": "report", "image": "busybox:1.36", "command": ["sh", "-c", "sleep 5; echo report written"]}
        ],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": _REPORTS, "namespace": namespace},
        "spec": {
            "schedule": "* * * * *",
            "concurrencyPolicy": "Allow",
            "jobTemplate": {"spec": {"backoffLimit": 0, "template": {"spec": pod}}},
        },
    }


class JobCompletes(Check):
    """A new run of the job completes with its sidecar, and no old run is stuck.

    Why it cannot be gamed: the harness starts its own run from the job's template. A job without its sidecar, a
    suspended or deleted job, and old runs that are still stuck are complaints.
    """

    name = "job"

    def complaints(self, problem: Problem) -> list[str]:
        api, namespace = problem.kubernetes, problem.namespace
        schedule = api.find("cronjobs", _REPORTS, namespace)
        if schedule is None or schedule["spec"].get("suspend"):
            return [f"the CronJob {_REPORTS} does not run any more"]
        template = schedule["spec"]["jobTemplate"]
        pod = template["spec"]["template"]["spec"]
        names = {container["name"] for container in (*pod.get("initContainers", ()), *pod["containers"])}
        if not {"report", "log-shipper"} <= names:
            return [f"the CronJob {_REPORTS} has lost a container"]
        complaints = self._new_run(problem, template)
        problem.cluster.wait(60)
        hanging = [
            job["metadata"]["name"]
            for job in api.list("jobs", namespace)
            if job["metadata"]["name"].startswith(_REPORTS) and (job.get("status") or {}).get("active", 0)
        ]
        return complaints + ([f"runs are stuck: {', '.join(hanging)}"] if len(hanging) > 1 else [])

    def _new_run(self, problem: Problem, template: Obj) -> list[str]:
        api, namespace = problem.kubernetes, problem.namespace
        job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": f"{_REPORTS}-manual"},
            "spec": copy.deepcopy(template["spec"]),
        }
        name = job["metadata"]["name"]
        api.delete("jobs", name, namespace)
        wait_until(lambda: api.find("jobs", name, namespace) is None, problem.cluster.wait, 60, what="an old run to go")
        api.create(job, namespace)
        try:
            wait_until(
                lambda: (api.get("jobs", name, namespace).get("status") or {}).get("succeeded"),
                problem.cluster.wait,
                _TIMEOUT,
                what="a fresh run",
            )
        except TimedOut:
            return [f"a new run of {_REPORTS} does not complete"]
        finally:
            api.delete("jobs", name, namespace)
        return []


@problem("cronjob_sidecar_blocks_completion_hotel_reservation", app="hotel_reservation", service=_REPORTS)
class SidecarBlocksCompletion(OriginProblem):
    family = "cronjob_sidecar_blocks_completion"
    fault = "sidecar_blocks_completion"
    root_kind = "CronJob"
    explanation = (
        "In the CronJob {service} the log shipper is an ordinary container, which never ends: no run ever completes, "
        "and they pile up."
    )
    remedy = """\
kubectl -n {ns} patch cronjob {service} --type=json -p '[
{"op": "remove", "path": "/spec/jobTemplate/spec/template/spec/containers/1"},
{"op": "add", "path": "/spec/jobTemplate/spec/template/spec/initContainers", "value": [{"name": "log-shipper", \
"image": "busybox:1.36", "restartPolicy": "Always", "command": ["sh", "-c", "while true; do sleep 5; done"]}]}]'
kubectl -n {ns} get jobs -o name | grep {service} | xargs -r kubectl -n {ns} delete"""

    def set_up(self) -> None:
        self.kubernetes.apply(_report_job(self.namespace))
        self.cluster.wait(60)

    def more_checks(self) -> Iterable[Check]:
        return [JobCompletes()]


# A controller with finalizers

_CLEANER, _SESSION, _FINALIZER = "session-cleaner", "guest-session", "example.com/session-cleanup"
_SCRIPT = """\
while true; do
  kubectl get configmaps -l tier=session \
-o jsonpath='{range .items[*]}{.metadata.name} {.metadata.deletionTimestamp}{"\\n"}{end}' | while read name when; do
    if [ -n "$when" ]; then
      echo "cleaning up $name"
      kubectl patch configmap "$name" --type=merge -p '{"metadata": {"finalizers": null}}'
    fi
  done
  sleep 10
done"""


def _session(namespace: str, name: str = _SESSION) -> Obj:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"tier": "session"}, "finalizers": [_FINALIZER]},
        "data": {"guest": "Cornell_1"},
    }


class CleanedUp(Check):
    """Deleted objects disappear, and so does a new one: the controller removes its finalizers.

    Why it cannot be gamed: after removing the finalizer by hand, or deleting the controller, the harness's own new
    object is never removed.
    """

    name = "clean-up"

    def complaints(self, problem: Problem) -> list[str]:
        api, namespace = problem.kubernetes, problem.namespace
        try:
            wait_until(
                lambda: api.find("configmaps", _SESSION, namespace) is None,
                problem.cluster.wait,
                60,
                what="the old one",
            )
        except TimedOut:
            session = api.find("configmaps", _SESSION, namespace) or {}
            if "deletionTimestamp" in session.get("metadata", {}):
                return [f"the ConfigMap {_SESSION} is still being deleted"]
        fresh = _session(namespace, "member-session")
        if api.find("configmaps", "member-session", namespace) is None:
            api.create(fresh, namespace)
        api.delete("configmaps", "member-session", namespace)
        try:
            wait_until(
                lambda: api.find("configmaps", "member-session", namespace) is None,
                problem.cluster.wait,
                90,
                what="a fresh one",
            )
        except TimedOut:
            api.patch("configmaps", "member-session", {"metadata": {"finalizers": None}}, namespace, kind="merge")
            return ["a deleted session is not cleaned up"]
        return []


@problem("finalizer_deadlock_controller_hotel_reservation", app="hotel_reservation", service=_CLEANER)
class FinalizerDeadlock(OriginProblem):
    family = "finalizer_deadlock_controller"
    difficulty = "hard"
    fault = "lost_right"
    fault_type = "Authentication Issue"
    root_kind = "Role"
    explanation = (
        "The Role {service} lost the right to patch config maps: the controller cannot take its finalizer off a "
        "deleted session, which stays terminating for ever."
    )
    remedy = """\
kubectl -n {ns} patch role {service} --type=json \
-p '[{"op": "add", "path": "/rules/0/verbs/-", "value": "patch"}]'"""

    def __init__(self, app: str, service: str) -> None:
        super().__init__(app, service, verb="patch", resource="configmaps", waiting=_SESSION)

    def set_up(self) -> None:
        rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "patch"]}]
        pod = {"serviceAccountName": _CLEANER, "containers": [script_container("cleaner", _SCRIPT)]}
        for obj in (*account(_CLEANER, self.namespace, rules), deployment(_CLEANER, self.namespace, pod)):
            self.kubernetes.apply(obj)
        self.kubernetes.apply(_session(self.namespace))
        self.cluster.wait(30)

    def more_checks(self) -> Iterable[Check]:
        return [CleanedUp()]
