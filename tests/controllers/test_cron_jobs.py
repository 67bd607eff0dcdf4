"""CronJobs: when jobs start, what happens to overlaps and missed times, and what is kept."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, annotations_of, name_of
from tests.controllers.stage import Stage, template

CRON = "cronjobs.batch"
JOBS = "jobs.batch"


def make(stage: Stage, schedule: str = "*/5 * * * *", **spec: Any) -> None:
    job = {"template": template(labels={"task": "t"}, restartPolicy="Never")}
    body: Obj = {"schedule": schedule, "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": job}, **spec}
    stage.create(CRON, {"metadata": {"name": "tick"}, "spec": body})


def jobs(stage: Stage) -> list[Obj]:
    return stage.list(JOBS, "default")


def finish(stage: Stage, phase: str = "Succeeded") -> None:
    for pod in stage.pods():
        if pod["status"]["phase"] in ("Pending", "Running"):
            stage.finish(pod, phase)
    stage.advance(3)


def until(stage: Stage, minutes: int) -> None:
    """Go on to a second after the next moment whose minute is a multiple."""
    period = minutes * 60
    now = stage.world.clock.now
    stage.advance((now // period + 1) * period - now + 1)


def test_a_job_starts_when_it_is_due(stage: Stage) -> None:
    make(stage)
    stage.advance(2)
    assert jobs(stage) == []
    until(stage, 5)
    (job,) = jobs(stage)
    due = stage.world.clock.now - 1
    assert name_of(job) == f"tick-{int(due) // 60}"
    assert annotations_of(job)["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2023-11-14T22:15:00Z"
    assert job["metadata"]["labels"]["a"] == "b"
    status = stage.the(CRON, "tick")["status"]
    assert parse_time(status["lastScheduleTime"]) == due
    assert [reference["name"] for reference in status["active"]] == [name_of(job)]
    stage.advance(2)
    finish(stage)
    status = stage.the(CRON, "tick")["status"]
    assert "active" not in status
    assert status["lastSuccessfulTime"] == stage.the(JOBS, name_of(job))["status"]["completionTime"]
    assert stage.events(CRON, "tick") == [
        ("Normal", "SuccessfulCreate", f"Created job {name_of(job)}"),
        ("Normal", "SawCompletedJob", f"Saw completed job: {name_of(job)}, condition: Complete"),
    ]
    assert stage.sources("SawCompletedJob") == {"cronjob-controller"}


def test_history_is_kept_within_limits(stage: Stage) -> None:
    make(stage, "* * * * *", successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for _ in range(5):
        until(stage, 1)
        stage.advance(2)
        finish(stage)
    assert len(jobs(stage)) == 2
    assert any(reason == "SuccessfulDelete" for _, reason, _ in stage.events(CRON, "tick"))


def test_allow_lets_jobs_overlap(stage: Stage) -> None:
    make(stage, "* * * * *")
    for _ in range(3):
        until(stage, 1)
    assert len(jobs(stage)) == 3
    assert len(stage.the(CRON, "tick")["status"]["active"]) == 3


def test_forbid_skips_a_turn_and_makes_up_for_it(stage: Stage) -> None:
    make(stage, "* * * * *", concurrencyPolicy="Forbid")
    until(stage, 1)
    until(stage, 1)
    assert len(jobs(stage)) == 1
    text = "Not starting job because prior execution is running and concurrency policy is Forbid"
    assert ("Normal", "JobAlreadyActive", text) in stage.events(CRON, "tick")
    finish(stage)
    stage.advance(3)
    assert len(jobs(stage)) == 2  # the turn it missed is taken as soon as it can be


def test_replace_ends_the_running_job(stage: Stage) -> None:
    make(stage, "* * * * *", concurrencyPolicy="Replace")
    until(stage, 1)
    (first,) = jobs(stage)
    until(stage, 1)
    stage.advance(5)
    (second,) = jobs(stage)
    assert name_of(first) != name_of(second)
    assert ("Normal", "SuccessfulDelete", f"Deleted job {name_of(first)}") in stage.events(CRON, "tick")


def test_a_suspended_schedule_starts_nothing_and_catches_up_once(stage: Stage) -> None:
    make(stage, "* * * * *", suspend=True)
    stage.advance(600)
    assert jobs(stage) == []
    stage.change(CRON, "tick", spec__suspend=False)
    stage.advance(2)
    assert len(jobs(stage)) == 1


def test_a_starting_deadline_gives_up_old_turns(stage: Stage) -> None:
    make(stage, "0 * * * *", suspend=True, startingDeadlineSeconds=60)
    until(stage, 60)
    stage.advance(600)
    stage.change(CRON, "tick", spec__suspend=False)
    stage.advance(2)
    assert jobs(stage) == []


def test_too_many_missed_turns_are_complained_about(stage: Stage) -> None:
    make(stage, "* * * * *", suspend=True)
    stage.advance(3 * 3600)
    stage.change(CRON, "tick", spec__suspend=False)
    stage.advance(2)
    text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    assert ("Warning", "TooManyMissedTimes", text) in stage.events(CRON, "tick")
    assert len(jobs(stage)) == 1


def test_time_zones_shift_the_schedule(stage: Stage) -> None:
    make(stage, "30 23 * * *", timeZone="Europe/Berlin")  # it is 23:13 there
    stage.advance(17 * 60)
    (job,) = jobs(stage)
    stamp = annotations_of(job)["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert stamp == "2023-11-14T23:30:00+01:00"


def test_a_job_deleted_by_hand_is_missed(stage: Stage) -> None:
    make(stage)
    until(stage, 5)
    (job,) = jobs(stage)
    stage.delete(JOBS, name_of(job))
    stage.advance(5)
    assert ("Normal", "MissingJob", f"Active job went missing: {name_of(job)}") in stage.events(CRON, "tick")
    assert len(jobs(stage)) == 0


def test_deleting_the_schedule_takes_jobs_and_pods_along(stage: Stage) -> None:
    make(stage)
    until(stage, 5)
    stage.advance(2)
    assert len(stage.pods()) == 1
    stage.delete(CRON, "tick")
    stage.advance(5)
    assert jobs(stage) == []
    assert stage.pods() == []
