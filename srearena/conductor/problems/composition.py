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
from srearena.conductor.problems.metadata import Entity, Origin
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
        for oracle in self._oracles:
            if isinstance(oracle, MitigationOracle):
                oracle.on_working = self.on_working
        verdicts = [Verdict.from_answer(oracle.evaluate(submission)) for oracle in self._oracles]
        passed = all(verdict.passed for verdict in verdicts)
        reasons = tuple(dict.fromkeys(reason for v in verdicts if passed or not v.passed for reason in v.reasons))
        return Verdict(passed, sum(verdict.score for verdict in verdicts) / len(verdicts), reasons)


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
        self.repairable = all(part.repairable for part in parts)
        self.runs_on = tuple(backend for backend in parts[0].runs_on if all(backend in part.runs_on for part in parts))
        self.explanation = " ".join(part.explanation for part in parts)
        self.remedy = "\n".join(part.remedy for part in parts)
        self.affects_new_pods = any(part.affects_new_pods for part in parts)
        self.restart_is_a_remedy = all(part.restart_is_a_remedy for part in parts)
        self.localization_oracle = LocalizationOracle(self)
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

    @mark_fault_injected
    def inject_fault(self) -> None:
        for part in self.parts:
            part.inject_fault()

    @mark_fault_injected
    def recover_fault(self) -> None:
        for part in reversed(self.parts):
            part.recover_fault()
