"""The result document: raw results, statistics and configuration, in the format of earlier tools, with a version.

Additions to that format: intervals, success probabilities, numbers of bad runs and judge errors, exclusions and their
reasons. Statistics include every trial: a bad run counts as zero, and a missing value is named.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from itbench_evaluations import agreement, estimates
from itbench_evaluations.criteria import Criterion
from itbench_evaluations.errors import InputError
from itbench_evaluations.grading import Grade
from itbench_evaluations.judge.panel import Verdict

SCHEMA_VERSION = "1.0"


@dataclass(slots=True)
class GradedTrial:
    """A trial with its grade, and what the judge contributed."""

    trial_id: str
    grade: Grade
    source_file: str
    verdict: Verdict | None = None
    judge_errors: list[str] = field(default_factory=list)
    judge_failed: bool = False

    @property
    def incident_id(self) -> str:
        return self.grade.incident_id


def trial_document(trial: GradedTrial, criteria: Sequence[Criterion]) -> dict[str, Any]:
    """One entry of `raw_results`."""
    grade = trial.grade
    names = [metric for criterion in criteria for metric in criterion.metrics]
    document: dict[str, Any] = {
        "incident_id": grade.incident_id,
        "trial_id": trial.trial_id,
        "scores": {criterion.key: _nested(criterion, grade) for criterion in criteria},
        "flat_scores": {name: grade.scores[name] for name in names},
        "bad_run": not grade.readable,
        "reasoning_source": grade.reasoning_source,
        "source_file": trial.source_file,
    }
    optional = {
        "error": grade.problem,
        "excluded": {name: why for name, why in grade.excluded.items() if name in names},
        "repairs": list(grade.repairs),
        "notes": list(grade.notes),
        "judge": _judge_part(trial),
    }
    document.update({key: value for key, value in optional.items() if value})
    # Data that all trials of an incident share is stored once, in the document's `incidents`.
    document["details"] = {key: value for key, value in grade.details.items() if key not in _INCIDENT_KEYS}
    return document


_INCIDENT_KEYS = ("gt_graph", "gt_entities", "first_impacted_component")


def incident_documents(trials: Sequence[GradedTrial]) -> dict[str, Any]:
    """The ground truth in components, by incident."""
    firsts = {trial.incident_id: trial for trial in reversed(trials)}
    return {
        incident: {key: firsts[incident].grade.details[key] for key in _INCIDENT_KEYS}
        for incident in sorted(firsts, key=_natural)
    }


def _nested(criterion: Criterion, grade: Grade) -> dict[str, Any]:
    if not criterion.triple:
        return {"calculation": grade.scores[criterion.key]}
    nested: dict[str, Any] = {
        f"calculation_{part}": grade.scores[f"{criterion.key}_{part}"] for part in ("precision", "recall", "f1")
    }
    if criterion.key == "root_cause_entity":
        nested["gt_entities"] = grade.details["gt_entities"]
        nested["predicted_entities"] = grade.details["predicted_entities"]
        nested["justification"] = _justification(grade)
    return nested


def _justification(grade: Grade) -> str:
    if grade.problem:
        return f"No diagnosis could be read: {grade.problem}."
    details = grade.details
    right = [p["entity"] for p in details["predicted_entities"] if p["matches_gt"]]
    parts = [
        f"Found: {', '.join(right) or 'nothing'}.",
        f"Missed: {', '.join(details['missed']) or 'nothing'}.",
        f"Wrongly blamed: {', '.join(details['wrongly_blamed']) or 'nothing'}.",
    ]
    return " ".join(parts)


def _judge_part(trial: GradedTrial) -> dict[str, Any]:
    part: dict[str, Any] = {}
    if trial.verdict is not None and trial.verdict.votes:
        part["votes"] = trial.verdict.votes
    if trial.verdict is not None and trial.verdict.removed:
        part["removed_sentences"] = trial.verdict.removed
    if trial.judge_errors:
        part["errors"] = trial.judge_errors
    return part


# --- statistics -------------------------------------------------------------------------------------------------------


def metric_statistics(scores: Sequence[float | None], k: int, resamples: int) -> dict[str, Any]:
    values = [score for score in scores if score is not None]
    excluded = len(scores) - len(values)
    if not values:
        return {"mean": None, "stderr": None, "n": 0, "excluded": excluded}
    estimate = estimates.estimate(values, resamples)
    passes = sum(estimates.passed(value) for value in values)
    statistics: dict[str, Any] = {
        "mean": estimate.mean,
        "stderr": estimate.stderr,
        "n": estimate.n,
        "ci95": [estimate.low, estimate.high],
        "pass@1": passes / len(values),
        "pass@k": estimates.pass_at(k, len(values), passes),
        "pass^k": estimates.pass_every(k, len(values), passes),
        "majority@k": estimates.majority_at(k, len(values), passes),
    }
    if excluded:
        statistics["excluded"] = excluded
    return statistics


def overall_statistics(metric: str, incidents: Mapping[str, Mapping[str, Any]], resamples: int) -> dict[str, Any]:
    rows = [row[metric] for row in incidents.values()]
    valued = [row for row in rows if row["mean"] is not None]
    excluded = sum(row.get("excluded", 0) for row in rows)
    if not valued:
        return {"mean": None, "stderr": None, "n_incidents": 0, "n": 0, "excluded": excluded}
    estimate = estimates.estimate([row["mean"] for row in valued], 2 * resamples)
    overall: dict[str, Any] = {
        "mean": estimate.mean,
        "stderr": estimate.stderr,
        "n_incidents": estimate.n,
        "n": sum(row["n"] for row in valued),
        "ci95": [estimate.low, estimate.high],
    }
    for chance in ("pass@1", "pass@k", "pass^k", "majority@k"):
        known = [row[chance] for row in valued if row[chance] is not None]
        overall[chance] = estimates.mean(known) if known else None
        if chance == "pass@k":
            overall["k_incidents"] = len(known)  # incidents with at least k runs; pass@k and the like use only these
    if excluded:
        overall["excluded"] = excluded
    return overall


def statistics(
    trials: Sequence[GradedTrial], criteria: Sequence[Criterion], k: int, resamples: int = estimates.RESAMPLES
) -> dict[str, Any]:
    """Statistics per incident and overall, over all trials."""
    metrics = [metric for criterion in criteria for metric in criterion.metrics]
    grouped: dict[str, list[GradedTrial]] = {}
    for trial in trials:
        grouped.setdefault(trial.incident_id, []).append(trial)
    per_incident: dict[str, dict[str, Any]] = {}
    for incident in sorted(grouped, key=_natural):
        members = grouped[incident]
        row: dict[str, Any] = {
            metric: metric_statistics([trial.grade.scores[metric] for trial in members], k, resamples)
            for metric in metrics
        }
        row["n_trials"] = len(members)
        row["bad_runs"] = sum(not trial.grade.readable for trial in members)
        row["judge_errors"] = sum(trial.judge_failed for trial in members)
        per_incident[incident] = row
    overall: dict[str, Any] = {metric: overall_statistics(metric, per_incident, resamples) for metric in metrics}
    overall["total_trials"] = len(trials)
    overall["total_incidents"] = len(per_incident)
    overall["total_bad_runs"] = sum(row["bad_runs"] for row in per_incident.values())
    overall["total_judge_errors"] = sum(row["judge_errors"] for row in per_incident.values())
    return {"per_incident": per_incident, "overall": overall}


def _natural(text: str) -> tuple[int, int, str]:
    return (0, int(text), "") if text.isdigit() and len(text) < 18 else (1, 0, text)


def agreements(trials: Sequence[GradedTrial]) -> dict[str, Any]:
    """Kappa between judges, and between the panel and the lexical baseline, on the items that all of them judged."""
    rows: list[list[float]] = []
    panel: list[float] = []
    rule: list[float] = []
    voters: list[str] = []
    for trial in trials:
        verdict = trial.verdict
        if verdict is None or not verdict.scores:
            continue
        names = sorted(verdict.votes)
        voters = voters or names
        for item in trial.grade.details["reasoning"]:
            component = item["component"]
            if component not in verdict.scores:
                continue
            panel.append(verdict.scores[component])
            rule.append(item["lexical_score"])
            if names == voters:
                rows.append([verdict.votes[name][component] for name in names])
    document: dict[str, Any] = {}
    if panel:
        document["judge_vs_lexical"] = _agreement_document(agreement.cohen(panel, rule))
    if len(voters) > 1 and rows:
        document["between_judges"] = {"voters": voters, **_agreement_document(agreement.fleiss(rows))}
        document["pairs"] = {
            f"{voters[i]} / {voters[j]}": _agreement_document(
                agreement.cohen([r[i] for r in rows], [r[j] for r in rows])
            )
            for i in range(len(voters))
            for j in range(i + 1, len(voters))
        }
    return document


def _agreement_document(value: agreement.Agreement) -> dict[str, Any]:
    return {"kappa": value.kappa, "observed_agreement": value.observed, "items": value.items, "raters": value.raters}


# --- writing ----------------------------------------------------------------------------------------------------------


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write atomically: a reader never sees a partial result."""
    write_text(path, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem}") from problem


def judge_output(trial: GradedTrial, criteria: Sequence[Criterion], metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The document `judge_output.json` that a leaderboard stores beside each run."""
    row = trial_document(trial, criteria)
    return {
        "schema_version": SCHEMA_VERSION,
        "metadata": {**metadata, "scenario_name": trial.incident_id, "run": trial.trial_id, "error": row.get("error")},
        "eval_result": {"scores": row["scores"], "justification": _justification(trial.grade)},
        "flat_scores": row["flat_scores"],
        "details": row,
    }
