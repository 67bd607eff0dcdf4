"""Jobs: how often they try, how long they may take, what is left of them, and the ones that count."""

from __future__ import annotations

from typing import Any

from .operator import Operator


def job(script: str, name: str = "task", policy: str = "Never", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", script]}
    template = {"spec": {"restartPolicy": policy, "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def pods(operator: Operator, name: str = "task") -> list[dict[str, Any]]:
    return operator.pods(f"batch.kubernetes.io/job-name={name}")


def finished(operator: Operator, kind: str, name: str = "task") -> tuple[str, str, str]:
    found = operator.condition(kind, "job", name)
    return found["status"], found.get("reason", ""), found.get("message", "")


def test_a_job_runs_to_its_end(operator: Operator) -> None:
    operator.apply(job("sleep 20; echo done"))
    operator.wait(10)
    row = operator.row("job", "task")
    assert (row["STATUS"], row["COMPLETIONS"]) == ("Running", "0/1")
    operator.wait(20)
    row = operator.row("job", "task")
    assert (row["STATUS"], row["COMPLETIONS"]) == ("Complete", "1/1")
    assert finished(operator, "Complete") == ("True", "CompletionsReached", "Reached expected number of succeeded pods")
    [pod] = pods(operator)
    name = pod["metadata"]["name"]
    assert operator.printed_status(name) == "Completed"
    assert operator.kubectl("logs", "job/task") == "done\n"
    assert operator.events("task") == [
        ("Normal", "SuccessfulCreate", f"Created pod: {name}"),
        ("Normal", "Completed", "Job completed"),
    ]
    assert operator.kubectl("wait", "--for=condition=complete", "job/task").startswith("job.batch/task condition met")


def test_a_job_that_fails_tries_again_until_its_back_off_limit(operator: Operator) -> None:
    operator.apply(job("echo trying; exit 1", backoffLimit=2))
    operator.wait(200)
    assert finished(operator, "Failed") == (
        "True",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )
    assert operator.row("job", "task")["STATUS"] == "Failed"
    assert [operator.printed_status(pod["metadata"]["name"]) for pod in pods(operator)] == ["Error"] * 3
    assert operator.get("job", "task")["status"]["failed"] == 3
    assert operator.events("task")[-1] == (
        "Warning",
        "BackoffLimitExceeded",
        "Job has reached the specified backoff limit",
    )
    created = sorted(pod["metadata"]["creationTimestamp"] for pod in pods(operator))
    assert len(set(created)) == 3


def test_restarts_in_place_count_against_the_limit_too(operator: Operator) -> None:
    operator.apply(job("exit 1", policy="OnFailure", backoffLimit=2))
    operator.wait(8)
    [pod] = pods(operator)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 1
    operator.wait(200)
    assert finished(operator, "Failed")[1] == "BackoffLimitExceeded"
    assert pods(operator) == [], "the pod that was restarted in place is deleted with its containers"


def test_a_job_that_takes_too_long_is_ended(operator: Operator) -> None:
    operator.apply(job("sleep 3600", activeDeadlineSeconds=60))
    operator.wait(50)
    assert operator.row("job", "task")["STATUS"] == "Running"
    operator.wait(60)
    assert finished(operator, "Failed") == (
        "True",
        "DeadlineExceeded",
        "Job was active longer than specified deadline",
    )
    assert ("Warning", "DeadlineExceeded", "Job was active longer than specified deadline") in operator.events("task")
    assert pods(operator) == []


def test_a_finished_job_is_cleared_away_after_its_time_to_live(operator: Operator) -> None:
    operator.apply(job("true", ttlSecondsAfterFinished=100))
    operator.wait(60)
    assert operator.row("job", "task")["STATUS"] == "Complete"
    operator.wait(90)
    assert operator.run("get", "job", "task").code != 0
    assert pods(operator) == []


def test_an_indexed_job_gives_each_pod_its_number(operator: Operator) -> None:
    script = "echo I am $JOB_COMPLETION_INDEX; sleep 10"
    operator.apply(job(script, completionMode="Indexed", completions=4, parallelism=2))
    operator.wait(8)
    assert len(pods(operator)) == 2
    row = operator.row("job", "task")
    assert (row["STATUS"], row["COMPLETIONS"]) == ("Running", "0/4")
    operator.wait(40)
    assert operator.row("job", "task")["COMPLETIONS"] == "4/4"
    assert operator.get("job", "task")["status"]["completedIndexes"] == "0-3"
    messages = set()
    for pod in pods(operator):
        index = pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"]
        assert pod["metadata"]["name"].startswith(f"task-{index}-")
        assert pod["spec"]["hostname"] == f"task-{index}"
        messages.add(operator.kubectl("logs", pod["metadata"]["name"]))
    assert messages == {f"I am {index}\n" for index in range(4)}


def test_an_index_that_keeps_failing_does_not_stop_the_others(operator: Operator) -> None:
    script = "test $JOB_COMPLETION_INDEX != 1"
    operator.apply(
        job(script, completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=1, maxFailedIndexes=3)
    )
    operator.wait(120)
    status = operator.get("job", "task")["status"]
    assert (status["completedIndexes"], status["failedIndexes"]) == ("0,2", "1")
    assert finished(operator, "Failed")[:2] == ("True", "FailedIndexes")


def test_a_suspended_job_waits_and_goes_on(operator: Operator) -> None:
    operator.apply(job("sleep 60", suspend=True))
    operator.wait(10)
    assert pods(operator) == []
    assert operator.row("job", "task")["STATUS"] == "Suspended"
    assert finished(operator, "Suspended")[:2] == ("True", "JobSuspended")
    operator.kubectl("patch", "job", "task", "-p", '{"spec":{"suspend":false}}')
    operator.wait(20)
    assert operator.row("job", "task")["STATUS"] == "Running"
    assert finished(operator, "Suspended")[:2] == ("False", "JobResumed")
    operator.kubectl("patch", "job", "task", "-p", '{"spec":{"suspend":true}}')
    operator.wait(60)
    assert pods(operator) == []
    assert {"Suspended", "Resumed"} <= set(operator.reasons("task"))


def test_an_exit_code_may_end_the_job_at_once(operator: Operator) -> None:
    policy = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}
    operator.apply(job("exit 42", backoffLimit=5, podFailurePolicy=policy))
    operator.wait(30)
    [pod] = pods(operator)
    status, reason, message = finished(operator, "Failed")
    assert (status, reason) == ("True", "PodFailurePolicy")
    where = f"Container c for pod default/{pod['metadata']['name']}"
    assert message == f"{where} failed with exit code 42 matching FailJob rule at index 0"


def test_a_job_s_template_cannot_be_changed(operator: Operator) -> None:
    operator.apply(job("sleep 100"))
    refusal = operator.fails(
        "patch", "job", "task", "--type=json", "-p",
        '[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"busybox:1.35"}]',
    )  # fmt: skip
    assert 'The Job "task" is invalid: spec.template: Invalid value:' in refusal
    assert "field is immutable" in refusal
