"""Work by the clock: ticks that overlap, pause, are missed, and leave a tidy history."""

from __future__ import annotations

from .operator import Operator


def cron(policy: str = "Allow", command: str = "date", more: str = "") -> str:
    return f"""
apiVersion: batch/v1
kind: CronJob
metadata: {{name: tick}}
spec:
  schedule: "* * * * *"
  concurrencyPolicy: {policy}
  {more}
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: c, image: "busybox:1.36", command: [sh, -c, "{command}"]}}]
"""


def jobs(operator: Operator) -> list[str]:
    return operator.kubectl("get", "jobs", "-o", "name").split()


def test_every_minute_a_job_and_three_are_remembered(operator: Operator) -> None:
    operator.apply(cron())
    operator.wait(330)
    assert len(jobs(operator)) == 3
    reasons = operator.reasons("tick")
    assert "SuccessfulCreate" in reasons and "SawCompletedJob" in reasons and "SuccessfulDelete" in reasons
    shown = operator.get("cronjob", "tick")["status"]
    assert "lastScheduleTime" in shown and "lastSuccessfulTime" in shown and "active" not in shown
    name = jobs(operator)[-1].rpartition("/")[2]
    assert name.rpartition("-")[2].isdigit(), "named after the minute it was due"


def test_forbid_waits_and_replace_starts_over(operator: Operator) -> None:
    operator.apply(cron("Forbid", "sleep 150"))
    operator.wait(140)
    assert len(jobs(operator)) == 1
    assert "JobAlreadyActive" in operator.reasons("tick")
    operator.kubectl("delete", "cronjob", "tick")
    operator.wait(60)
    operator.apply(cron("Replace", "sleep 3600"))
    operator.wait(100)
    first = jobs(operator)
    operator.wait(120)
    second = jobs(operator)
    assert len(second) == 1 and second != first


def test_suspended_it_does_nothing_and_by_hand_it_runs_at_once(operator: Operator) -> None:
    operator.apply(cron(more="suspend: true"))
    operator.wait(180)
    assert jobs(operator) == []
    operator.kubectl("create", "job", "--from=cronjob/tick", "manual")
    operator.wait(30)
    assert operator.columns("job", "manual")[1][1:3] == ["Complete", "1/1"]
    operator.kubectl("patch", "cronjob", "tick", "-p", '{"spec":{"suspend":false}}')
    operator.wait(70)
    assert len(jobs(operator)) >= 2


def test_a_schedule_that_is_none_is_refused(operator: Operator) -> None:
    refused = operator.fails("apply", "-f", "-", stdin=cron().replace("* * * * *", "every now and then"))
    assert 'spec.schedule: Invalid value: "every now and then"' in refused
