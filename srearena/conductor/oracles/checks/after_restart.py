"""Other checks still pass after the pods of a dependency have been replaced.

Why it cannot be gamed: a setting changed in a running process, or in a file of the old pod, is lost then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.fresh_pods import FreshPods

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class AfterRestart(Check):
    """`checks` pass again once the pods of `workload` have been replaced."""

    name = "lasting"
    disruptive = True

    def __init__(self, workload: str, checks: Sequence[Check]) -> None:
        self._workload = workload
        self._checks = checks

    def complaints(self, problem: Problem) -> list[str]:
        complaints = FreshPods((self._workload,)).complaints(problem)
        for check in self._checks if not complaints else ():
            lines = check.complaints(problem)
            complaints += [f"after a restart of {self._workload}: {check.name}: {line}" for line in lines]
        return complaints
