"""Mitigation: does the system work again? Decided by behaviour, never by the absence of one bad value.

The oracle is a list of checks. Each says in its module why it cannot be gamed; together: the application is still the
application (intent), it is up and stays up (readiness), its parts and its users reach it (reachability, front door),
and it survives a fresh start (fresh pods). Checks that disturb the system run last, and only if the rest is content.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from srearena.conductor.oracles.base import Oracle, Verdict
from srearena.conductor.oracles.checks import Check, FreshPods, FrontDoor, Intent, Reachability, Readiness

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


def usual_checks() -> list[Check]:
    return [Intent(), Readiness(), Reachability(), FrontDoor(), FreshPods()]


class MitigationOracle(Oracle):
    """The usual checks, more of them (`also`), or other ones (`checks`)."""

    def __init__(self, problem: Problem, checks: Sequence[Check] | None = None, also: Iterable[Check] = ()) -> None:
        super().__init__(problem)
        chosen = [*(usual_checks() if checks is None else checks), *also]
        self.checks = sorted(chosen, key=lambda check: check.disruptive)

    def record_baseline(self) -> dict[str, Any]:
        """What the checks want to know of the healthy system."""
        return {check.name: check.record_baseline(self.problem) for check in self.checks}

    def first_complaint(self) -> str:
        """What the first check that is not content says; empty where all are. Cheaper than all they have to say."""
        for check in self.checks:
            for line in check.complaints(self.problem):
                return f"{check.name}: {line}"
        return ""

    def evaluate(self, submission: Any) -> Verdict:
        reasons: list[str] = []
        content: dict[str, bool] = {}
        for check in self.checks:
            if check.disruptive and reasons:
                break
            found = check.complaints(self.problem)
            content[check.name] = not found
            reasons += [f"{check.name}: {line}" for line in found]
        passed = not reasons
        score = 1.0 if passed else sum(content.values()) / len(self.checks)
        return Verdict(passed, score, tuple(reasons) or ("everything works again",), {"checks": content})
