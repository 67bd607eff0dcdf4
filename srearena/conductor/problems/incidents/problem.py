"""`IncidentProblem`: the problem that an incident's document describes: one or several faults, each with its arrival.

The answer is the union of what the faults' own problems ask for. A fault that has ended by itself before the agent
starts is none: it has left marks in the telemetry and nothing to repair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from srearena.cluster import Cluster
from srearena.conductor.errors import ProblemError
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.composition import Composition
from srearena.conductor.problems.incidents.document import FaultPart, Incident
from srearena.utils.decorators import mark_fault_injected

Make = Callable[[str, Mapping[str, Any]], Problem]
"""Makes the problem of an id with other arguments of its constructor."""


class IncidentProblem(Composition):
    family = "incident"

    def __init__(self, incident: Incident, make: Make) -> None:
        self._arrivals = [(part, _problem_of_part(part, make)) for part in incident.faults]
        lasting = [problem for part, problem in self._arrivals if not part.is_gone]
        super().__init__(lasting)
        if any(problem.app.namespace != self.app.namespace for _, problem in self._arrivals):
            raise ProblemError("the faults are on different applications")
        if len(lasting) == 1:
            self.level, self.difficulty = lasting[0].level, lasting[0].difficulty
            self.fault_type = lasting[0].fault_type
            self.system_level = lasting[0].system_level
        if incident.difficulty:
            self.difficulty = incident.difficulty
        self.id = incident.id
        self.post_mortem = incident.inspiration
        self.load = {**self.load, **incident.load}
        self.pins = {
            key: value for key, value in {"seed": incident.seed, "noise": incident.noise}.items() if value is not None
        }
        self.arrival_seconds = sum(part.seconds for part in incident.faults)

    @property
    def arriving(self) -> list[Problem]:
        """The problems of all faults, of those that end by themselves too."""
        return [problem for _, problem in self._arrivals]

    def attach(self, cluster: Cluster) -> None:
        super().attach(cluster)
        for problem in self.arriving:
            problem.attach(cluster)

    def set_up(self) -> None:
        for problem in self.arriving:
            problem.set_up()

    @property
    def needs_set_up(self) -> bool:
        return any(problem.needs_set_up for problem in self.arriving)

    @property
    def affected_components(self) -> frozenset[str]:
        return frozenset(name for problem in self.arriving for name in problem.affected_components)

    @mark_fault_injected
    def inject_fault(self) -> None:
        for part, problem in self._arrivals:
            self.cluster.wait(part.after)
            problem.inject_fault()
            if part.lasts is not None:
                self.cluster.wait(part.lasts)
                problem.recover_fault()
            if part.pause is not None:
                self.cluster.wait(part.pause)
                problem.inject_fault()


def _problem_of_part(part: FaultPart, make: Make) -> Problem:
    try:
        problem = make(part.problem, part.arguments)
    except TypeError as error:
        raise ProblemError(f"{part.problem} does not take these arguments: {error}") from error
    if problem.level == "none":
        raise ProblemError(f"{part.problem} has no fault")
    return problem
