"""The pods of a Job: their outcome, creation, and back-off after failures.

A pod counts once it has ended; until the Job has counted it, a finalizer keeps it from disappearing. After failures
the next pod waits 10 s, 20 s, 40 s ... up to ten minutes, for the job as a whole or for each index by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from srearena.cluster.embedded.controllers.job_indexes import (
    COMPLETION_INDEX,
    FAILURE_COUNT,
    IGNORED_FAILURE_COUNT,
    failures_of,
    index_of,
)
from srearena.cluster.embedded.controllers.job_policies import FAIL_INDEX, IGNORE, judge
from srearena.cluster.embedded.controllers.pod_sets import deletion_order, pod_from_template
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, condition, dig, is_terminating, meta, name_of, uid_of

TRACKING = "batch.kubernetes.io/job-tracking"
_BACKOFF_FIRST = 10.0
_BACKOFF_LAST = 600.0
_INDEX_VARIABLE = "JOB_COMPLETION_INDEX"


# Which state a pod is in


def is_indexed(job: Obj) -> bool:
    return bool(dig(job, "spec", "completionMode") == "Indexed")


def replaces_only_failed(job: Obj) -> bool:
    """Whether a terminating pod is replaced only once it has really ended."""
    return bool(dig(job, "spec", "podReplacementPolicy") == "Failed")


def is_tracked(pod: Obj) -> bool:
    return TRACKING in (meta(pod).get("finalizers") or ())


def has_succeeded(pod: Obj) -> bool:
    return bool(dig(pod, "status", "phase") == "Succeeded")


def has_failed(pod: Obj, job: Obj) -> bool:
    """A terminating pod that has not succeeded counts as failed, unless podReplacementPolicy is Failed."""
    phase = dig(pod, "status", "phase")
    if phase == "Failed":
        return True
    return not replaces_only_failed(job) and is_terminating(pod) and phase != "Succeeded"


def is_valid_index(pod: Obj, job: Obj) -> bool:
    index = index_of(pod)
    return index is not None and index < dig(job, "spec", "completions", default=0)


def restarts(pods: Iterable[Obj]) -> int:
    """How often containers of pods that still run were restarted."""
    return sum(
        status.get("restartCount", 0)
        for pod in pods
        if dig(pod, "status", "phase") in ("Running", "Pending")
        for kind in ("initContainerStatuses", "containerStatuses")
        for status in dig(pod, "status", kind, default=())
    )


def ended_at(pod: Obj) -> float:
    """When the pod failed: its last container's end, or else what comes closest."""
    ends = [
        parse_time(moment)
        for status in dig(pod, "status", "containerStatuses", default=())
        if (moment := dig(status, "state", "terminated", "finishedAt"))
    ]
    if ends:
        return max(ends)
    ready = condition(pod, "Ready") or {}
    moment = ready.get("lastTransitionTime") or meta(pod).get("deletionTimestamp")
    return parse_time(moment or meta(pod)["creationTimestamp"])


# Waiting after failures


@dataclass(slots=True)
class Backoff:
    """Failures of a job since its last success."""

    failures: int = 0
    last_failure: float = 0.0
    known: set[str] = field(default_factory=set)
    """UIDs of recorded pods: an interrupted reconciliation sees them again."""

    def record(self, succeeded: list[Obj], failed: list[Obj]) -> None:
        succeeded = [pod for pod in succeeded if uid_of(pod) not in self.known]
        failed = [pod for pod in failed if uid_of(pod) not in self.known]
        self.known.update(uid_of(pod) for pod in (*succeeded, *failed))
        ends = sorted(ended_at(pod) for pod in failed)
        if succeeded:
            last_success = max(ended_at(pod) for pod in succeeded)
            ends = [moment for moment in ends if moment > last_success]
            self.failures = 0
        if ends:
            self.failures += len(ends)
            self.last_failure = max(self.last_failure, ends[-1])

    def remaining(self, now: float) -> float:
        return wait_after(self.failures, self.last_failure, now)


def wait_after(failures: int, last_failure: float, now: float) -> float:
    if not failures:
        return 0.0
    delay = min(_BACKOFF_FIRST * float(2 ** min(failures - 1, 20)), _BACKOFF_LAST)
    return max(0.0, last_failure + delay - now)


# Failures by index


def last_failed_by_index(job: Obj, pods: list[Obj], settled: set[int]) -> dict[int, Obj]:
    """For each index that is neither done nor running, the failed pod with its failure count."""
    limit = dig(job, "spec", "completions", default=0)
    found: dict[int, Obj] = {}
    replaced: set[int] = set()
    for pod in pods:
        index = index_of(pod)
        if index is None or index >= limit or index in settled:
            continue
        if not has_failed(pod, job) and not has_succeeded(pod):
            replaced.add(index)
        elif has_failed(pod, job) and is_tracked(pod):
            known = found.get(index)
            if known is None or _failure_rank(known) < _failure_rank(pod):
                found[index] = pod
    return {index: pod for index, pod in found.items() if index not in replaced}


def _failure_rank(pod: Obj) -> tuple[int, int]:
    return failures_of(pod), failures_of(pod, IGNORED_FAILURE_COUNT)


def failed_indexes(job: Obj, pods: list[Obj], known: set[int]) -> set[int]:
    """Indexes that exceeded their retries, or failed by policy."""
    limit = dig(job, "spec", "backoffLimitPerIndex")
    policy = dig(job, "spec", "podFailurePolicy")
    failed = set(known)
    for pod in pods:
        index = index_of(pod)
        if index is None or not is_valid_index(pod, job) or not is_tracked(pod) or not has_failed(pod, job):
            continue
        action = judge(policy, pod).action if policy else ""
        if action == FAIL_INDEX or (action != IGNORE and failures_of(pod) >= limit):
            failed.add(index)
    return failed


def index_wait(pod: Obj, job: Obj, now: float) -> float:
    """The remaining back-off of an index."""
    count, ignored = next_failure_counts(pod, job)
    return wait_after(count + ignored, ended_at(pod), now)


def next_failure_counts(pod: Obj, job: Obj) -> tuple[int, int]:
    """Failures that count and failures that the policy ignores, with this pod's own."""
    count, ignored = _failure_rank(pod)
    policy = dig(job, "spec", "podFailurePolicy")
    if policy and judge(policy, pod).action == IGNORE:
        return count, ignored + 1
    return count + 1, ignored


# Making and choosing pods


def make_pod(job: Obj, index: int | None, predecessor: Obj | None) -> Obj:
    """A pod of the job; an index gives it its name, host name, annotation, label and variable."""
    pod = pod_from_template(job, job["spec"]["template"])
    metadata = pod["metadata"]
    metadata["finalizers"] = [*(metadata.get("finalizers") or ()), TRACKING]
    if index is None:
        return pod
    metadata["generateName"] = f"{name_of(job)}-{index}-"
    notes = metadata.setdefault("annotations", {})
    notes[COMPLETION_INDEX] = str(index)
    metadata.setdefault("labels", {})[COMPLETION_INDEX] = str(index)
    if dig(job, "spec", "backoffLimitPerIndex") is not None:
        count, ignored = next_failure_counts(predecessor, job) if predecessor is not None else (0, 0)
        notes[FAILURE_COUNT] = str(count)
        if ignored:
            notes[IGNORED_FAILURE_COUNT] = str(ignored)
    pod["spec"].setdefault("hostname", f"{name_of(job)}-{index}")
    source = {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    for kind in ("initContainers", "containers"):
        for container in pod["spec"].get(kind) or ():
            variables = container.setdefault("env", [])
            if not any(variable.get("name") == _INDEX_VARIABLE for variable in variables):
                variables.append({"name": _INDEX_VARIABLE, "valueFrom": source})
    return pod


def surplus_pods(job: Obj, active: list[Obj], at_least: int, now: float) -> list[Obj]:
    """The pods to delete: at least that many, and for an indexed job also duplicates and indexes beyond completions."""
    chosen: list[Obj] = []
    rest = active
    if is_indexed(job):
        rest = []
        seen: set[int] = set()
        for pod in reversed(deletion_order(active, now)):  # the pod with the highest rank keeps its index
            index = index_of(pod)
            if index is None or not is_valid_index(pod, job) or index in seen:
                chosen.append(pod)
            else:
                seen.add(index)
                rest.append(pod)
    if len(chosen) < at_least:
        chosen += deletion_order(rest, now)[: at_least - len(chosen)]
    return chosen


def pending_indexes(job: Obj, pods: list[Obj], active: list[Obj], done: set[int], count: int) -> list[int]:
    """The first indexes without an active pod."""
    taken = set(done)
    gone = {uid_of(pod) for pod in active}
    waited_for = replaces_only_failed(job)
    for pod in pods:
        index = index_of(pod)
        if index is None:
            continue
        lingering = waited_for and is_terminating(pod) and not has_failed(pod, job) and not has_succeeded(pod)
        if uid_of(pod) in gone or lingering:
            taken.add(index)
    found: list[int] = []
    for index in range(dig(job, "spec", "completions", default=0)):
        if len(found) >= count:
            break
        if index not in taken:
            found.append(index)
    return found
