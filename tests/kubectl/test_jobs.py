"""Work that ends: counted, retried, given up on, and cleaned away."""

from __future__ import annotations

from .operator import Operator


def job(command: str, more: str = "", restart: str = "Never") -> str:
    return f"""
apiVersion: batch/v1
kind: Job
metadata: {{name: work}}
spec:
  {more}
  template:
    spec:
      restartPolicy: {restart}
      containers: [{{name: c, image: "busybox:1.36", command: [sh, -c, "{command}"]}}]
"""


def condition(operator: Operator, kind: str) -> dict[str, str]:
    conditions = operator.get("job", "work")["status"].get("conditions", [])
    return next((c for c in conditions if c["type"] == kind), {})


def test_a_job_completes_and_says_so(operator: Operator) -> None:
    operator.apply(job("echo done", "completions: 4\n  parallelism: 2"))
    operator.wait(60)
    status = operator.get("job", "work")["status"]
    assert status["succeeded"] == 4
    assert condition(operator, "Complete")["reason"] == "CompletionsReached"
    assert operator.columns("job", "work")[1][1:3] == ["Complete", "4/4"]
    assert operator.events("work")[-1] == ("Normal", "Completed", "Job completed")
    assert operator.kubectl("logs", "job/work").strip() == "done"


def test_failures_are_retried_later_and_later_and_then_given_up(operator: Operator) -> None:
    operator.apply(job("exit 1", "backoffLimit: 3"))
    operator.wait(25)
    early = len(operator.pods("job-name=work"))
    operator.wait(200)
    pods = operator.pods("job-name=work")
    assert early < len(pods) == 4
    assert {pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in pods} == {1}
    failed = condition(operator, "Failed")
    assert (failed["reason"], failed["message"]) == (
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )
    assert "BackoffLimitExceeded" in operator.reasons("work")


def test_a_deadline_ends_what_takes_too_long(operator: Operator) -> None:
    operator.apply(job("sleep 600", "activeDeadlineSeconds: 30"))
    operator.wait(20)
    assert operator.get("job", "work")["status"]["active"] == 1
    operator.wait(90)
    assert condition(operator, "Failed")["reason"] == "DeadlineExceeded"
    assert operator.pods("job-name=work") == []


def test_a_finished_job_goes_when_its_time_is_over(operator: Operator) -> None:
    operator.apply(job("true", "ttlSecondsAfterFinished: 60"))
    operator.wait(30)
    assert condition(operator, "Complete")
    operator.wait(90)
    assert "NotFound" in operator.fails("get", "job", "work")
    assert operator.pods("job-name=work") == []


def test_indexed_pods_know_their_part(operator: Operator) -> None:
    operator.apply(
        job("echo part $JOB_COMPLETION_INDEX", "completions: 3\n  parallelism: 3\n  completionMode: Indexed")
    )
    operator.wait(40)
    assert operator.get("job", "work")["status"]["completedIndexes"] == "0-2"
    said = {operator.kubectl("logs", pod["metadata"]["name"]).strip() for pod in operator.pods("job-name=work")}
    assert said == {"part 0", "part 1", "part 2"}


def test_suspended_it_waits(operator: Operator) -> None:
    operator.apply(job("true", "suspend: true"))
    operator.wait(20)
    assert operator.pods("job-name=work") == []
    assert condition(operator, "Suspended")["status"] == "True"
    operator.kubectl("patch", "job", "work", "-p", '{"spec":{"suspend":false}}')
    operator.wait(30)
    assert condition(operator, "Complete")["status"] == "True"


def test_the_template_of_a_job_is_written_once(operator: Operator) -> None:
    operator.apply(job("sleep 1d"))
    change = '{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"busybox:1.35"}]}}}}'
    assert "spec.template: Invalid value" in operator.fails("patch", "job", "work", "-p", change)
