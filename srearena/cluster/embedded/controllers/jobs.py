"""Jobs: pods that run to an end, counted, retried and indexed, until enough succeeded or too much failed.

Each reconciliation counts the pods that ended since the last one, decides whether the job is finished, and if not
adjusts the number of running pods. Counting is exact: a pod is noted in the status before its finalizer is
taken, and moves from there into the totals afterwards. The end is announced first (`SuccessCriteriaMet`,
`FailureTarget`), and becomes final (`Complete`, `Failed`) when the last pod is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from srearena.cluster.embedded.controllers.controller import Controller, split_key
from srearena.cluster.embedded.controllers.job_indexes import format_indexes, index_of, parse_indexes
from srearena.cluster.embedded.controllers.job_pods import (
    TRACKING,
    Backoff,
    failed_indexes,
    has_failed,
    has_succeeded,
    index_wait,
    is_indexed,
    is_tracked,
    is_valid_index,
    last_failed_by_index,
    make_pod,
    pending_indexes,
    replaces_only_failed,
    restarts,
    surplus_pods,
)
from srearena.cluster.embedded.controllers.job_policies import FAIL_JOB, IGNORE, judge, success_message
from srearena.cluster.embedded.controllers.pod_sets import claim_pods, is_active, is_refused_for_good, orphan_index
from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import (
    Obj,
    condition,
    condition_is,
    controller_of,
    copy_of,
    dig,
    is_terminating,
    key_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
    uid_of,
)
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.selectors import label_selector_of
from srearena.cluster.embedded.store import Change
from srearena.cluster.embedded.world import World

JOBS = "jobs.batch"
_POD_BATCH_SECONDS = 1.0
"""Changes of pods are batched for a second, since many pods of a job end together."""
_MOST_PODS_AT_ONCE = 500
_SUCCESS, _FAILURE = "SuccessCriteriaMet", "FailureTarget"
_FINAL = {_SUCCESS: "Complete", _FAILURE: "Failed"}


def is_finished(job: Obj) -> bool:
    return condition_is(job, "Complete") or condition_is(job, "Failed")


@dataclass(slots=True)
class _Round:
    """The state of one reconciliation: what was found, and the status to write."""

    job: Obj
    status: Obj
    pods: list[Obj]
    active: list[Obj]
    succeeded: int = 0
    failed: int = 0
    succeeded_indexes: set[int] = field(default_factory=set)
    failed_indexes: set[int] = field(default_factory=set)
    waiting_by_index: dict[int, Obj] = field(default_factory=dict)
    verdict: Obj | None = None
    """The interim condition that ends the job."""

    @property
    def per_index(self) -> bool:
        return is_indexed(self.job) and dig(self.job, "spec", "backoffLimitPerIndex") is not None


class JobController(Controller):
    name = "job-controller"
    failure = ("job_controller.go:652", "syncing job: {problem}")

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._backoffs: dict[str, Backoff] = {}
        self.store.add_index("pods", "orphans", orphan_index)

    def start(self) -> None:
        self.watch(JOBS)
        self.world.on_change("pods", self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        pod = change.new
        owner = controller_of(pod)
        if owner is None:
            if change.type != "DELETED":
                self._enqueue_suitors(pod)
        elif owner["kind"] == "Job":
            job = self.store.get(JOBS, namespace_of(pod), owner["name"])
            if job is not None and uid_of(job) == owner["uid"] and not is_finished(job):
                self.enqueue(key_of(job), _POD_BATCH_SECONDS)
            elif is_tracked(pod) and change.type != "DELETED":
                self.enqueue(f"orphan|{key_of(pod)}")

    def _enqueue_suitors(self, pod: Obj) -> None:
        for job in self.store.objects(JOBS, namespace_of(pod)):
            if not is_finished(job) and label_selector_of(dig(job, "spec", "selector")).matches(labels_of(pod)):
                self.enqueue(key_of(job))

    def reconcile(self, key: str) -> None:
        if key.startswith("orphan|"):
            self._free_orphan(key.partition("|")[2])
            return
        job = self.client.get(JOBS, *split_key(key))
        if job is None:
            self._backoffs.pop(key, None)
            return
        if is_finished(job):
            self._backoffs.pop(key, None)
        elif dig(job, "spec", "managedBy", default="kubernetes.io/job-controller") == "kubernetes.io/job-controller":
            self._sync(job)

    def _free_orphan(self, key: str) -> None:
        """Remove the tracking finalizer of a pod whose job is finished or deleted."""
        pod = self.client.get("pods", *split_key(key))
        if pod is None:
            return
        owner = controller_of(pod) or {}
        job = self.client.get(JOBS, namespace_of(pod), owner.get("name", ""))
        if job is None or uid_of(job) != owner.get("uid") or is_finished(job):
            self._drop_finalizer(pod)

    # One look

    def _sync(self, job: Obj) -> None:
        pods = claim_pods(self.client, self.store, job, label_selector_of(dig(job, "spec", "selector")))
        status = copy_of(job.get("status") or {})
        status.setdefault("uncountedTerminatedPods", {})
        look = _Round(job, status, pods, [pod for pod in pods if is_active(pod)])
        if not status.get("startTime") and not dig(job, "spec", "suspend"):
            status["startTime"] = self.clock.timestamp()
        self._count(look)
        look.verdict = self._verdict(look)
        problem: ApiError | None = None
        if look.verdict is not None:
            self._delete_pods(job, look.active)
            look.active = []
        elif not is_terminating(job):
            problem = self._manage(look)
            if look.verdict is None and self._is_complete(look):
                text = "Reached expected number of succeeded pods"
                look.verdict = self._condition(_SUCCESS, "CompletionsReached", text)
            elif look.verdict is None:
                self._note_suspension(look)
        self._settle(look)
        if problem is not None:
            raise problem

    def _count(self, look: _Round) -> None:
        """What succeeded and failed so far, with the pods that ended since the last look."""
        job, status = look.job, look.status
        known = status["uncountedTerminatedPods"]
        counted = {*(known.get("succeeded") or ()), *(known.get("failed") or ())}
        fresh = [pod for pod in look.pods if is_tracked(pod) and uid_of(pod) not in counted]
        succeeded = [pod for pod in fresh if has_succeeded(pod)]
        failed = [pod for pod in fresh if has_failed(pod, job)]
        blamed = [pod for pod in failed if self._is_blamed(job, pod)]
        look.succeeded = status.get("succeeded", 0) + len(known.get("succeeded") or ()) + len(succeeded)
        look.failed = status.get("failed", 0) + len(known.get("failed") or ()) + len(blamed)
        backoff = self._backoffs.setdefault(key_of(job), Backoff())
        if is_indexed(job):
            self._count_indexes(look, succeeded)
        if not look.per_index:
            backoff.record(succeeded, failed)

    def _count_indexes(self, look: _Round, succeeded: list[Obj]) -> None:
        job, status = look.job, look.status
        limit = dig(job, "spec", "completions", default=0)
        look.succeeded_indexes = parse_indexes(status.get("completedIndexes", ""), limit)
        look.succeeded_indexes |= {
            index for pod in succeeded if is_valid_index(pod, job) and (index := index_of(pod)) is not None
        }
        look.succeeded = len(look.succeeded_indexes)
        if look.per_index:
            known = parse_indexes(status.get("failedIndexes", ""), limit)
            look.failed_indexes = failed_indexes(job, look.pods, known)
            settled = look.succeeded_indexes | look.failed_indexes
            look.waiting_by_index = last_failed_by_index(job, look.pods, settled)

    @staticmethod
    def _is_blamed(job: Obj, pod: Obj) -> bool:
        """Whether a failed pod counts toward the limits."""
        policy = dig(job, "spec", "podFailurePolicy")
        return not policy or judge(policy, pod).action != IGNORE

    # Is it over?

    def _condition(self, kind: str, reason: str, message: str) -> Obj:
        now = self.clock.timestamp()
        return {
            "type": kind,
            "status": "True",
            "lastProbeTime": now,
            "lastTransitionTime": now,
            "reason": reason,
            "message": message,
        }

    def _verdict(self, look: _Round) -> Obj | None:
        job = look.job
        for kind in (_SUCCESS, _FAILURE):
            if condition_is(job, kind):
                return condition(job, kind)
        spec = job["spec"]
        if spec.get("podFailurePolicy"):
            for pod in look.pods:
                if has_failed(pod, job) and is_tracked(pod):
                    verdict = judge(spec["podFailurePolicy"], pod)
                    if verdict.action == FAIL_JOB:
                        return self._condition(_FAILURE, "PodFailurePolicy", verdict.message)
        if self._exceeds_backoff(look):
            return self._condition(_FAILURE, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
        if self._is_overdue(look):
            return self._condition(_FAILURE, "DeadlineExceeded", "Job was active longer than specified deadline")
        if is_indexed(job):
            return self._index_verdict(look)
        return None

    def _exceeds_backoff(self, look: _Round) -> bool:
        limit = dig(look.job, "spec", "backoffLimit", default=6)
        if look.failed > look.status.get("failed", 0) and look.failed > limit:
            return True
        if dig(look.job, "spec", "template", "spec", "restartPolicy") != "OnFailure":
            return False
        count = restarts(look.pods)
        return bool(count > 0 if limit == 0 else count >= limit)

    def _is_overdue(self, look: _Round) -> bool:
        deadline = dig(look.job, "spec", "activeDeadlineSeconds")
        started = look.status.get("startTime")
        if deadline is None or dig(look.job, "spec", "suspend") or not started:
            return False
        left = parse_time(started) + deadline - self.clock.now
        if left > 0:
            self.enqueue(key_of(look.job), left)
        return bool(left <= 0)

    def _index_verdict(self, look: _Round) -> Obj | None:
        completions = dig(look.job, "spec", "completions", default=0)
        if look.per_index:
            most = dig(look.job, "spec", "maxFailedIndexes")
            if most is not None and len(look.failed_indexes) > most:
                text = "Job has exceeded the specified maximal number of failed indexes"
                return self._condition(_FAILURE, "MaxFailedIndexesExceeded", text)
            if look.failed_indexes and len(look.failed_indexes) + len(look.succeeded_indexes) >= completions:
                return self._condition(_FAILURE, "FailedIndexes", "Job has failed indexes")
        met = success_message(dig(look.job, "spec", "successPolicy"), completions, look.succeeded_indexes)
        return self._condition(_SUCCESS, "SuccessPolicy", met) if met else None

    @staticmethod
    def _is_complete(look: _Round) -> bool:
        completions = dig(look.job, "spec", "completions")
        if look.active:
            return False
        return bool(look.succeeded > 0 if completions is None else look.succeeded >= completions)

    def _note_suspension(self, look: _Round) -> None:
        suspended = bool(dig(look.job, "spec", "suspend"))
        known = condition(look.job, "Suspended")
        if known is None and not suspended:
            return
        if known is not None and (known["status"] == "True") == suspended:
            return
        word, event = ("JobSuspended", "Suspended") if suspended else ("JobResumed", "Resumed")
        text = "Job suspended" if suspended else "Job resumed"
        new = {**self._condition("Suspended", word, text), "status": "True" if suspended else "False"}
        others = [c for c in look.status.get("conditions") or () if c["type"] != "Suspended"]
        look.status["conditions"] = [*others, new]
        if not suspended:
            look.status["startTime"] = self.clock.timestamp()
            deadline = dig(look.job, "spec", "activeDeadlineSeconds")
            if deadline is not None:
                self.enqueue(key_of(look.job), deadline)
        self.recorder.event(look.job, "Normal", event, text)

    # The right number of pods

    def _manage(self, look: _Round) -> ApiError | None:
        spec = look.job["spec"]
        if spec.get("suspend"):
            self._dismiss(look, look.active)
            return None
        parallelism = spec.get("parallelism", 1)
        if spec.get("completions") is None:
            wanted = len(look.active) if look.succeeded else parallelism
        else:
            left = spec["completions"] - look.succeeded - len(look.failed_indexes)
            wanted = max(0, min(left, parallelism))
        extra = max(0, len(look.active) - wanted)
        surplus = surplus_pods(look.job, look.active, extra, self.clock.now)[:_MOST_PODS_AT_ONCE]
        self._dismiss(look, surplus)
        lingering = sum(1 for pod in look.pods if _lingers(pod)) if replaces_only_failed(look.job) else 0
        missing = min(wanted - len(look.active) - lingering, _MOST_PODS_AT_ONCE)
        return self._create_pods(look, missing) if missing > 0 else None

    def _dismiss(self, look: _Round, pods: list[Obj]) -> None:
        """Delete excess pods; they do not count as failed."""
        for pod in pods:
            self._drop_finalizer(pod)
        self._delete_pods(look.job, pods)
        leaving = {uid_of(pod) for pod in pods}
        look.active = [pod for pod in look.active if uid_of(pod) not in leaving]

    def _create_pods(self, look: _Round, count: int) -> ApiError | None:
        wait = 0.0 if look.per_index else self._backoffs[key_of(look.job)].remaining(self.clock.now)
        if wait > 0:
            self.enqueue(key_of(look.job), wait)
            return None
        indexes: list[int | None] = [None] * count
        if is_indexed(look.job):
            indexes = self._indexes_to_start(look, count)
        batch, done = 1, 0
        while done < len(indexes):
            for index in indexes[done : done + batch]:
                predecessor = look.waiting_by_index.get(index) if index is not None else None
                try:
                    pod = self.client.create("pods", make_pod(look.job, index, predecessor))
                except ApiError as problem:
                    if is_refused_for_good(problem):
                        return None
                    self.recorder.event(look.job, "Warning", "FailedCreate", f"Error creating: {problem.message}")
                    return problem
                self.recorder.event(look.job, "Normal", "SuccessfulCreate", f"Created pod: {name_of(pod)}")
                look.active.append(pod)
                if index is not None:
                    look.waiting_by_index.pop(index, None)
            done, batch = done + batch, batch * 2
        return None

    def _indexes_to_start(self, look: _Round, count: int) -> list[int | None]:
        done = look.succeeded_indexes | look.failed_indexes
        if not look.per_index:
            return list(pending_indexes(look.job, look.pods, look.active, done, count))
        start: list[int | None] = []
        completions = dig(look.job, "spec", "completions", default=0)
        soonest: float | None = None
        for index in pending_indexes(look.job, look.pods, look.active, done, completions):
            failed = look.waiting_by_index.get(index)
            wait = index_wait(failed, look.job, self.clock.now) if failed is not None else 0.0
            if wait <= 0 and len(start) < count:
                start.append(index)
            elif wait > 0:
                soonest = wait if soonest is None else min(soonest, wait)
        if soonest is not None and len(start) < count:
            self.enqueue(key_of(look.job), soonest)
        return start

    def _delete_pods(self, job: Obj, pods: list[Obj]) -> None:
        for pod in pods:
            self.client.delete("pods", pod)
            self.recorder.event(job, "Normal", "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")

    # Writing down what happened

    def _settle(self, look: _Round) -> None:
        """Record ended pods, set the interim condition, remove finalizers, move the records into the totals, finish."""
        job, status = look.job, look.status
        # The pods may have changed since they were looked at: some were just deleted.
        look.pods = [self.client.get("pods", namespace_of(pod), name_of(pod)) or pod for pod in look.pods]
        status["active"] = len(look.active)
        status["ready"] = sum(1 for pod in look.active if condition_is(pod, "Ready"))
        status["terminating"] = sum(1 for pod in look.pods if _lingers(pod) and self._exists(pod))
        release = self._note_ended(look)
        if look.verdict is not None and not any(c["type"] == look.verdict["type"] for c in self._conditions(status)):
            status["conditions"] = [*self._conditions(status), look.verdict]
        if release and not self._write(job, status):
            return
        for pod in release:
            self._drop_finalizer(pod)
        self._move_notes(look)
        finished = look.verdict is not None and self._finish(look)
        if self._write(job, status) and finished and look.verdict is not None:
            self._announce(look)

    def _exists(self, pod: Obj) -> bool:
        found = self.client.get("pods", namespace_of(pod), name_of(pod))
        return found is not None and uid_of(found) == uid_of(pod)

    @staticmethod
    def _conditions(status: Obj) -> list[Obj]:
        return list(status.get("conditions") or ())

    def _note_ended(self, look: _Round) -> list[Obj]:
        """Write the UIDs of ended pods into the status; which finalizers can go then."""
        job, status = look.job, look.status
        notes = {kind: list(uids) for kind, uids in status["uncountedTerminatedPods"].items() if uids}
        delayed = {uid_of(pod) for pod in look.waiting_by_index.values()}
        over = look.verdict is not None
        failing = look.verdict is not None and look.verdict["type"] == _FAILURE
        release: list[Obj] = []
        for pod in look.pods:
            failed = has_failed(pod, job)
            may_go = is_terminating(job) or over or has_succeeded(pod) or (failed and uid_of(pod) not in delayed)
            if not is_tracked(pod) or not may_go:
                continue
            release.append(pod)
            if has_succeeded(pod):
                if not is_indexed(job):
                    _note(notes, "succeeded", pod)
            elif (
                (failed or failing) and self._is_blamed(job, pod) and (not is_indexed(job) or is_valid_index(pod, job))
            ):
                _note(notes, "failed", pod)
        status["uncountedTerminatedPods"] = notes
        if is_indexed(job):
            status["completedIndexes"] = format_indexes(look.succeeded_indexes)
            status["succeeded"] = len(look.succeeded_indexes)
            if look.per_index:
                status["failedIndexes"] = format_indexes(look.failed_indexes)
        return release

    @staticmethod
    def _move_notes(look: _Round) -> None:
        notes = look.status["uncountedTerminatedPods"]
        for kind in ("succeeded", "failed"):
            look.status[kind] = look.status.get(kind, 0) + len(notes.get(kind) or ())
        look.status["uncountedTerminatedPods"] = {}

    def _finish(self, look: _Round) -> bool:
        """Set the final condition, unless pods are still terminating."""
        verdict, status = look.verdict, look.status
        assert verdict is not None
        status["terminating"] = sum(1 for pod in look.pods if _lingers(pod) and self._exists(pod))
        if status["terminating"]:
            return False
        final = self._condition(_FINAL[verdict["type"]], verdict["reason"], verdict["message"])
        status["conditions"] = [*self._conditions(status), final]
        if verdict["type"] == _SUCCESS:
            status["completionTime"] = final["lastTransitionTime"]
        return True

    def _announce(self, look: _Round) -> None:
        verdict = look.verdict
        assert verdict is not None
        if verdict["type"] == _FAILURE:
            self.recorder.event(look.job, "Warning", verdict["reason"], verdict["message"])
            return
        completions = dig(look.job, "spec", "completions")
        if completions is not None and look.status.get("succeeded", 0) > completions:
            text = "Too many succeeded pods running after completion count reached"
            self.recorder.event(look.job, "Warning", "TooManySucceededPods", text)
        self.recorder.event(look.job, "Normal", "Completed", "Job completed")

    def _write(self, job: Obj, status: Obj) -> bool:
        """Store the status if it changed; False if the job was deleted."""
        kept = {key: value for key, value in status.items() if value or key in _SHOWN_WHEN_ZERO}
        if kept == (job.get("status") or {}):
            return True
        return self.client.set_status(JOBS, job, copy_of(kept)) is not None

    def _drop_finalizer(self, pod: Obj) -> None:
        def change(current: Obj) -> None:
            current["metadata"]["finalizers"] = [f for f in meta(current).get("finalizers") or () if f != TRACKING]

        found = self.client.get("pods", namespace_of(pod), name_of(pod))
        if found is not None and uid_of(found) == uid_of(pod):
            self.client.modify("pods", namespace_of(pod), name_of(pod), change)


_SHOWN_WHEN_ZERO = frozenset({"ready", "terminating", "uncountedTerminatedPods"})


def _lingers(pod: Obj) -> bool:
    """Whether the pod is on its way out but has not ended."""
    return is_terminating(pod) and dig(pod, "status", "phase") not in ("Succeeded", "Failed")


def _note(notes: dict[str, list[str]], kind: str, pod: Obj) -> None:
    uids = notes.setdefault(kind, [])
    if uid_of(pod) not in uids:
        uids.append(uid_of(pod))
