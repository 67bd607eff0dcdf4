"""Jobs: completions, retries, deadlines, indexes, policies, suspension, lifetimes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.controllers.job_indexes import format_indexes, parse_indexes
from srearena.cluster.embedded.objects import Obj, annotations_of, is_terminating, labels_of, meta, name_of, uid_of
from tests.controllers.stage import Stage, template

JOBS = "jobs.batch"
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


def make(stage: Stage, *, restart: str = "Never", **spec: Any) -> None:
    body = template(labels={"task": "t"}, restartPolicy=restart)
    stage.create(JOBS, {"metadata": {"name": "work"}, "spec": {"template": body, **spec}})


def active(stage: Stage) -> list[Obj]:
    return [p for p in stage.pods() if p["status"]["phase"] in ("Pending", "Running") and not is_terminating(p)]


def end(stage: Stage, phase: str, count: int | None = None, exit_code: int = 0) -> None:
    for pod in active(stage)[:count]:
        stage.finish(pod, phase, exit_code=exit_code or (1 if phase == "Failed" else 0))
    stage.advance(1.5)


def status(stage: Stage) -> Obj:
    found: Obj = stage.the(JOBS, "work")["status"]
    return found


def conditions(stage: Stage) -> list[tuple[str, str, str]]:
    return [(c["type"], c["reason"], c["message"]) for c in status(stage).get("conditions") or ()]


def test_a_job_runs_its_pod_and_completes(stage: Stage) -> None:
    make(stage)
    stage.advance(3)
    (pod,) = stage.pods()
    assert meta(pod)["finalizers"] == [TRACKING]
    assert labels_of(pod)["batch.kubernetes.io/job-name"] == "work"
    assert {k: status(stage)[k] for k in ("active", "ready", "terminating")} == {
        "active": 1,
        "ready": 1,
        "terminating": 0,
    }
    end(stage, "Succeeded")
    reached = ("CompletionsReached", "Reached expected number of succeeded pods")
    assert conditions(stage) == [("SuccessCriteriaMet", *reached), ("Complete", *reached)]
    done = status(stage)
    assert (done["succeeded"], done["uncountedTerminatedPods"]) == (1, {})
    assert "active" not in done
    assert done["completionTime"] >= done["startTime"]
    assert not meta(stage.pods()[0]).get("finalizers")
    assert stage.events(JOBS, "work") == [
        ("Normal", "SuccessfulCreate", f"Created pod: {name_of(pod)}"),
        ("Normal", "Completed", "Job completed"),
    ]


def test_completions_are_worked_off_in_parallel(stage: Stage) -> None:
    make(stage, completions=5, parallelism=2)
    stage.advance(3)
    for running, done in ((2, 2), (2, 4), (1, 5)):
        assert len(active(stage)) == running
        end(stage, "Succeeded")
        stage.advance(2)
        assert status(stage)["succeeded"] == done
    assert conditions(stage)[-1][0] == "Complete"


def test_a_work_queue_ends_with_its_first_success_and_last_pod(stage: Stage) -> None:
    make(stage, parallelism=3)
    stage.edit(JOBS, "work", lambda job: None)
    stage.advance(3)
    assert "completions" not in stage.the(JOBS, "work")["spec"]
    end(stage, "Succeeded", 1)
    stage.advance(5)
    assert len(active(stage)) == 2
    end(stage, "Succeeded")
    assert conditions(stage)[-1][0] == "Complete"
    assert status(stage)["succeeded"] == 3


def test_failures_are_retried_later_and_later_until_the_limit(stage: Stage) -> None:
    make(stage, backoffLimit=2)
    stage.advance(3)
    end(stage, "Failed")
    assert status(stage)["failed"] == 1
    assert active(stage) == []
    stage.advance(7)
    assert active(stage) == []
    stage.advance(3)
    assert len(active(stage)) == 1  # after ten seconds
    end(stage, "Failed")
    stage.advance(17)
    assert active(stage) == []
    stage.advance(4)
    assert len(active(stage)) == 1  # after twenty
    end(stage, "Failed")
    reason = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert conditions(stage) == [("FailureTarget", *reason), ("Failed", *reason)]
    assert status(stage)["failed"] == 3
    assert ("Warning", *reason) in stage.events(JOBS, "work")
    stage.advance(120)
    assert len(stage.pods()) == 3


def test_restarts_within_a_pod_count_as_well(stage: Stage) -> None:
    make(stage, restart="OnFailure", backoffLimit=3)
    stage.advance(3)
    (pod,) = stage.pods()
    for count in (2, 3):
        pod = stage.the("pods", name_of(pod))
        restarted = [{"name": "main", "restartCount": count, "state": {"running": {}}}]
        stage.client.set_status("pods", pod, {**pod["status"], "containerStatuses": restarted})
        stage.advance(1.5)
        assert bool(conditions(stage)) is (count == 3)
    stage.advance(3)
    assert [c[0] for c in conditions(stage)] == ["FailureTarget", "Failed"]
    assert stage.pods() == []  # it was still running, so it was stopped


def test_a_deadline_stops_the_job(stage: Stage) -> None:
    make(stage, activeDeadlineSeconds=30, parallelism=2, completions=2)
    stage.advance(29)
    assert len(active(stage)) == 2
    stage.advance(4)
    reason = ("DeadlineExceeded", "Job was active longer than specified deadline")
    assert conditions(stage) == [("FailureTarget", *reason), ("Failed", *reason)]
    assert stage.pods() == []
    assert status(stage)["failed"] == 2


def test_the_end_is_final_only_when_the_last_pod_is_gone(stage: Stage) -> None:
    stage.kubelets.stop_seconds = 20
    make(stage, activeDeadlineSeconds=5)
    stage.advance(7)
    assert [c[0] for c in conditions(stage)] == ["FailureTarget"]
    assert status(stage)["terminating"] == 1
    stage.advance(25)
    assert [c[0] for c in conditions(stage)] == ["FailureTarget", "Failed"]
    assert status(stage)["terminating"] == 0


def test_a_deleted_pod_is_a_failed_one(stage: Stage) -> None:
    make(stage)
    stage.advance(3)
    stage.delete("pods", name_of(stage.pods()[0]))
    stage.advance(3)
    assert status(stage)["failed"] == 1
    stage.advance(12)
    assert len(active(stage)) == 1


def test_a_suspended_job_has_no_pods_and_starts_anew(stage: Stage) -> None:
    make(stage, suspend=True, activeDeadlineSeconds=60)
    stage.advance(10)
    assert stage.pods() == []
    assert conditions(stage) == [("Suspended", "JobSuspended", "Job suspended")]
    assert "startTime" not in status(stage)
    stage.change(JOBS, "work", spec__suspend=False)
    stage.advance(3)
    assert len(active(stage)) == 1
    assert conditions(stage) == [("Suspended", "JobResumed", "Job resumed")]
    stage.advance(30)
    stage.change(JOBS, "work", spec__suspend=True)
    stage.advance(3)
    assert active(stage) == []
    assert status(stage).get("failed", 0) == 0
    assert [reason for _, reason, _ in stage.events(JOBS, "work")][:3] == ["Suspended", "SuccessfulCreate", "Resumed"]


def test_indexed_pods_know_their_number(stage: Stage) -> None:
    make(stage, completionMode="Indexed", completions=3, parallelism=3)
    stage.advance(3)
    pods = {annotations_of(pod)[INDEX]: pod for pod in stage.pods()}
    assert sorted(pods) == ["0", "1", "2"]
    pod = pods["1"]
    assert name_of(pod).startswith("work-1-")
    assert pod["spec"]["hostname"] == "work-1"
    assert labels_of(pod)[INDEX] == "1"
    assert pod["spec"]["containers"][0]["env"] == [
        {
            "name": "JOB_COMPLETION_INDEX",
            "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}},
        }
    ]
    stage.finish(pods["0"], "Succeeded")
    stage.finish(pods["2"], "Succeeded")
    stage.advance(2)
    assert (status(stage)["completedIndexes"], status(stage)["succeeded"]) == ("0,2", 2)
    stage.finish(pods["1"], "Failed", exit_code=1)
    stage.advance(12)
    (again,) = active(stage)
    assert annotations_of(again)[INDEX] == "1"
    stage.finish(again, "Succeeded")
    stage.advance(2)
    assert status(stage)["completedIndexes"] == "0-2"
    assert conditions(stage)[-1][0] == "Complete"


def test_each_index_has_retries_of_its_own(stage: Stage) -> None:
    make(stage, completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1)
    stage.advance(3)
    first, second = sorted(stage.pods(), key=lambda pod: annotations_of(pod)[INDEX])
    assert annotations_of(first)["batch.kubernetes.io/job-index-failure-count"] == "0"
    stage.finish(second, "Succeeded")
    stage.finish(first, "Failed", exit_code=1)
    stage.advance(12)
    (again,) = active(stage)
    assert annotations_of(again)["batch.kubernetes.io/job-index-failure-count"] == "1"
    stage.finish(again, "Failed", exit_code=1)
    stage.advance(3)
    assert (status(stage)["completedIndexes"], status(stage)["failedIndexes"]) == ("1", "0")
    reason = ("FailedIndexes", "Job has failed indexes")
    assert conditions(stage) == [("FailureTarget", *reason), ("Failed", *reason)]
    assert status(stage)["failed"] == 2


def test_too_many_failed_indexes_end_the_job_early(stage: Stage) -> None:
    make(stage, completionMode="Indexed", completions=5, parallelism=5, backoffLimitPerIndex=0, maxFailedIndexes=1)
    stage.advance(3)
    end(stage, "Failed", 2)
    assert conditions(stage)[0][1:] == (
        "MaxFailedIndexesExceeded",
        "Job has exceeded the specified maximal number of failed indexes",
    )
    stage.advance(5)
    assert active(stage) == []


def test_a_failure_policy_ends_ignores_or_counts(stage: Stage) -> None:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
    ]
    make(stage, podFailurePolicy={"rules": rules}, backoffLimit=3)
    stage.advance(3)
    (pod,) = active(stage)
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    stage.client.set_status("pods", pod, {**pod["status"], "conditions": [disrupted]})
    stage.finish(stage.the("pods", name_of(pod)), "Failed", exit_code=137)
    stage.advance(15)
    assert status(stage).get("failed", 0) == 0
    (pod,) = active(stage)
    stage.finish(pod, "Failed", exit_code=42)
    stage.advance(3)
    message = f"Container main for pod default/{name_of(pod)} failed with exit code 42 matching FailJob rule at index 1"
    assert conditions(stage) == [
        ("FailureTarget", "PodFailurePolicy", message),
        ("Failed", "PodFailurePolicy", message),
    ]
    assert status(stage)["failed"] == 1


def test_a_success_policy_is_content_with_less(stage: Stage) -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    make(stage, completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy)
    stage.advance(3)
    leader = next(pod for pod in stage.pods() if annotations_of(pod)[INDEX] == "0")
    stage.finish(leader, "Succeeded")
    stage.advance(5)
    reason = ("SuccessPolicy", "Matched rules at index 0")
    assert conditions(stage) == [("SuccessCriteriaMet", *reason), ("Complete", *reason)]
    assert [name_of(pod) for pod in stage.pods()] == [name_of(leader)]


def test_a_finished_job_goes_when_its_time_is_over(stage: Stage) -> None:
    make(stage, ttlSecondsAfterFinished=60)
    stage.advance(3)
    end(stage, "Succeeded")
    stage.advance(55)
    assert stage.get(JOBS, "work") is not None
    stage.advance(10)
    assert stage.get(JOBS, "work") is None
    assert stage.pods() == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deleting_a_job_takes_its_pods_along(stage: Stage, propagation: str) -> None:
    make(stage, parallelism=2, completions=2)
    stage.advance(3)
    stage.delete(JOBS, "work", propagation=propagation)
    stage.advance(5)
    assert stage.get(JOBS, "work") is None
    assert stage.pods() == []


def test_parallelism_can_be_lowered_and_raised(stage: Stage) -> None:
    make(stage, parallelism=4, completions=10)
    stage.advance(3)
    stage.change(JOBS, "work", spec__parallelism=1)
    stage.advance(5)
    assert len(active(stage)) == 1
    assert status(stage).get("failed", 0) == 0
    kept = uid_of(active(stage)[0])
    stage.change(JOBS, "work", spec__parallelism=3)
    stage.advance(60)
    assert len(active(stage)) == 3
    assert kept in {uid_of(pod) for pod in active(stage)}


def test_only_ended_pods_are_replaced_where_the_job_insists(stage: Stage) -> None:
    stage.kubelets.stop_seconds = 20
    make(stage, podReplacementPolicy="Failed")
    stage.advance(3)
    stage.delete("pods", name_of(stage.pods()[0]))
    stage.advance(10)
    assert len(stage.pods()) == 1
    assert status(stage).get("failed", 0) == 0
    stage.finish(stage.pods()[0], "Failed", exit_code=143)
    stage.advance(30)
    assert status(stage)["failed"] == 1
    assert len(active(stage)) == 1


def test_quota_refusals_are_told(stage: Stage) -> None:
    stage.create("resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    stage.advance(2)
    make(stage)
    stage.advance(2)
    kind, reason, text = stage.events(JOBS, "work")[0]
    assert (kind, reason) == ("Warning", "FailedCreate")
    assert text.startswith('Error creating: pods "work-')


@given(st.sets(st.integers(0, 60)))
def test_index_lists_read_back_as_written(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes


def test_neighbours_are_listed_and_runs_abbreviated() -> None:
    assert format_indexes({0, 1, 3, 4, 5, 9}) == "0,1,3-5,9"
    assert parse_indexes("0-2,7", 7) == {0, 1, 2}
