"""`HealthyWorld`: one healthy system on which many candidates are proven, each in a fork of its own.

The proof of a candidate asks what `srearena verify` asks of a problem, and more: that it is *visible* (symptoms,
through what an agent may read), *solvable* (the reference remedy with the right answers passes, doing nothing fails),
*unambiguous* (each name of the key is understood as its origin, and of several faults none may be left) and *not won*
by an agent without a diagnosis. The first check that fails ends the proof, and is why the candidate is discarded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from time import monotonic
from typing import Any

from srearena.closeable import Closeable
from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.agents import make_agent
from srearena.conductor.episode.spec import Timeline
from srearena.conductor.generation.difficulty import difficulty, features
from srearena.conductor.generation.space import World, healthy_problem_of
from srearena.conductor.oracles.localization import LocalizationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.incidents.document import Incident
from srearena.conductor.problems.registry import ProblemRegistry, problem_of
from srearena.conductor.stages import USUAL
from srearena.conductor.validity.leaks import leaks
from srearena.conductor.validity.player import PreparedEpisode
from srearena.conductor.validity.symptoms import visible_symptoms
from srearena.conductor.validity.verification import (
    Proof,
    verify_healthy,
    verify_nothing,
    verify_parts,
    verify_remedy,
)
from srearena.errors import SreArenaError
from srearena.service.kubernetes import Kubernetes

TRIVIAL_AGENTS = ("always-yes", "newest-change", "restart-everything", "undo-everything")
_TIMELINE = Timeline()


class HealthyWorld(Closeable):
    """The system of a world, healthy and under load, in the no-op stage of an episode."""

    def __init__(self, world: World) -> None:
        problem = ProblemRegistry().get_problem(healthy_problem_of(world.application))
        problem.load = {**problem.load, **world.load}
        self._prepared = PreparedEpisode(problem, world.seed, _TIMELINE, stages=("noop", *USUAL), noise=world.noise)
        self.complaints = self._prepared.episode.cluster.in_fork(self._complaints)
        """What is wrong with it before any fault: then no candidate on it is valid."""

    def _complaints(self) -> list[str]:
        proof = Proof("")
        episode = self._prepared.episode
        with closing(Telemetry(episode.cluster)) as telemetry:
            verify_healthy(episode.problem, telemetry, proof)
        return proof.reasons

    def prove(self, incident: Incident) -> dict[str, Any]:
        """The proof as a document, with the incident as it is written to a file where it is valid."""
        began = monotonic()
        proof = Proof(incident.id)
        measured: dict[str, Any] = {}
        if self.complaints:
            proof.record("the system is healthy", False, *self.complaints)
        else:
            self._disconnect()
            proof, measured = self._prepared.episode.cluster.in_fork(lambda: self._proven(incident))
        proof.seconds = monotonic() - began
        if measured:
            incident = replace(incident, features=measured, difficulty=difficulty(measured))
        return {**proof.as_document(), "incident": incident.as_document()}

    def _disconnect(self) -> None:
        problem = self._prepared.problem
        problem.kubernetes.close()
        problem.attach(self._prepared.episode.cluster)

    def _proven(self, incident: Incident) -> tuple[Proof, dict[str, Any]]:
        proof, measured = Proof(incident.id), {}
        try:
            measured = self._prove(incident, proof)
        except SreArenaError as failure:
            proof.record("environment", False, str(failure))
        except Exception as error:  # an error in a problem's code is recorded against the candidate
            proof.record("environment", False, f"{type(error).__name__}: {error}")
        return proof, measured

    def _prove(self, incident: Incident, proof: Proof) -> dict[str, Any]:
        prepared, episode = self._prepared, self._prepared.episode
        problem = problem_of(incident)
        episode.exchange_problem(problem)
        episode.submit("No")
        assert episode.kubeconfig is not None
        with Kubernetes(episode.kubeconfig) as api, closing(Telemetry(episode.cluster)) as telemetry:
            symptoms = visible_symptoms(problem, api, telemetry)
        proof.record("the fault has symptoms", bool(symptoms), "no symptom in objects, events, alerts or error rates")
        misread = _misread(problem)
        proof.record("the key is unambiguous", not misread, *misread)
        measured = features(episode, symptoms)
        checks: tuple[Callable[[], None], ...] = (
            lambda: verify_nothing(prepared, proof, isolated=False),
            lambda: verify_remedy(prepared, proof, isolated=False),
            lambda: verify_parts(prepared, problem, proof, isolated=False),
            lambda: self._verify_trivial_agents(proof),
            lambda: self._verify_leaks(proof),
        )
        for check in checks:
            if not proof.valid:
                break
            check()
        return measured

    def _verify_trivial_agents(self, proof: Proof) -> None:
        for name in TRIVIAL_AGENTS:
            document = self._prepared.run(make_agent(name), name)
            won = document["outcome"] == "pass"
            proof.record("no agent without a diagnosis wins", not won, f"{name} wins")
            proof.record("runs without environment error", document["outcome"] != "environment error", name)

    def _verify_leaks(self, proof: Proof) -> None:
        matches = leaks(self._prepared.episode)
        proof.record("nothing names the fault", not matches, *matches)

    def close(self) -> None:
        self._prepared.close()


def _misread(problem: Problem) -> list[str]:
    """Names of an origin that the key itself does not accept, because something else has them as well."""
    oracle = LocalizationOracle(problem)
    return [
        f"{name} is a right answer, and is misread"
        for origin in problem.origins
        for entity in origin.members
        for name in (entity.name, str(entity))
        if oracle.compare([name]).details["precision"] < 1
    ]
