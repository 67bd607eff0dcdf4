"""CronJobs: when they start, what they do with the run before, and what they keep."""

from __future__ import annotations

from typing import Any

from .operator import Operator


def cron_job(script: str = "date", schedule: str = "* * * * *", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", script]}
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "report"},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def jobs(operator: Operator) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = operator.get("jobs", "--sort-by=.metadata.creationTimestamp")["items"]
    return found


def test_every_minute_a_job_and_only_so_many_are_kept(operator: Operator) -> None:
    operator.apply(cron_job(successfulJobsHistoryLimit=2))
    operator.wait(600)
    found = jobs(operator)
    assert 2 <= len(found) <= 3
    minutes = [job["metadata"]["annotations"]["batch.kubernetes.io/cronjob-scheduled-timestamp"] for job in found]
    assert all(minute.endswith(":00Z") for minute in minutes)
    [owner] = found[0]["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("CronJob", "report")
    row = operator.row("cronjob", "report")
    assert (row["SCHEDULE"], row["TIMEZONE"], row["SUSPEND"]) == ("* * * * *", "<none>", "False")
    status = operator.get("cronjob", "report")["status"]
    assert status["lastScheduleTime"] == minutes[-1]
    reasons = operator.reasons("report")
    assert {"SuccessfulCreate", "SawCompletedJob", "SuccessfulDelete"} <= set(reasons)


def test_runs_may_overlap_unless_forbidden(operator: Operator) -> None:
    operator.apply(cron_job("sleep 150"))
    operator.wait(290)
    assert len(operator.get("cronjob", "report")["status"]["active"]) >= 2


def test_forbid_skips_a_run_while_the_last_one_goes_on(operator: Operator) -> None:
    operator.apply(cron_job("sleep 150", concurrencyPolicy="Forbid"))
    operator.wait(290)
    active = operator.get("cronjob", "report")["status"].get("active", [])
    assert len(active) <= 1
    assert len(jobs(operator)) <= 2
    skipped = [text for _, reason, text in operator.events("report") if reason == "JobAlreadyActive"]
    assert skipped == ["Not starting job because prior execution is running and concurrency policy is Forbid"]


def test_replace_ends_the_last_run_for_the_new_one(operator: Operator) -> None:
    operator.apply(cron_job("sleep 600", concurrencyPolicy="Replace"))
    operator.wait(290)
    found = jobs(operator)
    assert len(found) == 1
    assert len(operator.get("cronjob", "report")["status"]["active"]) == 1
    deleted = [text for _, reason, text in operator.events("report") if reason == "SuccessfulDelete"]
    assert all(text.startswith("Deleted job report-") for text in deleted)
    assert deleted


def test_a_suspended_cron_job_starts_nothing(operator: Operator) -> None:
    operator.apply(cron_job())
    operator.kubectl("patch", "cronjob", "report", "-p", '{"spec":{"suspend":true}}')
    operator.wait(180)
    assert jobs(operator) == []
    assert operator.row("cronjob", "report")["SUSPEND"] == "True"
    operator.kubectl("create", "job", "by-hand", "--from=cronjob/report")
    operator.wait(15)
    [job] = jobs(operator)
    assert job["metadata"]["annotations"]["cronjob.kubernetes.io/instantiate"] == "manual"
    assert operator.row("job", "by-hand")["COMPLETIONS"] == "1/1"
    operator.kubectl("patch", "cronjob", "report", "-p", '{"spec":{"suspend":false}}')
    operator.wait(70)
    assert len(jobs(operator)) >= 2


def test_failed_runs_are_kept_apart(operator: Operator) -> None:
    manifest = cron_job("exit 1", failedJobsHistoryLimit=2)
    manifest["spec"]["jobTemplate"]["spec"]["backoffLimit"] = 0
    operator.apply(manifest)
    operator.wait(400)
    found = jobs(operator)
    assert 2 <= len(found) <= 3
    assert all(job["status"].get("succeeded", 0) == 0 for job in found)


def test_a_schedule_nobody_can_read_is_refused(operator: Operator) -> None:
    refusal = operator.fails("create", "cronjob", "report", "--image=busybox", "--schedule=every day")
    assert refusal == (
        'error: failed to create cronjob: CronJob.batch "report" is invalid: spec.schedule: Invalid value: '
        '"every day": expected exactly 5 fields, found 2: [every day]\n'
    )
    refusal = operator.fails("create", "cronjob", "report", "--image=busybox", "--schedule=61 * * * *")
    assert "end of range (61) above maximum (59): 61" in refusal
