"""CronJobs: a job at every tick of a schedule, with a policy for ticks that overlap or were missed."""

from __future__ import annotations

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.jobs import is_finished
from srearena.cluster.embedded.durations import format_time, parse_time
from srearena.cluster.embedded.objects import (
    Obj,
    condition_is,
    controller_of,
    copy_of,
    dig,
    is_terminating,
    key_of,
    meta,
    name_of,
    namespace_of,
    owner_reference,
    reference_to,
    uid_of,
)
from srearena.cluster.embedded.recorder import Recorder
from srearena.cluster.embedded.registry import cron
from srearena.cluster.embedded.registry.errors import AlreadyExists, ApiError
from srearena.cluster.embedded.registry.identity import service_account
from srearena.cluster.embedded.world import CONTROLLER_MANAGER, World

JOBS = "jobs.batch"
_SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_A_LITTLE_LATER = 0.1


class CronJobController(Controller):
    name = "cronjob-controller"
    resource = "cronjobs.batch"

    def __init__(self, world: World) -> None:
        super().__init__(world)
        user = service_account("kube-system", self.name)
        self.recorder = Recorder(world, self.name, user, field_manager=CONTROLLER_MANAGER)

    def start(self) -> None:
        self.watch(self.resource)
        self.watch_owned(JOBS, "CronJob")

    def reconcile(self, key: str) -> None:
        cron_job = self.client.get(self.resource, *split_key(key))
        if cron_job is None or is_terminating(cron_job):
            return
        jobs = [
            job
            for resource, job in self.store.owned_by(uid_of(cron_job))
            if resource == JOBS and (controller_of(job) or {}).get("uid") == uid_of(cron_job)
        ]
        status = self._follow_jobs(cron_job, jobs)
        self._clean_up(cron_job, jobs)
        status = self._tick(cron_job, jobs, status)
        current = self.client.get(self.resource, *split_key(key))
        if current is not None and status != (current.get("status") or {}):
            self.client.set_status(self.resource, current, status)

    # What became of the jobs so far

    def _follow_jobs(self, cron_job: Obj, jobs: list[Obj]) -> Obj:
        status = copy_of(cron_job.get("status") or {})
        active = {reference["uid"]: reference for reference in status.get("active") or ()}
        by_uid = {uid_of(job): job for job in jobs}
        for uid, reference in list(active.items()):
            job = by_uid.get(uid)
            if job is None:
                del active[uid]
                text = f"Active job went missing: {reference['name']}"
                self.recorder.event(cron_job, "Normal", "MissingJob", text)
            elif is_finished(job):
                del active[uid]
                kind = "Complete" if condition_is(job, "Complete") else "Failed"
                text = f"Saw completed job: {name_of(job)}, condition: {kind}"
                self.recorder.event(cron_job, "Normal", "SawCompletedJob", text)
                if kind == "Complete":
                    status["lastSuccessfulTime"] = job["status"].get("completionTime", self.clock.timestamp())
        for job in jobs:
            if not is_finished(job) and uid_of(job) not in active:
                active[uid_of(job)] = _reference(job)
        return _with_active(status, list(active.values()))

    def _clean_up(self, cron_job: Obj, jobs: list[Obj]) -> None:
        for kind, field in (("Complete", "successfulJobsHistoryLimit"), ("Failed", "failedJobsHistoryLimit")):
            limit = dig(cron_job, "spec", field, default=3 if kind == "Complete" else 1)
            ended = [job for job in jobs if condition_is(job, kind) and not is_terminating(job)]
            ended.sort(key=lambda job: (dig(job, "status", "startTime", default=""), name_of(job)))
            for job in ended[: max(0, len(ended) - limit)]:
                self.client.delete(JOBS, job, propagation="Background")
                self.recorder.event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name_of(job)}")

    # The schedule

    def _tick(self, cron_job: Obj, jobs: list[Obj], status: Obj) -> Obj:
        spec = cron_job["spec"]
        if spec.get("suspend"):
            return status
        try:
            schedule = cron.parse(spec["schedule"], spec.get("timeZone"))
        except cron.CronError as problem:
            text = f"unparseable schedule: {spec['schedule']} : {problem}"
            self.recorder.event(cron_job, "Warning", "UnparseableSchedule", text)
            return status
        now = self.clock.now
        earliest = parse_time(status.get("lastScheduleTime") or meta(cron_job)["creationTimestamp"])
        deadline = spec.get("startingDeadlineSeconds")
        if deadline is not None:
            earliest = max(earliest, now - deadline)
        upcoming = schedule.next_after(now)
        if upcoming is not None:
            self.enqueue(key_of(cron_job), upcoming - now + _A_LITTLE_LATER)
        due = cron.most_recent(schedule, earliest, now)
        if due.missed is cron.Missed.MANY:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self.recorder.event(cron_job, "Warning", "TooManyMissedTimes", text)
        if due.moment is None:
            return status
        if deadline is not None and due.moment + deadline < now:
            text = f"Missed scheduled time to start a job: {format_time(due.moment)}"
            self.recorder.event(cron_job, "Warning", "MissSchedule", text)
            return status
        return self._start(cron_job, jobs, status, due.moment)

    def _start(self, cron_job: Obj, jobs: list[Obj], status: Obj, moment: float) -> Obj:
        policy = cron_job["spec"].get("concurrencyPolicy", "Allow")
        active = status.get("active") or []
        if policy == "Forbid" and active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.recorder.event(cron_job, "Normal", "JobAlreadyActive", text)
            return status
        if policy == "Replace":
            for job in jobs:
                if any(reference["uid"] == uid_of(job) for reference in active):
                    self.client.delete(JOBS, job, propagation="Background")
                    self.recorder.event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name_of(job)}")
            status = _with_active(status, [])
        try:
            job = self.client.create(JOBS, _job(cron_job, moment))
        except AlreadyExists:
            return {**status, "lastScheduleTime": format_time(moment)}
        except ApiError as problem:
            self.recorder.event(cron_job, "Warning", "FailedCreate", f"Error creating job: {problem.message}")
            raise
        self.recorder.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {name_of(job)}")
        status = _with_active(status, [*(status.get("active") or ()), _reference(job)])
        return {**status, "lastScheduleTime": format_time(moment)}


def _reference(job: Obj) -> Obj:
    return reference_to(job)


def _with_active(status: Obj, active: list[Obj]) -> Obj:
    rest = {key: value for key, value in status.items() if key != "active"}
    return {"active": active, **rest} if active else rest


def _job(cron_job: Obj, moment: float) -> Obj:
    template = copy_of(cron_job["spec"]["jobTemplate"])
    source = template.get("metadata") or {}
    metadata: Obj = {
        "name": f"{name_of(cron_job)}-{int(moment) // 60}",
        "namespace": namespace_of(cron_job),
        "annotations": {**(source.get("annotations") or {}), _SCHEDULED_AT: format_time(moment)},
        "ownerReferences": [owner_reference(cron_job)],
    }
    if source.get("labels"):
        metadata["labels"] = source["labels"]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"]}
