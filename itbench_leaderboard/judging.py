"""Grade an ended run (`judge_output.json`): diagnoses by the judge, live problems by the episode's own oracles.

Every run has a `score` from 0 to 1, so that both kinds fit in one table: for a recording the judge's headline metric
(root_cause_entity_f1), for a live problem the mean over its stages. A run without an answer scores 0 in everything.
Only a run with an environment error has no scores, and is counted as such.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from itbench_evaluations import results
from itbench_evaluations.agent import EvaluationRequest, grade_trial
from itbench_evaluations.criteria import CRITERIA, HEADLINE
from itbench_evaluations.grading import Options, TruthView
from itbench_evaluations.judge.settings import JudgeSettings
from itbench_evaluations.loader import Trial
from itbench_leaderboard.config import AgentTable, JudgeTable
from itbench_leaderboard.errors import ConfigurationError
from itbench_leaderboard.files import read_json
from itbench_leaderboard.incidents import Incident
from itbench_leaderboard.outcomes import Outcome
from itbench_leaderboard.runner import Run
from zero.errors import RequestError
from zero.providers import choose

SCHEMA = "leaderboard-judge-v1"
SCORE = "score"
_PROVIDERS = {"litellm_proxy": "litellm"}


def judge_settings(table: JudgeTable, environment: Mapping[str, str] | None = None) -> JudgeSettings | None:
    """Settings of the judge in `[judge]`, with its key from the environment; None for the lexical baseline."""
    if not table.model:
        return None
    variables = dict(os.environ if environment is None else environment)
    try:
        provider = choose(
            _PROVIDERS.get(table.provider, table.provider),
            variables,
            base_url=table.base_url,
            key_variable=table.api_key_env,
        )
    except RequestError as problem:
        raise ConfigurationError(f"[judge]: {problem}") from problem
    return JudgeSettings(
        provider.base_url,
        variables.get(provider.key_variable, ""),
        (table.model,),
        votes=table.votes,
        max_concurrent=table.max_concurrent,
        price_input=table.price_input,
        price_output=table.price_output,
    )


@dataclass(slots=True)
class Judge:
    """Grades runs."""

    settings: JudgeSettings | None = None
    k: int = 3
    cache_dir: Path | None = None
    provider: str = ""
    _views: dict[str, TruthView] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return self.settings.models[0] if self.settings else "lexical-v1"

    def verdict(self, run: Run, incident: Incident, agent: AgentTable) -> dict[str, Any]:
        state = run.state()
        metadata = {
            "scenario_name": incident.name,
            "run": run.number,
            "kind": incident.kind,
            "agent": run.agent,
            "agent_model": agent.model,
            "agent_provider": agent.provider,
            "judge_model": self.model if incident.kind == "snapshot" else "arena",
            "judge_provider": self.provider if self.settings else "",
            "evaluated_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "output_digest": output_digest(run),
            **_figures(state),
        }
        if state["outcome"] == Outcome.ENVIRONMENT_ERROR:
            return {
                "schema_version": SCHEMA,
                "metadata": {**metadata, "error": _reason(state)},
                "eval_result": {"scores": {}, "justification": "The environment failed; the run is not graded."},
                "flat_scores": {},
                "details": {},
                "truth": {},
            }
        document = self._live(run) if incident.kind == "live" else self._diagnosis(run, incident)
        error = _reason(state) or document["metadata"].get("error")
        document["metadata"] = {**document["metadata"], **metadata, "error": error}
        return {**document, "schema_version": SCHEMA}

    def _diagnosis(self, run: Run, incident: Incident) -> dict[str, Any]:
        if incident.name not in self._views:
            self._views[incident.name] = TruthView.of(incident.truth())
        view = self._views[incident.name]
        file = run.output if run.output.is_file() else None
        trial = Trial(view.truth.incident_id, str(run.number), file, run.directory)
        request = EvaluationRequest(
            Path(incident.path),
            run.directory,
            options=Options(k=self.k),
            judge=self.settings,
            cache_dir=self.cache_dir,
        )
        graded = grade_trial(trial, view, request)
        document = results.judge_output(graded, CRITERIA, {"judge_failed": graded.judge_failed})
        document["details"]["source_file"] = run.output.name
        document["flat_scores"] = {SCORE: document["flat_scores"][HEADLINE], **document["flat_scores"]}
        truth = next(iter(results.incident_documents([graded]).values()))
        document["truth"] = {**truth, "statements": _statements(view)}
        return document

    def _live(self, run: Run) -> dict[str, Any]:
        result = read_json(run.directory / "arena_result.json") or {}
        stages = [str(stage) for stage in result.get("asked", ())]
        stage_scores = result.get("scores", {})
        scores = {stage: float(stage_scores.get(stage) or 0.0) for stage in stages}
        resolved = float(result.get("outcome") == "pass")
        truth = result.get("ground_truth", {})
        edges = truth.get("propagation", [])
        return {
            "metadata": {"error": None},
            "eval_result": {
                "scores": {stage: {"calculation": value} for stage, value in scores.items()},
                "justification": str(result.get("reason", "")),
            },
            "flat_scores": {
                SCORE: sum(scores.values()) / len(scores) if scores else 0.0,
                "resolved": resolved,
                **scores,
            },
            "details": {
                "stages": result.get("stages", []),
                "collateral": result.get("collateral", []),
                "details": {"predicted_graph": _predicted_graph(result.get("stages", []))},
            },
            "truth": {
                "gt_entities": truth.get("roots", []),
                "gt_graph": {
                    "nodes": sorted({*truth.get("roots", []), *(name for edge in edges for name in edge)}),
                    "edges": edges,
                    "roots": truth.get("roots", []),
                },
                "statements": [truth["explanation"]] if truth.get("explanation") else [],
            },
        }


def _predicted_graph(stages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answer to a live problem as a graph: the diagnosis, or else the localized components."""
    submissions = {stage.get("stage"): stage.get("submission") for stage in stages}
    diagnosis, blamed = submissions.get("diagnosis"), submissions.get("localization")
    if isinstance(diagnosis, Mapping) and isinstance(diagnosis.get("entities"), list):
        entities = [one for one in diagnosis["entities"] if isinstance(one, Mapping) and one.get("name")]
        edges = [one for one in diagnosis.get("propagations") or () if isinstance(one, Mapping)]
        return {
            "nodes": [str(one["name"]) for one in entities],
            "edges": [[str(one.get("source")), str(one.get("target"))] for one in edges],
            "roots": [str(one["name"]) for one in entities if one.get("contributing_factor")],
        }
    names = [str(name) for name in blamed] if isinstance(blamed, list) else []
    return {"nodes": names, "edges": [], "roots": names}


def _statements(view: TruthView) -> list[str]:
    truth = view.truth
    statements = [f"{fault.condition} {fault.change}".strip() for fault in truth.faults]
    statements += [f"{edge.source} → {edge.target}: {edge.condition}; {edge.effect}" for edge in truth.propagations]
    return [text for text in statements if text]


def output_digest(run: Run) -> str:
    data = run.output.read_bytes() if run.output.is_file() else b""
    return hashlib.sha256(data).hexdigest()[:16]


def _last(state: Mapping[str, Any]) -> Mapping[str, Any]:
    attempt: Mapping[str, Any] = next(
        (each for each in reversed(state["attempts"]) if each["outcome"] not in (None, Outcome.INTERRUPTED)), {}
    )
    return attempt


def _reason(state: Mapping[str, Any]) -> str | None:
    last = _last(state)
    return (last.get("reason") or str(state["outcome"])) if state["outcome"] != Outcome.ANSWERED else None


def _figures(state: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of the run. The cost is that of all its attempts."""
    last = _last(state)
    costs = [each["cost_usd"] for each in state["attempts"] if each.get("cost_usd") is not None]
    return {
        "outcome": state["outcome"],
        "attempts": len(state["attempts"]),
        "duration_seconds": last.get("seconds"),
        "inference_count": last.get("turns"),
        "input_tokens": last.get("prompt_tokens"),
        "output_tokens": last.get("completion_tokens"),
        "cost_usd": sum(costs) if costs else None,
    }


def needs_verdict(run: Run) -> bool:
    """Whether an ended run needs a verdict: it has none, one of another output, or one that failed."""
    document = read_json(run.verdict)
    if not isinstance(document, dict) or document.get("schema_version") != SCHEMA:
        return True
    metadata = document["metadata"]
    return bool(metadata.get("judge_failed")) or metadata.get("output_digest") != output_digest(run)
