"""Combined problems, `a+b`: all faults at once; the right answers are the union of the parts' answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from srearena.cluster import Cluster
from srearena.conductor.errors import ProblemError
from srearena.conductor.oracles.base import Oracle, Verdict
from srearena.conductor.oracles.checks import Check
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.oracles.mitigation import MitigationOracle, usual_checks
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import Difficulty, Entity, Level, Origin
from srearena.utils.decorators import mark_fault_injected

_SHARED = ("baseline", "handed_over", "known_objects", "injected_at")
"""What the conductor sets: one system for all parts."""


class _OfPart(Check):
    """A check of one part: it asks what only that part declares.

    Why it cannot be gamed: it is that check, unchanged.
    """

    def __init__(self, check: Check, part: Problem) -> None:
        self.name, self.disruptive, self.policy = check.name, check.disruptive, check.policy
        self._check = check
        self._part = part

    def record_baseline(self, problem: Problem) -> Any:
        return self._check.record_baseline(self._part)

    def complaints(self, problem: Problem) -> list[str]:
        return self._check.complaints(self._part)


def _merged(parts: Sequence[Problem]) -> list[Check]:
    """The checks of all parts. The usual ones look at the whole system, so they run once."""
    merged = usual_checks()
    usual = {type(check): vars(check) for check in merged}
    for part in parts:
        oracle = part.oracle_for("mitigation")
        if not isinstance(oracle, MitigationOracle):
            raise ProblemError(f"{part.id} cannot be combined: its mitigation is not graded by checks")
        merged += [_OfPart(check, part) for check in oracle.checks if usual.get(type(check)) != vars(check)]
    return merged


class _Any(Oracle):
    """The best verdict of the oracles of the parts: each of them names a fault of the system."""

    def __init__(self, problem: Problem, oracles: Sequence[Oracle]) -> None:
        super().__init__(problem)
        self._oracles = oracles

    def evaluate(self, submission: Any) -> Verdict:
        verdicts = [Verdict.from_answer(oracle.evaluate(submission)) for oracle in self._oracles]
        return max(verdicts, key=lambda verdict: verdict.score)


class Composition(Problem):
    family = "composition"
    level: Level = "correlated"
    difficulty: Difficulty = "hard"

    def __init__(self, parts: Sequence[Problem]) -> None:
        namespaces = {part.namespace for part in parts}
        if len(namespaces) > 1:
            raise ProblemError(
                f"{' and '.join(part.id for part in parts)} cannot be combined: they are on different applications"
            )
        self.parts = list(parts)
        self.id = "+".join(part.id for part in parts)
        self.app = parts[0].app
        self.faulty_service = [name for part in parts for name in part.faulty_services]
        self.repairable = all(part.repairable for part in parts)
        self.data_is_lost = any(part.data_is_lost for part in parts)
        self.undone_by_recovery = any(part.undone_by_recovery for part in parts)
        self.extra_namespaces = tuple(dict.fromkeys(name for part in parts for name in part.extra_namespaces))
        self.load = {key: value for part in parts for key, value in part.load.items()}
        self.runs_on = tuple(backend for backend in parts[0].runs_on if all(backend in part.runs_on for part in parts))
        self.explanation = " ".join(part.explanation for part in parts)
        self.remedy = "\n".join(part.remedy for part in parts)
        self.affects_new_pods = any(part.affects_new_pods for part in parts)
        self.restart_is_a_remedy = all(part.restart_is_a_remedy for part in parts)
        self.localization_oracle = LocalizationOracle(self)
        self.mitigation_oracle = MitigationOracle(self, checks=_merged(parts))

    def attach(self, cluster: Cluster) -> None:
        super().attach(cluster)
        for part in self.parts:
            part.attach(cluster)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _SHARED:
            for part in self.parts:
                setattr(part, name, value)

    @property
    def analysis_oracle(self) -> Oracle:
        return _Any(self, [part.oracle_for("analysis") for part in self.parts])

    @property
    def origins(self) -> Sequence[Origin]:
        return tuple(origin for part in self.parts for origin in part.origins)

    @property
    def propagation(self) -> Sequence[tuple[Entity, Entity]]:
        return tuple(step for part in self.parts for step in part.propagation)

    @property
    def affected_components(self) -> frozenset[str]:
        return frozenset(name for part in self.parts for name in part.affected_components)

    @property
    def changed_objects(self) -> frozenset[str]:
        return frozenset(name for part in self.parts for name in part.changed_objects)

    @property
    def edited_workloads(self) -> tuple[str, ...]:
        return tuple(name for part in self.parts for name in part.edited_workloads)

    def set_up(self) -> None:
        for part in self.parts:
            part.set_up()

    @property
    def needs_set_up(self) -> bool:
        return any(part.needs_set_up for part in self.parts)

    @mark_fault_injected
    def inject_fault(self) -> None:
        for part in self.parts:
            part.inject_fault()

    @mark_fault_injected
    def recover_fault(self) -> None:
        for part in reversed(self.parts):
            part.recover_fault()
