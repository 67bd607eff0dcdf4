"""What holds now still holds after what it rests upon was started anew.

Why it cannot be gamed: a setting changed in a running process, or in a copy that dies with its pod, is gone then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from srearena.conductor.oracles.checks.base import Check
from srearena.conductor.oracles.checks.fresh_pods import FreshPods

if TYPE_CHECKING:
    from srearena.conductor.problems.base import Problem


class Lasting(Check):
    """`checks` are content again once the pods of `workload` have been replaced."""

    name = "lasting"
    disruptive = True

    def __init__(self, workload: str, checks: Sequence[Check]) -> None:
        self._workload = workload
        self._checks = checks

    def complaints(self, problem: Problem) -> list[str]:
        found = FreshPods((self._workload,)).complaints(problem)
        for check in self._checks if not found else ():
            lines = check.complaints(problem)
            found += [f"after a fresh start of {self._workload}: {check.name}: {line}" for line in lines]
        return found
