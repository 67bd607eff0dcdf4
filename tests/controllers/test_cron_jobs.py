"""CronJobs: when jobs start, what happens to overlaps and missed times, and what is kept."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, annotations_of, name_of
from tests.controllers.bench import Bench, template

CRON = "cronjobs.batch"
JOBS = "jobs.batch"


def make(bench: Bench, schedule: str = "*/5 * * * *", **spec: Any) -> None:
    job = {"template": template(labels={"task": "t"}, restartPolicy="Never")}
    body: Obj = {"schedule": schedule, "jobTemplate": {"metadata": {"labels": {"a": "b"}}, "spec": job}, **spec}
    bench.create(CRON, {"metadata": {"name": "tick"}, "spec": body})


def jobs(bench: Bench) -> list[Obj]:
    return bench.list(JOBS, "default")


def finish(bench: Bench, phase: str = "Succeeded") -> None:
    for pod in bench.pods():
        if pod["status"]["phase"] in ("Pending", "Running"):
            bench.finish(pod, phase)
    bench.advance(3)


def until(bench: Bench, minutes: int) -> None:
    """Go on to a second after the next moment whose minute is a multiple."""
    period = minutes * 60
    now = bench.world.clock.now
    bench.advance((now // period + 1) * period - now + 1)


def test_a_job_starts_when_it_is_due(bench: Bench) -> None:
    make(bench)
    bench.advance(2)
    assert jobs(bench) == []
    until(bench, 5)
    (job,) = jobs(bench)
    due = bench.world.clock.now - 1
    assert name_of(job) == f"tick-{int(due) // 60}"
    assert annotations_of(job)["batch.kubernetes.io/cronjob-scheduled-timestamp"] == "2023-11-14T22:15:00Z"
    assert job["metadata"]["labels"]["a"] == "b"
    status = bench.the(CRON, "tick")["status"]
    assert parse_time(status["lastScheduleTime"]) == due
    assert [reference["name"] for reference in status["active"]] == [name_of(job)]
    bench.advance(2)
    finish(bench)
    status = bench.the(CRON, "tick")["status"]
    assert "active" not in status
    assert status["lastSuccessfulTime"] == bench.the(JOBS, name_of(job))["status"]["completionTime"]
    assert bench.events(CRON, "tick") == [
        ("Normal", "SuccessfulCreate", f"Created job {name_of(job)}"),
        ("Normal", "SawCompletedJob", f"Saw completed job: {name_of(job)}, condition: Complete"),
    ]
    assert bench.sources("SawCompletedJob") == {"cronjob-controller"}


def test_history_is_kept_within_limits(bench: Bench) -> None:
    make(bench, "* * * * *", successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1)
    for _ in range(5):
        until(bench, 1)
        bench.advance(2)
        finish(bench)
    assert len(jobs(bench)) == 2
    assert any(reason == "SuccessfulDelete" for _, reason, _ in bench.events(CRON, "tick"))


def test_allow_lets_jobs_overlap(bench: Bench) -> None:
    make(bench, "* * * * *")
    for _ in range(3):
        until(bench, 1)
    assert len(jobs(bench)) == 3
    assert len(bench.the(CRON, "tick")["status"]["active"]) == 3


def test_forbid_skips_a_turn_and_makes_up_for_it(bench: Bench) -> None:
    make(bench, "* * * * *", concurrencyPolicy="Forbid")
    until(bench, 1)
    until(bench, 1)
    assert len(jobs(bench)) == 1
    text = "Not starting job because prior execution is running and concurrency policy is Forbid"
    assert ("Normal", "JobAlreadyActive", text) in bench.events(CRON, "tick")
    finish(bench)
    bench.advance(3)
    assert len(jobs(bench)) == 2  # the turn it missed is taken as soon as it can be


def test_replace_ends_the_running_job(bench: Bench) -> None:
    make(bench, "* * * * *", concurrencyPolicy="Replace")
    until(bench, 1)
    (first,) = jobs(bench)
    until(bench, 1)
    bench.advance(5)
    (second,) = jobs(bench)
    assert name_of(first) != name_of(second)
    assert ("Normal", "SuccessfulDelete", f"Deleted job {name_of(first)}") in bench.events(CRON, "tick")


def test_a_suspended_schedule_starts_nothing_and_catches_up_once(bench: Bench) -> None:
    make(bench, "* * * * *", suspend=True)
    bench.advance(600)
    assert jobs(bench) == []
    bench.change(CRON, "tick", spec__suspend=False)
    bench.advance(2)
    assert len(jobs(bench)) == 1


def test_a_starting_deadline_gives_up_old_turns(bench: Bench) -> None:
    make(bench, "0 * * * *", suspend=True, startingDeadlineSeconds=60)
    until(bench, 60)
    bench.advance(600)
    bench.change(CRON, "tick", spec__suspend=False)
    bench.advance(2)
    assert jobs(bench) == []


def test_too_many_missed_turns_are_complained_about(bench: Bench) -> None:
    make(bench, "* * * * *", suspend=True)
    bench.advance(3 * 3600)
    bench.change(CRON, "tick", spec__suspend=False)
    bench.advance(2)
    text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
    assert ("Warning", "TooManyMissedTimes", text) in bench.events(CRON, "tick")
    assert len(jobs(bench)) == 1


def test_time_zones_shift_the_schedule(bench: Bench) -> None:
    make(bench, "30 23 * * *", timeZone="Europe/Berlin")  # it is 23:13 there
    bench.advance(17 * 60)
    (job,) = jobs(bench)
    stamp = annotations_of(job)["batch.kubernetes.io/cronjob-scheduled-timestamp"]
    assert stamp == "2023-11-14T23:30:00+01:00"


def test_a_job_deleted_by_hand_is_missed(bench: Bench) -> None:
    make(bench)
    until(bench, 5)
    (job,) = jobs(bench)
    bench.delete(JOBS, name_of(job))
    bench.advance(5)
    assert ("Normal", "MissingJob", f"Active job went missing: {name_of(job)}") in bench.events(CRON, "tick")
    assert len(jobs(bench)) == 0


def test_deleting_the_schedule_takes_jobs_and_pods_along(bench: Bench) -> None:
    make(bench)
    until(bench, 5)
    bench.advance(2)
    assert len(bench.pods()) == 1
    bench.delete(CRON, "tick")
    bench.advance(5)
    assert jobs(bench) == []
    assert bench.pods() == []
