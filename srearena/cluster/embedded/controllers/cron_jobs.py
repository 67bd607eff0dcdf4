"""CronJobs: one job for each scheduled time.

Of missed times only the most recent one is made up for, and not after the starting deadline. The concurrency policy
decides whether a job may start while an older one still runs.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.jobs import JOBS, is_finished
from srearena.cluster.embedded.controllers.pod_sets import is_refused_for_good
from srearena.cluster.embedded.durations import format_time, moment_of, parse_time
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
from srearena.cluster.embedded.registry import cron
from srearena.cluster.embedded.registry.errors import AlreadyExists, ApiError

CRON_JOBS = "cronjobs.batch"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_AFTER_DUE = 0.1
"""A CronJob is reconciled shortly after its scheduled time."""


class CronJobController(Controller):
    name = "cronjob-controller"

    def start(self) -> None:
        self.watch(CRON_JOBS)
        self.watch_owned(JOBS, "CronJob")

    def reconcile(self, key: str) -> None:
        cron_job = self.client.get(CRON_JOBS, *split_key(key))
        if cron_job is None:
            return
        jobs = [
            job
            for resource, job in self.store.owned_by(uid_of(cron_job))
            if resource == JOBS and (controller_of(job) or {}).get("uid") == uid_of(cron_job)
        ]
        self._forget_finished(cron_job, jobs)
        status = copy_of(cron_job.get("status") or {})
        self._follow_jobs(cron_job, jobs, status)
        self._start_due(cron_job, status)
        if status != (cron_job.get("status") or {}):
            if not status.get("active"):
                status.pop("active", None)
            self.client.set_status(CRON_JOBS, cron_job, status)

    # What became of earlier jobs

    def _follow_jobs(self, cron_job: Obj, jobs: list[Obj], status: Obj) -> None:
        active: list[Obj] = status.get("active") or []
        known = {reference.get("uid") for reference in active}
        for job in jobs:
            finished = is_finished(job)
            if uid_of(job) not in known and not finished:
                text = f"Saw a job that the controller did not create or forgot: {name_of(job)}"
                self.recorder.event(cron_job, "Warning", "UnexpectedJob", text)
            elif uid_of(job) in known and finished:
                outcome = "Complete" if condition_is(job, "Complete") else "Failed"
                active = [reference for reference in active if reference.get("uid") != uid_of(job)]
                text = f"Saw completed job: {name_of(job)}, condition: {outcome}"
                self.recorder.event(cron_job, "Normal", "SawCompletedJob", text)
            ended = dig(job, "status", "completionTime")
            if finished and ended and (moment_of(status.get("lastSuccessfulTime")) or 0.0) < parse_time(ended):
                status["lastSuccessfulTime"] = ended
        present = {uid_of(job) for job in jobs}
        for reference in active:
            if reference.get("uid") not in present:
                text = f"Active job went missing: {reference.get('name')}"
                self.recorder.event(cron_job, "Normal", "MissingJob", text)
        status["active"] = [reference for reference in active if reference.get("uid") in present]

    def _forget_finished(self, cron_job: Obj, jobs: list[Obj]) -> None:
        """Delete finished jobs beyond the history limits, the oldest first."""
        for limit_name, outcome in (("failedJobsHistoryLimit", "Failed"), ("successfulJobsHistoryLimit", "Complete")):
            limit = dig(cron_job, "spec", limit_name)
            ended = [job for job in jobs if condition_is(job, outcome) and not is_terminating(job)]
            if limit is None or len(ended) <= limit:
                continue
            ended.sort(key=lambda job: (moment_of(dig(job, "status", "startTime")) or float("inf"), name_of(job)))
            for job in ended[: len(ended) - limit]:
                self._delete_job(cron_job, job)

    def _delete_job(self, cron_job: Obj, job: Obj) -> None:
        self.client.delete(JOBS, job, propagation="Background")
        self.recorder.event(cron_job, "Normal", "SuccessfulDelete", f"Deleted job {name_of(job)}")

    # What is due

    def _start_due(self, cron_job: Obj, status: Obj) -> None:
        spec = cron_job["spec"]
        if is_terminating(cron_job) or spec.get("suspend"):
            return
        schedule = self._schedule(cron_job)
        if schedule is None:
            return
        due = self._due(cron_job, status, schedule)
        if due is not None and self._may_start(cron_job, status, due):
            self._start_job(cron_job, status, due)
        self._plan_next(cron_job, status, schedule)

    def _schedule(self, cron_job: Obj) -> cron.Schedule | None:
        text, zone = cron_job["spec"].get("schedule", ""), cron_job["spec"].get("timeZone")
        if zone:
            try:
                cron.zone_named(zone)
            except cron.CronError as problem:
                self.recorder.event(cron_job, "Warning", "UnknownTimeZone", f'invalid timeZone: "{zone}": {problem}')
                return None
        try:
            return cron.parse(text, zone)
        except cron.CronError as problem:
            message = f'unparseable schedule: "{text}" : {problem}'
            self.recorder.event(cron_job, "Warning", "UnparseableSchedule", message)
            return None

    @staticmethod
    def _earliest(cron_job: Obj, status: Obj) -> float:
        return parse_time(status.get("lastScheduleTime") or meta(cron_job)["creationTimestamp"])

    def _due(self, cron_job: Obj, status: Obj, schedule: cron.Schedule) -> float | None:
        """The most recent time that was due and not yet served."""
        earliest = self._earliest(cron_job, status)
        deadline = cron_job["spec"].get("startingDeadlineSeconds")
        if deadline is not None:
            earliest = max(earliest, self.clock.now - deadline)
        if schedule.next_after(earliest) is None:
            # Such as 31 February. The real controller finds two moments that never come to be the same one.
            why = "time difference between two schedules is less than 1 second"
            text = f"invalid schedule: {cron_job['spec'].get('schedule', '')} : {why}"
            self.recorder.event(cron_job, "Warning", "InvalidSchedule", text)
            return None
        due = cron.most_recent(schedule, earliest, self.clock.now)
        if due.missed is cron.Missed.MANY:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            self.recorder.event(cron_job, "Warning", "TooManyMissedTimes", text)
        return due.moment

    def _may_start(self, cron_job: Obj, status: Obj, due: float) -> bool:
        deadline = cron_job["spec"].get("startingDeadlineSeconds")
        if deadline is not None and due + deadline < self.clock.now:
            moment = datetime.fromtimestamp(due, UTC).strftime("%a, %d %b %Y %H:%M:%S +0000")
            text = f"Missed scheduled time to start a job: {moment}"
            self.recorder.event(cron_job, "Warning", "MissSchedule", text)
            return False
        name = _job_name(cron_job, due)
        active = status.get("active") or []
        if any(reference.get("name") == name for reference in active) or status.get("lastScheduleTime") == format_time(
            due
        ):
            return False
        if active and cron_job["spec"].get("concurrencyPolicy") == "Forbid":
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            self.recorder.event(cron_job, "Normal", "JobAlreadyActive", text)
            return False
        return True

    def _start_job(self, cron_job: Obj, status: Obj, due: float) -> None:
        if cron_job["spec"].get("concurrencyPolicy") == "Replace":
            for reference in status.get("active") or ():
                running = self.client.get(JOBS, namespace_of(cron_job), reference.get("name", ""))
                if running is not None:
                    self._delete_job(cron_job, running)
            status["active"] = []
        try:
            job = self.client.create(JOBS, _job_for(cron_job, due))
            self.recorder.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {name_of(job)}")
        except AlreadyExists as problem:
            found = self.client.get(JOBS, namespace_of(cron_job), _job_name(cron_job, due))
            if found is None or (controller_of(found) or {}).get("uid") != uid_of(cron_job):
                text = f"Error creating job: {problem.message}"
                self.recorder.event(cron_job, "Warning", "FailedCreate", text)
                raise
            job = found
        except ApiError as problem:
            if not is_refused_for_good(problem):
                text = f"Error creating job: {problem.message}"
                self.recorder.event(cron_job, "Warning", "FailedCreate", text)
            raise
        status["active"] = [*(status.get("active") or ()), reference_to(job)]
        status["lastScheduleTime"] = format_time(due)

    def _plan_next(self, cron_job: Obj, status: Obj, schedule: cron.Schedule) -> None:
        due = schedule.next_after(self.clock.now)
        if due is not None:
            self.enqueue(key_of(cron_job), due - self.clock.now + _AFTER_DUE)


def _job_name(cron_job: Obj, due: float) -> str:
    return f"{name_of(cron_job)}-{int(due) // 60}"


def _job_for(cron_job: Obj, due: float) -> Obj:
    template = copy_of(cron_job["spec"]["jobTemplate"])
    metadata = template.get("metadata") or {}
    zone_name = cron_job["spec"].get("timeZone")
    zone: tzinfo = ZoneInfo(zone_name) if zone_name else UTC
    moment = datetime.fromtimestamp(due, zone)
    text = moment.isoformat() if moment.utcoffset() else f"{moment.isoformat()[:19]}Z"
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": _job_name(cron_job, due),
            "namespace": namespace_of(cron_job),
            "labels": metadata.get("labels") or {},
            "annotations": {**(metadata.get("annotations") or {}), SCHEDULED_AT: text},
            "ownerReferences": [owner_reference(cron_job)],
        },
        "spec": template.get("spec") or {},
    }
