"""Combined problems, `a+b`: all faults at once; the right answers are the union of the parts' answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from srearena.cluster import Cluster
from srearena.conductor.errors import ProblemError
from srearena.conductor.oracles.base import Oracle, Verdict
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.metadata import Entity
from srearena.conductor.stages import in_order
from srearena.utils.decorators import mark_fault_injected


class _All(MitigationOracle):
    """Passes when the oracles of all parts pass."""

    def __init__(self, problem: Problem, oracles: Sequence[Oracle]) -> None:
        super().__init__(problem, checks=())
        self._oracles = oracles

    def record_baseline(self) -> dict[str, Any]:
        facts: dict[str, Any] = {}
        for oracle in self._oracles:
            if isinstance(oracle, MitigationOracle):
                facts.update(oracle.record_baseline())
        return facts

    def evaluate(self, submission: Any) -> Verdict:
        verdicts = [Verdict.from_answer(oracle.evaluate(submission)) for oracle in self._oracles]
        passed = all(verdict.passed for verdict in verdicts)
        reasons = tuple(dict.fromkeys(reason for v in verdicts if passed or not v.passed for reason in v.reasons))
        return Verdict(passed, sum(verdict.score for verdict in verdicts) / len(verdicts), reasons)


class Composition(Problem):
    family = "composition"
    level = "correlated"
    difficulty = "hard"

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
        offered = set.intersection(*(set(part.stages) for part in parts)) - {"analysis"}
        self.stages = in_order(offered)
        self.runs_on = tuple(backend for backend in parts[0].runs_on if all(backend in part.runs_on for part in parts))
        self.explanation = " ".join(part.explanation for part in parts)
        self.remedy = "\n".join(part.remedy for part in parts)
        self.restart_is_a_remedy = all(part.restart_is_a_remedy for part in parts)
        self.localization_oracle = LocalizationOracle(self, list(self.faulty_service))
        self.mitigation_oracle = _All(self, [part.oracle_for("mitigation") for part in parts])

    def attach(self, cluster: Cluster) -> None:
        super().attach(cluster)
        for part in self.parts:
            part.attach(cluster)

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "baseline":  # one healthy system for all parts
            for part in self.parts:
                part.baseline = value

    @property
    def roots(self) -> Sequence[Entity]:
        return tuple(root for part in self.parts for root in part.roots)

    @property
    def propagation(self) -> Sequence[tuple[Entity, Entity]]:
        return tuple(step for part in self.parts for step in part.propagation)

    def set_up(self) -> None:
        for part in self.parts:
            part.set_up()

    @mark_fault_injected
    def inject_fault(self) -> None:
        for part in self.parts:
            part.inject_fault()

    @mark_fault_injected
    def recover_fault(self) -> None:
        for part in reversed(self.parts):
            part.recover_fault()
