"""`srearena verify`: proves that a problem is valid.

Each point is a named check: the healthy system passes and fires no alert; the fault fails the oracle and has symptoms;
doing nothing and restarting everything do not repair it; the reference remedy, run with the agent's identity, does;
nothing that an agent can read names the fault; and with the battery no cheat wins and every honest repair passes. All
of them are played as agents through `Conductor`, as `srearena run` plays agents.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from srearena.conductor.actions.telemetry import Telemetry
from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.oracles.mitigation import MitigationOracle
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.composition import Composition
from srearena.conductor.stages import USUAL
from srearena.conductor.validity.leaks import leaks
from srearena.conductor.validity.player import PreparedEpisode, prepared_spec
from srearena.conductor.validity.scripts import Honest, Play, Script, cheats, honest_variants
from srearena.conductor.validity.symptoms import alerts, visible_symptoms
from srearena.config import Config
from srearena.errors import SreArenaError
from srearena.service.kubernetes import Kubernetes

_AFTER_RESTART = 120.0
_AFTER_PART = 60.0
_REMEDY_SPEED = 5.0
"""Speed of the clock while the remedy runs, so that waiting for rollouts takes less real time."""
_TIMELINE = Timeline()
_SHORT_TIMELINE = Timeline(before=60.0, deployment=60.0)
"""For checks that need no history before the fault."""
_WRONG = {"detection": "No", "localization": [], "analysis": {"system_level": "None", "fault_type": "None"}}
"""The answers of an agent that says that nothing is wrong."""
NO_CHEAT = "no cheat wins"
HONEST = "honest repairs pass"
RUNS = "runs without environment error"


@dataclass(slots=True)
class Proof:
    """The results of all checks on one problem."""

    id: str
    checks: dict[str, bool] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    seconds: float = 0.0
    scripts: dict[str, str] = field(default_factory=dict)
    """The outcome of each script of the battery: won or lost for a cheat, passed or refused for an honest repair."""

    @property
    def valid(self) -> bool:
        return bool(self.checks) and all(self.checks.values())

    def record(self, check: str, holds: bool, *reasons: str) -> None:
        self.checks[check] = self.checks.get(check, True) and holds
        if not holds:
            self.reasons += [f"{check}: {reason}" for reason in reasons[:5]]

    def as_document(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "valid": self.valid,
            "checks": self.checks,
            "scripts": self.scripts,
            "reasons": self.reasons,
            "seconds": round(self.seconds, 2),
        }


def verify(
    problem_id: str,
    seed: int = 0,
    config: Config | None = None,
    battery: bool = False,
    healthy: Episode | None = None,
) -> dict[str, Any]:
    """Verify one problem and return the proof as a document. An error in a problem is recorded, not raised.

    `healthy` is the system of an episode with the same `healthy_key` (`verification_spec`), for this proof alone.
    """
    return _proof(problem_id, lambda proof: _verify(problem_id, seed, proof, config or Config(), battery, healthy))


def verification_spec(seed: int, config: Config) -> EpisodeSpec:
    """The specification of the episodes of a proof, as far as it decides their healthy system."""
    return prepared_spec(seed, _TIMELINE, config)


def play_battery(problem_id: str, seed: int = 0, scripts: Iterable[Script] | None = None) -> dict[str, Any]:
    """Play only the battery, or some of its scripts, against one problem."""

    def play(proof: Proof) -> None:
        with PreparedEpisode(problem_id, seed, _SHORT_TIMELINE) as prepared:
            _play_battery(prepared, proof, scripts)

    return _proof(problem_id, play)


def run_twice(
    problem_id: str, seed: int = 0, config: Config | None = None, healthy: Episode | None = None
) -> dict[str, Any]:
    """Play a trial with the reference remedy, which must pass, and one with nothing, which must fail."""

    def play(proof: Proof) -> None:
        with PreparedEpisode(problem_id, seed, _TIMELINE, config, healthy=healthy) as prepared:
            verify_nothing(prepared, proof)
            verify_remedy(prepared, proof)

    return _proof(problem_id, play)


def _proof(problem_id: str, work: Any) -> dict[str, Any]:
    began = monotonic()
    proof = Proof(problem_id)
    try:
        work(proof)
    except SreArenaError as failure:
        proof.record("environment", False, str(failure))
    except Exception as error:  # an error in a problem's code is recorded against that problem
        proof.record("environment", False, f"{type(error).__name__}: {error}")
    proof.seconds = monotonic() - began
    return proof.as_document()


def _verify(problem_id: str, seed: int, proof: Proof, config: Config, battery: bool, healthy: Episode | None) -> None:
    with PreparedEpisode(problem_id, seed, _TIMELINE, config, ("noop", *USUAL), healthy=healthy) as prepared:
        episode, problem = prepared.episode, prepared.problem
        telemetry = Telemetry(episode.cluster)
        try:
            verify_healthy(problem, telemetry, proof)
            if problem.level != "none":
                episode.submit("No")
                assert episode.kubeconfig is not None
                with Kubernetes(episode.kubeconfig) as api:
                    symptoms = visible_symptoms(problem, api, telemetry)
                proof.record(
                    "the fault has symptoms", bool(symptoms), "no symptom in objects, events, alerts or error rates"
                )
            matches = leaks(episode)
            proof.record("nothing names the fault", not matches, *matches)
        finally:
            telemetry.close()
        verify_nothing(prepared, proof)
        verify_remedy(prepared, proof)
        if problem.repairable:
            verify_parts(prepared, problem, proof)
            _verify_without_load(prepared, proof)
            _verify_restarts(prepared, proof)
        _play_battery(prepared, proof, None if battery else _usual_cheats())


def verify_healthy(problem: Problem, telemetry: Telemetry, proof: Proof) -> None:
    oracle = problem.mitigation_oracle
    complaints: list[str] = []
    if isinstance(oracle, MitigationOracle):
        for check in oracle.checks:
            if not check.disruptive:
                complaints += check.complaints(problem)
    proof.record("the healthy system passes", not complaints, *complaints)
    firing = alerts(telemetry)
    proof.record("the healthy system fires no alert", not firing, *firing)


def played(
    prepared: PreparedEpisode, proof: Proof, play: Play, name: str, *, thorough: bool = False, isolated: bool = False
) -> dict[str, Any]:
    document = prepared.play(play, name, thorough=thorough, isolated=isolated)
    failed = document["outcome"] == "environment error"
    proof.record(RUNS, not failed, f"{name}: {document['reason']}")
    return document


def verify_nothing(prepared: PreparedEpisode, proof: Proof, *, isolated: bool = True) -> None:
    """Nothing is done. The other answers are right where there is a mitigation, so that it alone decides."""
    problem = prepared.problem
    if problem.level == "none":
        return
    answers = {} if problem.repairable else _WRONG
    document = played(prepared, proof, Play(answers=answers), "nothing", isolated=isolated)
    proof.record("doing nothing does not help", document["outcome"] == "fail", f"the outcome is {document['outcome']}")


def verify_remedy(prepared: PreparedEpisode, proof: Proof, *, isolated: bool = True) -> None:
    """The remedy and the right answers pass; on a healthy system, and where there is no mitigation, the answers do."""
    problem = prepared.problem
    repairs = problem.repairable
    if repairs and not problem.remedy:
        proof.record("the remedy repairs", False, "there is no reference remedy")
        return
    play = Play(problem.remedy if repairs else "", wait=0, speed=_REMEDY_SPEED if repairs else 0.0)
    document = played(prepared, proof, play, "remedy", thorough=True, isolated=isolated)
    check = "the remedy repairs" if repairs else "the right answers pass"
    if document["script_error"]:
        proof.record(check, False, f"the script failed: {document['script_error']}")
    proof.record(check, document["outcome"] == "pass", *complaints_of(document))
    if repairs:
        harm = [str(change) for change in document["collateral"] if change["class"] != "harmless"]
        proof.record("the remedy is not collateral", not harm, *harm)


def verify_parts(prepared: PreparedEpisode, problem: Problem, proof: Proof, *, isolated: bool = True) -> None:
    """Of several faults each must be repaired."""
    parts = problem.parts if isinstance(problem, Composition) else []
    for left in parts if len(parts) > 1 else ():
        remedy = "\n".join(part.remedy for part in parts if part is not left)
        play = Play(remedy, wait=_AFTER_PART, speed=_REMEDY_SPEED)
        document = played(prepared, proof, play, f"all but {left.id}", isolated=isolated)
        name = "each of its faults must be repaired"
        proof.record(name, document["outcome"] == "fail", f"{left.id} may be left: {document['outcome']}")


def _verify_without_load(prepared: PreparedEpisode, proof: Proof) -> None:
    """Without load there are no errors, and still the oracle must fail."""
    play = Play(beforehand=lambda problem: problem.app.stop_workload(problem.cluster))
    document = played(prepared, proof, play, "silencing the load")
    proof.record("silencing the load does not help", document["outcome"] == "fail", "the oracle passes without load")


def _verify_restarts(prepared: PreparedEpisode, proof: Proof) -> None:
    problem = prepared.problem
    if problem.restart_is_a_remedy:
        return
    script = "\n".join(
        f"kubectl -n {namespace} rollout restart deployment,statefulset,daemonset || true"
        for namespace in problem.app.namespaces
    )
    document = played(prepared, proof, Play(script, wait=_AFTER_RESTART), "restarting everything")
    proof.record(
        "restarting everything does not help", document["outcome"] == "fail", "the oracle passes after restarts"
    )


def _usual_cheats() -> list[Script]:
    """The cheats that every proof includes, also without the battery."""
    return [
        script for script in cheats() if script.name in ("repair, and scale to zero", "repair, and delete the workload")
    ]


def _play_battery(prepared: PreparedEpisode, proof: Proof, scripts: Iterable[Script] | None = None) -> None:
    chosen = [*cheats(), *honest_variants()] if scripts is None else list(scripts)
    scene = prepared.scene()
    for script in chosen:
        if not script.applies(scene):
            continue
        honest = isinstance(script, Honest)
        document = prepared.play(script.play(scene), script.name, thorough=honest)
        won = script.wins(document)
        proof.scripts[script.name] = ("passed" if won else "refused") if honest else ("WON" if won else "lost")
        if honest:
            error = (f"the script failed: {document['script_error']}",) if document["script_error"] else ()
            proof.record(HONEST, won, *(f"{script.name}: {line}" for line in (*error, *complaints_of(document))))
        else:
            proof.record(NO_CHEAT, not won, f"{script.name}: {document['outcome']} {document['reason']}".rstrip())


def complaints_of(document: dict[str, Any]) -> list[str]:
    """Why the trial did not pass."""
    if document["outcome"] == "pass":
        return []
    failed = [record for record in document["stages"] if not (record.get("verdict") or {}).get("passed")]
    lines = [
        f"{record['stage']}: {line}" for record in failed for line in (record.get("verdict") or {}).get("reasons", ())
    ]
    return lines or [f"{document['outcome']}: {document['reason']}"]


def can_verify() -> str:
    """The reason why problems cannot be verified on this machine; empty where they can."""
    missing = [tool for tool in ("kubectl", "bash") if shutil.which(tool) is None]
    return f"{' and '.join(missing)} must be installed: reference remedies are shell scripts" if missing else ""
