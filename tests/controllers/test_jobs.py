"""Jobs: completions, retries, deadlines, indexes, policies, suspension, lifetimes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from srearena.cluster.embedded.controllers.job_indexes import format_indexes, parse_indexes
from srearena.cluster.embedded.objects import Obj, annotations_of, is_terminating, labels_of, meta, name_of, uid_of
from tests.controllers.bench import Bench, template

JOBS = "jobs.batch"
TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"


def make(bench: Bench, *, restart: str = "Never", **spec: Any) -> None:
    body = template(labels={"task": "t"}, restartPolicy=restart)
    bench.create(JOBS, {"metadata": {"name": "work"}, "spec": {"template": body, **spec}})


def active(bench: Bench) -> list[Obj]:
    return [p for p in bench.pods() if p["status"]["phase"] in ("Pending", "Running") and not is_terminating(p)]


def end(bench: Bench, phase: str, count: int | None = None, exit_code: int = 0) -> None:
    for pod in active(bench)[:count]:
        bench.finish(pod, phase, exit_code=exit_code or (1 if phase == "Failed" else 0))
    bench.advance(1.5)


def status(bench: Bench) -> Obj:
    found: Obj = bench.the(JOBS, "work")["status"]
    return found


def conditions(bench: Bench) -> list[tuple[str, str, str]]:
    return [(c["type"], c["reason"], c["message"]) for c in status(bench).get("conditions") or ()]


def test_a_job_runs_its_pod_and_completes(bench: Bench) -> None:
    make(bench)
    bench.advance(3)
    (pod,) = bench.pods()
    assert meta(pod)["finalizers"] == [TRACKING]
    assert labels_of(pod)["batch.kubernetes.io/job-name"] == "work"
    assert {k: status(bench)[k] for k in ("active", "ready", "terminating")} == {
        "active": 1,
        "ready": 1,
        "terminating": 0,
    }
    end(bench, "Succeeded")
    reached = ("CompletionsReached", "Reached expected number of succeeded pods")
    assert conditions(bench) == [("SuccessCriteriaMet", *reached), ("Complete", *reached)]
    done = status(bench)
    assert (done["succeeded"], done["uncountedTerminatedPods"]) == (1, {})
    assert "active" not in done
    assert done["completionTime"] >= done["startTime"]
    assert not meta(bench.pods()[0]).get("finalizers")
    assert bench.events(JOBS, "work") == [
        ("Normal", "SuccessfulCreate", f"Created pod: {name_of(pod)}"),
        ("Normal", "Completed", "Job completed"),
    ]


def test_completions_are_worked_off_in_parallel(bench: Bench) -> None:
    make(bench, completions=5, parallelism=2)
    bench.advance(3)
    for running, done in ((2, 2), (2, 4), (1, 5)):
        assert len(active(bench)) == running
        end(bench, "Succeeded")
        bench.advance(2)
        assert status(bench)["succeeded"] == done
    assert conditions(bench)[-1][0] == "Complete"


def test_a_work_queue_ends_with_its_first_success_and_last_pod(bench: Bench) -> None:
    make(bench, parallelism=3)
    bench.edit(JOBS, "work", lambda job: None)
    bench.advance(3)
    assert "completions" not in bench.the(JOBS, "work")["spec"]
    end(bench, "Succeeded", 1)
    bench.advance(5)
    assert len(active(bench)) == 2
    end(bench, "Succeeded")
    assert conditions(bench)[-1][0] == "Complete"
    assert status(bench)["succeeded"] == 3


def test_failures_are_retried_later_and_later_until_the_limit(bench: Bench) -> None:
    make(bench, backoffLimit=2)
    bench.advance(3)
    end(bench, "Failed")
    assert status(bench)["failed"] == 1
    assert active(bench) == []
    bench.advance(7)
    assert active(bench) == []
    bench.advance(3)
    assert len(active(bench)) == 1  # after ten seconds
    end(bench, "Failed")
    bench.advance(17)
    assert active(bench) == []
    bench.advance(4)
    assert len(active(bench)) == 1  # after twenty
    end(bench, "Failed")
    reason = ("BackoffLimitExceeded", "Job has reached the specified backoff limit")
    assert conditions(bench) == [("FailureTarget", *reason), ("Failed", *reason)]
    assert status(bench)["failed"] == 3
    assert ("Warning", *reason) in bench.events(JOBS, "work")
    bench.advance(120)
    assert len(bench.pods()) == 3


def test_restarts_within_a_pod_count_as_well(bench: Bench) -> None:
    make(bench, restart="OnFailure", backoffLimit=3)
    bench.advance(3)
    (pod,) = bench.pods()
    for count in (2, 3):
        pod = bench.the("pods", name_of(pod))
        restarted = [{"name": "main", "restartCount": count, "state": {"running": {}}}]
        bench.client.set_status("pods", pod, {**pod["status"], "containerStatuses": restarted})
        bench.advance(1.5)
        assert bool(conditions(bench)) is (count == 3)
    bench.advance(3)
    assert [c[0] for c in conditions(bench)] == ["FailureTarget", "Failed"]
    assert bench.pods() == []  # it was still running, so it was stopped


def test_a_deadline_stops_the_job(bench: Bench) -> None:
    make(bench, activeDeadlineSeconds=30, parallelism=2, completions=2)
    bench.advance(29)
    assert len(active(bench)) == 2
    bench.advance(4)
    reason = ("DeadlineExceeded", "Job was active longer than specified deadline")
    assert conditions(bench) == [("FailureTarget", *reason), ("Failed", *reason)]
    assert bench.pods() == []
    assert status(bench)["failed"] == 2


def test_the_end_is_final_only_when_the_last_pod_is_gone(bench: Bench) -> None:
    bench.kubelets.stop_seconds = 20
    make(bench, activeDeadlineSeconds=5)
    bench.advance(7)
    assert [c[0] for c in conditions(bench)] == ["FailureTarget"]
    assert status(bench)["terminating"] == 1
    bench.advance(25)
    assert [c[0] for c in conditions(bench)] == ["FailureTarget", "Failed"]
    assert status(bench)["terminating"] == 0


def test_a_deleted_pod_is_a_failed_one(bench: Bench) -> None:
    make(bench)
    bench.advance(3)
    bench.delete("pods", name_of(bench.pods()[0]))
    bench.advance(3)
    assert status(bench)["failed"] == 1
    bench.advance(12)
    assert len(active(bench)) == 1


def test_a_suspended_job_has_no_pods_and_starts_anew(bench: Bench) -> None:
    make(bench, suspend=True, activeDeadlineSeconds=60)
    bench.advance(10)
    assert bench.pods() == []
    assert conditions(bench) == [("Suspended", "JobSuspended", "Job suspended")]
    assert "startTime" not in status(bench)
    bench.change(JOBS, "work", spec__suspend=False)
    bench.advance(3)
    assert len(active(bench)) == 1
    assert conditions(bench) == [("Suspended", "JobResumed", "Job resumed")]
    bench.advance(30)
    bench.change(JOBS, "work", spec__suspend=True)
    bench.advance(3)
    assert active(bench) == []
    assert status(bench).get("failed", 0) == 0
    assert [reason for _, reason, _ in bench.events(JOBS, "work")][:3] == ["Suspended", "SuccessfulCreate", "Resumed"]


def test_indexed_pods_know_their_number(bench: Bench) -> None:
    make(bench, completionMode="Indexed", completions=3, parallelism=3)
    bench.advance(3)
    pods = {annotations_of(pod)[INDEX]: pod for pod in bench.pods()}
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
    bench.finish(pods["0"], "Succeeded")
    bench.finish(pods["2"], "Succeeded")
    bench.advance(2)
    assert (status(bench)["completedIndexes"], status(bench)["succeeded"]) == ("0,2", 2)
    bench.finish(pods["1"], "Failed", exit_code=1)
    bench.advance(12)
    (again,) = active(bench)
    assert annotations_of(again)[INDEX] == "1"
    bench.finish(again, "Succeeded")
    bench.advance(2)
    assert status(bench)["completedIndexes"] == "0-2"
    assert conditions(bench)[-1][0] == "Complete"


def test_each_index_has_retries_of_its_own(bench: Bench) -> None:
    make(bench, completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1)
    bench.advance(3)
    first, second = sorted(bench.pods(), key=lambda pod: annotations_of(pod)[INDEX])
    assert annotations_of(first)["batch.kubernetes.io/job-index-failure-count"] == "0"
    bench.finish(second, "Succeeded")
    bench.finish(first, "Failed", exit_code=1)
    bench.advance(12)
    (again,) = active(bench)
    assert annotations_of(again)["batch.kubernetes.io/job-index-failure-count"] == "1"
    bench.finish(again, "Failed", exit_code=1)
    bench.advance(3)
    assert (status(bench)["completedIndexes"], status(bench)["failedIndexes"]) == ("1", "0")
    reason = ("FailedIndexes", "Job has failed indexes")
    assert conditions(bench) == [("FailureTarget", *reason), ("Failed", *reason)]
    assert status(bench)["failed"] == 2


def test_too_many_failed_indexes_end_the_job_early(bench: Bench) -> None:
    make(bench, completionMode="Indexed", completions=5, parallelism=5, backoffLimitPerIndex=0, maxFailedIndexes=1)
    bench.advance(3)
    end(bench, "Failed", 2)
    assert conditions(bench)[0][1:] == (
        "MaxFailedIndexesExceeded",
        "Job has exceeded the specified maximal number of failed indexes",
    )
    bench.advance(5)
    assert active(bench) == []


def test_a_failure_policy_ends_ignores_or_counts(bench: Bench) -> None:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [42]}},
    ]
    make(bench, podFailurePolicy={"rules": rules}, backoffLimit=3)
    bench.advance(3)
    (pod,) = active(bench)
    disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    bench.client.set_status("pods", pod, {**pod["status"], "conditions": [disrupted]})
    bench.finish(bench.the("pods", name_of(pod)), "Failed", exit_code=137)
    bench.advance(15)
    assert status(bench).get("failed", 0) == 0
    (pod,) = active(bench)
    bench.finish(pod, "Failed", exit_code=42)
    bench.advance(3)
    message = f"Container main for pod default/{name_of(pod)} failed with exit code 42 matching FailJob rule at index 1"
    assert conditions(bench) == [
        ("FailureTarget", "PodFailurePolicy", message),
        ("Failed", "PodFailurePolicy", message),
    ]
    assert status(bench)["failed"] == 1


def test_a_success_policy_is_content_with_less(bench: Bench) -> None:
    policy = {"rules": [{"succeededIndexes": "0"}]}
    make(bench, completionMode="Indexed", completions=3, parallelism=3, successPolicy=policy)
    bench.advance(3)
    leader = next(pod for pod in bench.pods() if annotations_of(pod)[INDEX] == "0")
    bench.finish(leader, "Succeeded")
    bench.advance(5)
    reason = ("SuccessPolicy", "Matched rules at index 0")
    assert conditions(bench) == [("SuccessCriteriaMet", *reason), ("Complete", *reason)]
    assert [name_of(pod) for pod in bench.pods()] == [name_of(leader)]


def test_a_finished_job_goes_when_its_time_is_over(bench: Bench) -> None:
    make(bench, ttlSecondsAfterFinished=60)
    bench.advance(3)
    end(bench, "Succeeded")
    bench.advance(55)
    assert bench.get(JOBS, "work") is not None
    bench.advance(10)
    assert bench.get(JOBS, "work") is None
    assert bench.pods() == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_deleting_a_job_takes_its_pods_along(bench: Bench, propagation: str) -> None:
    make(bench, parallelism=2, completions=2)
    bench.advance(3)
    bench.delete(JOBS, "work", propagation=propagation)
    bench.advance(5)
    assert bench.get(JOBS, "work") is None
    assert bench.pods() == []


def test_parallelism_can_be_lowered_and_raised(bench: Bench) -> None:
    make(bench, parallelism=4, completions=10)
    bench.advance(3)
    bench.change(JOBS, "work", spec__parallelism=1)
    bench.advance(5)
    assert len(active(bench)) == 1
    assert status(bench).get("failed", 0) == 0
    kept = uid_of(active(bench)[0])
    bench.change(JOBS, "work", spec__parallelism=3)
    bench.advance(60)
    assert len(active(bench)) == 3
    assert kept in {uid_of(pod) for pod in active(bench)}


def test_only_ended_pods_are_replaced_where_the_job_insists(bench: Bench) -> None:
    bench.kubelets.stop_seconds = 20
    make(bench, podReplacementPolicy="Failed")
    bench.advance(3)
    bench.delete("pods", name_of(bench.pods()[0]))
    bench.advance(10)
    assert len(bench.pods()) == 1
    assert status(bench).get("failed", 0) == 0
    bench.finish(bench.pods()[0], "Failed", exit_code=143)
    bench.advance(30)
    assert status(bench)["failed"] == 1
    assert len(active(bench)) == 1


def test_quota_refusals_are_told(bench: Bench) -> None:
    bench.create("resourcequotas", {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})
    bench.advance(2)
    make(bench)
    bench.advance(2)
    kind, reason, text = bench.events(JOBS, "work")[0]
    assert (kind, reason) == ("Warning", "FailedCreate")
    assert text.startswith('Error creating: pods "work-')


@given(st.sets(st.integers(0, 60)))
def test_index_lists_read_back_as_written(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes)) == indexes


def test_neighbours_are_listed_and_runs_abbreviated() -> None:
    assert format_indexes({0, 1, 3, 4, 5, 9}) == "0,1,3-5,9"
    assert parse_indexes("0-2,7", 7) == {0, 1, 2}
