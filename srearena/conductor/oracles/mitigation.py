"""Mitigation: whether the system works again, decided by behaviour, never by the absence of one bad value.

The oracle is a list of checks. Each module says why its check cannot be gamed. Together: the application is unchanged
in its intent, it is ready and stays so, its components and users reach it (backends, reachability, frontend), and it
survives new pods. Checks that disrupt the system run last, and only if all others pass.

A check that the cluster refuses something, or that waits in vain, has found a fault of the system: on the healthy one
the same requests were made. A quota, a finalizer or an object with the name of one of the grader's would otherwise
turn a lost trial into a failure of the environment, which does not count.

They start when the pods that the agent deleted are gone: until then these still serve, hold connections and volumes,
and an agent that submits as soon as its commands return would be judged by them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from srearena.conductor.oracles.base import Oracle, Verdict
from srearena.conductor.oracles.checks import (
    Admission,
    Backends,
    Check,
    DeclaredProbes,
    FreshPods,
    FrontendAvailability,
    Intent,
    Journeys,
    Leftovers,
    Platform,
    Processes,
    Reachability,
    Readiness,
    Spans,
    StoredData,
)
from srearena.conductor.oracles.checks.leftovers import end_slow_deletions
from srearena.service.errors import ApiRefused, TimedOut

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem

_DELETION_SECONDS = 60.0
"""The longest wait for pods that are being deleted: twice the usual grace period. Finalizers may hold them for ever."""
_DELETION_STEP = 5.0
_SERVER_ERROR = 500
"""HTTP statuses from here on are failures of the API server itself, which no agent brings about."""


def usual_checks(readiness: Readiness | None = None) -> list[Check]:
    return [
        Admission(),
        Leftovers(),
        Intent(),
        Processes(),
        readiness or Readiness(),
        DeclaredProbes(),
        Platform(),
        Backends(),
        Reachability(),
        StoredData(),
        FrontendAvailability(),
        Journeys(),
        Spans(),
        FreshPods(),
    ]


class MitigationOracle(Oracle):
    """The usual checks, more of them (`also`), or other ones (`checks`)."""

    def __init__(self, problem: Problem, checks: Sequence[Check] | None = None, also: Iterable[Check] = ()) -> None:
        super().__init__(problem)
        selected = [*(usual_checks() if checks is None else checks), *also]
        self.checks = sorted(selected, key=lambda check: check.disruptive)
        self.on_working: Callable[[], None] = lambda: None
        """Called when the system is found to work, before the checks that disrupt it."""

    def record_baseline(self, except_for: Collection[str] = ()) -> dict[str, Any]:
        """Record what the checks compare with later, on the healthy system; not for checks that have done so."""
        checks = [check for check in self.checks if check.name not in except_for]
        return {check.name: check.record_baseline(self.problem) for check in checks}

    def first_complaint(self) -> str:
        """The first complaint of any check; empty where all checks pass. Cheaper than `evaluate`."""
        self._await_deletions()
        for check in self.checks:
            for line in self._complaints(check):
                return f"{check.name}: {line}"
        return ""

    def _complaints(self, check: Check) -> list[str]:
        """What a check complains about; what stands in its way is a complaint too, not a failure of grading."""
        try:
            return check.complaints(self.problem)
        except ApiRefused as refused:
            if refused.code >= _SERVER_ERROR:
                raise
            return [str(refused)]
        except TimedOut as late:
            return [str(late)]

    def _await_deletions(self) -> None:
        """Wait until no pod is being deleted; at least one step, in which the garbage collector marks those of a
        controller that is gone. What would work on meanwhile is ended."""
        for _ in range(int(_DELETION_SECONDS / _DELETION_STEP)):
            end_slow_deletions(self.problem)
            self.problem.cluster.wait(_DELETION_STEP)
            if not any(pod["metadata"].get("deletionTimestamp") for pod in self.problem.kubernetes.list("pods")):
                return

    def evaluate(self, submission: Any) -> Verdict:
        self._await_deletions()
        reasons: list[str] = []
        passes: dict[str, bool] = {}
        announced = False
        for check in self.checks:
            if check.disruptive and reasons:
                break
            if check.disruptive and not announced:
                announced = True
                self.on_working()
            complaints = self._complaints(check)
            passes[check.name] = not complaints
            reasons += [f"{check.name}: {line}" for line in complaints]
        passed = not reasons
        if passed and not announced:
            self.on_working()
        score = 1.0 if passed else sum(passes.values()) / len(self.checks)
        return Verdict(passed, score, tuple(reasons) or ("everything works again",), {"checks": passes})
