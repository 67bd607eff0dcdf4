"""Families about jobs and cron jobs."""

from __future__ import annotations

from collections.abc import Iterable

from srearena.cluster.embedded.durations import moment_of
from srearena.cluster.embedded.objects import Obj, dig, meta
from srearena.cluster.embedded.registry import cron
from srearena.cluster.embedded.telemetry.collectors.kube_state.families import (
    Family,
    Kind,
    Reading,
    condition_of,
    created,
    info,
    moment,
    named,
    number,
    owners,
    truth,
    version,
)

_FAILURES = ("BackoffLimitExceeded", "DeadlineExceeded", "Evicted")


def _failed(job: Obj) -> Iterable[Reading]:
    """Yield the number of failed pods, with the reason once the job itself has failed."""
    failed = float(dig(job, "status", "failed", default=0))
    if not failed:
        return (({}, 0.0),)
    readings: list[Reading] = []
    has_known_reason = False
    for row in dig(job, "status", "conditions", default=()):
        if row["type"] == "Failed":
            has_known_reason = has_known_reason or row.get("reason") in _FAILURES
            readings += [({"reason": reason}, truth(row.get("reason") == reason)) for reason in _FAILURES]
    if not has_known_reason:
        readings.append(({"reason": ""}, failed))
    return readings


def _suspended(job: Obj) -> Iterable[Reading]:
    rows = dig(job, "status", "conditions", default=())
    return [({}, truth(row["status"] == "True")) for row in rows if row["type"] == "Suspended"]


def _cron_info(cron_job: Obj) -> Iterable[Reading]:
    spec = cron_job["spec"]
    labels = {
        "schedule": spec.get("schedule") or "",
        "concurrency_policy": spec.get("concurrencyPolicy") or "",
        "timezone": spec.get("timeZone") or "local",
    }
    return ((labels, 1.0),)


def _active(cron_job: Obj) -> Iterable[Reading]:
    return (({}, float(len(dig(cron_job, "status", "active", default=())))),)


def _suspend(cron_job: Obj) -> Iterable[Reading]:
    suspend = cron_job["spec"].get("suspend")
    return () if suspend is None else (({}, truth(suspend)),)


def _next(cron_job: Obj) -> Iterable[Reading]:
    """Return the next scheduled time after the last run, or after creation."""
    spec = cron_job["spec"]
    since = moment_of(dig(cron_job, "status", "lastScheduleTime") or meta(cron_job).get("creationTimestamp"))
    try:
        schedule = cron.parse(spec["schedule"], spec.get("timeZone"))
    except ValueError:
        return ()
    due = schedule.next_after(since) if since is not None else None
    return () if due is None else (({}, float(int(due))),)


_J, _C = "kube_job", "kube_cronjob"

JOBS = Kind(
    "jobs.batch",
    named("job_name"),
    (
        info(f"{_J}_info", "There is such a job."),
        created(_J),
        number(f"{_J}_spec_parallelism", "Pods at a time.", "spec", "parallelism", default=None),
        number(f"{_J}_spec_completions", "Pods that have to succeed.", "spec", "completions", default=None),
        number(
            f"{_J}_spec_active_deadline_seconds",
            "How long the job may take.",
            "spec",
            "activeDeadlineSeconds",
            default=None,
        ),
        number(f"{_J}_status_succeeded", "Pods that succeeded.", "status", "succeeded"),
        Family(f"{_J}_status_failed", "Pods that failed.", _failed),
        number(f"{_J}_status_active", "Pods that run.", "status", "active"),
        condition_of(f"{_J}_complete", "Whether the job is done.", "Complete"),
        condition_of(f"{_J}_failed", "Whether the job has failed.", "Failed"),
        moment(f"{_J}_status_start_time", "When the job was begun.", "status", "startTime"),
        moment(f"{_J}_status_completion_time", "When the job was done.", "status", "completionTime"),
        Family(f"{_J}_status_suspended", "Whether the job is suspended.", _suspended),
        owners(f"{_J}_owner"),
    ),
)

CRON_JOBS = Kind(
    "cronjobs.batch",
    named("cronjob"),
    (
        Family(f"{_C}_info", "Schedule of a cron job.", _cron_info),
        created(_C),
        Family(f"{_C}_status_active", "Jobs that run now.", _active),
        moment(f"{_C}_status_last_schedule_time", "When a job was last created.", "status", "lastScheduleTime"),
        moment(f"{_C}_status_last_successful_time", "When one last succeeded.", "status", "lastSuccessfulTime"),
        Family(f"{_C}_spec_suspend", "Whether the cron job is suspended.", _suspend),
        number(
            f"{_C}_spec_starting_deadline_seconds",
            "How late a job may start.",
            "spec",
            "startingDeadlineSeconds",
            default=None,
        ),
        Family(f"{_C}_next_schedule_time", "When the next job is due.", _next),
        version(_C),
        number(
            f"{_C}_spec_successful_job_history_limit",
            "How many successful jobs are kept.",
            "spec",
            "successfulJobsHistoryLimit",
            default=None,
        ),
        number(
            f"{_C}_spec_failed_job_history_limit",
            "How many failed jobs are kept.",
            "spec",
            "failedJobsHistoryLimit",
            default=None,
        ),
    ),
)

KINDS = (JOBS, CRON_JOBS)
