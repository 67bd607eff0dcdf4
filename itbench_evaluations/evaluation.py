"""A whole evaluation: find keys and trials, grade by rule, ask the judge for the rest, sum up.

Every trial found ends in the result exactly once, whatever happened to it. Grading by rule is quick and done anew each
time; what costs money and time, the judge's replies, is kept as it comes, so a run that was stopped goes on when the
same command is given again.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from itbench_evaluations import estimates, lexical, results
from itbench_evaluations.criteria import CRITERIA, Criterion
from itbench_evaluations.errors import InputError
from itbench_evaluations.grading import Case, Options, TruthView, prepare
from itbench_evaluations.judge.cache import ReplyCache
from itbench_evaluations.judge.client import JudgeClient, Ledger
from itbench_evaluations.judge.panel import Panel, Verdict
from itbench_evaluations.judge.settings import JudgeSettings
from itbench_evaluations.matching import Policy
from itbench_evaluations.results import GradedTrial
from itbench_evaluations.submission import Submission, read_bytes, unreadable
from itbench_evaluations.trials import Trial, find_trials
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.files import load_truths

Baseline = Literal["lexical", "null"]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """All that decides a result."""

    ground_truth: Path
    outputs: Path
    options: Options = field(default_factory=Options)
    criteria: tuple[Criterion, ...] = CRITERIA
    judge: JudgeSettings | None = None
    baseline: Baseline = "lexical"
    cache_dir: Path | None = None
    replay: bool = False
    expected_runs: int = 0
    resamples: int = estimates.RESAMPLES


@dataclass(slots=True)
class Evaluation:
    """The outcome: graded trials, the document made from them, and what the user should hear about."""

    trials: list[GradedTrial]
    truths: Mapping[str, GroundTruth]
    document: dict[str, Any]
    warnings: list[str]

    @property
    def judge_errors(self) -> int:
        return int(self.document["statistics"]["overall"]["total_judge_errors"])


@dataclass(slots=True)
class _Pending:
    trial: Trial
    submission: Submission
    case: Case


def read_trial(trial: Trial) -> Submission:
    """What the trial left behind; nothing, or an unreadable file, is a bad run with its reason."""
    if trial.file is None:
        return unreadable(f"no agent_output.json in {trial.directory.name}/")
    try:
        return read_bytes(trial.file.read_bytes())
    except OSError as problem:
        return unreadable(f"the output file cannot be read: {problem.strerror or problem}")


def evaluate(request: EvaluationRequest, progress: Progress | None = None) -> Evaluation:
    """Run an evaluation; raises `InputError` for what the user must fix, never for what an agent did."""
    truths = load_truths(request.ground_truth)
    warnings = list(truths.warnings)
    found = find_trials(request.outputs, set(truths.truths))
    warnings += found.warnings
    gradable = [trial for trial in found.trials if trial.incident_id in truths.truths]
    orphans = sorted({trial.incident_id for trial in found.trials} - truths.truths.keys())
    if orphans:
        warnings.append(f"no ground truth for incident(s) {', '.join(orphans)}: their trials are not graded")
    if not gradable:
        raise InputError(
            f"none of the incidents under {request.outputs} ({', '.join(orphans)}) has a ground truth in "
            f"{request.ground_truth}"
        )
    gradable += _absent(gradable, truths.truths, request.expected_runs, request.outputs)
    unseen = sorted(truths.truths.keys() - {trial.incident_id for trial in gradable})
    if unseen:
        warnings.append(f"{len(unseen)} incident(s) of the ground truth have no trials: {', '.join(unseen[:20])}")
    views = {
        incident: TruthView.of(truths.truths[incident], request.options.policy)
        for incident in {trial.incident_id for trial in gradable}
    }
    pending = []
    for trial in gradable:
        submission = read_trial(trial)
        pending.append(_Pending(trial, submission, prepare(views[trial.incident_id], submission, request.options)))
    judged = any(criterion.judged for criterion in request.criteria)
    ledger: Ledger | None = None
    if request.judge is not None and (judged or request.options.policy is Policy.LENIENT):
        graded, ledger = asyncio.run(_with_judge(pending, request, request.judge, progress))
    else:
        graded = [_by_rule(each, request.baseline) for each in pending]
    document = _document(graded, request, ledger, warnings, orphans, unseen)
    return Evaluation(graded, truths.truths, document, warnings)


def grade_trial(trial: Trial, view: TruthView, request: EvaluationRequest) -> GradedTrial:
    """One trial by itself, for those who grade runs as they end: the same grade that `evaluate` gives it."""
    submission = read_trial(trial)
    pending = _Pending(trial, submission, prepare(view, submission, request.options))
    if request.judge is None:
        return _by_rule(pending, request.baseline)
    graded, _ = asyncio.run(_with_judge([pending], request, request.judge, None))
    return graded[0]


def _absent(found: list[Trial], truths: Mapping[str, GroundTruth], expected: int, outputs: Path) -> list[Trial]:
    """Runs that should exist and do not: they failed, and failures count."""
    there = Counter(trial.incident_id for trial in found)
    absent = []
    for incident in sorted(truths) if expected else ():
        taken = {trial.trial_id for trial in found if trial.incident_id == incident}
        free = (str(number) for number in range(1, expected + len(taken) + 1) if str(number) not in taken)
        for _ in range(expected - there[incident]):
            trial_id = next(free)
            absent.append(Trial(incident, trial_id, None, outputs / incident / trial_id))
    return absent


def _graded(each: _Pending, case: Case, source: str, scores: Mapping[str, float] | None, missing: str) -> GradedTrial:
    name = str(each.trial.file or each.trial.directory)
    return GradedTrial(each.trial.trial_id, case.finish(scores, source, missing), name)


def _by_rule(each: _Pending, baseline: Baseline) -> GradedTrial:
    if baseline == "null":
        return _graded(each, each.case, "none", None, "not judged: --judge none with --baseline null")
    return _graded(each, each.case, lexical.NAME, each.case.lexical_scores(), "")


async def _with_judge(
    pending: list[_Pending], request: EvaluationRequest, settings: JudgeSettings, progress: Progress | None
) -> tuple[list[GradedTrial], Ledger]:
    cache = ReplyCache(request.cache_dir)
    done = 0
    async with JudgeClient(settings, cache, replay=request.replay) as client:
        panel = Panel(client)

        async def one(each: _Pending) -> GradedTrial:
            nonlocal done
            graded = await _judge_one(each, request, panel)
            done += 1
            if progress:
                progress(done, len(pending))
            return graded

        graded = await asyncio.gather(*(one(each) for each in pending))
    return list(graded), client.ledger


async def _judge_one(each: _Pending, request: EvaluationRequest, panel: Panel) -> GradedTrial:
    case = each.case
    errors: list[str] = []
    if request.options.policy is Policy.LENIENT and case.unmatched:
        chosen, errors = await panel.match(case)
        if chosen:
            case = prepare(case.view, each.submission, request.options, chosen)
            case.notes += [f"{name}: matched to {group} by the judge, no rule did" for name, group in chosen.items()]
    verdict = Verdict({})
    if any(criterion.judged for criterion in request.criteria):
        verdict = await panel.judge(case)
    missing = "" if verdict.scores is not None else f"the judge gave no verdict: {verdict.errors[0]}"
    graded = _graded(each, case, "llm", verdict.scores, missing)
    graded.verdict = verdict
    graded.judge_errors = [*errors, *verdict.errors]
    graded.judge_failed = verdict.scores is None or 2 * len(errors) >= len(panel.voters)
    return graded


def _document(
    graded: list[GradedTrial],
    request: EvaluationRequest,
    ledger: Ledger | None,
    warnings: list[str],
    orphans: list[str],
    unseen: list[str],
) -> dict[str, Any]:
    options = request.options
    few = sum(count < options.k for count in Counter(trial.incident_id for trial in graded).values())
    if few:
        warnings.append(f"{few} incident(s) have fewer than {options.k} runs: pass@k and its kin rest on the others")
    document: dict[str, Any] = {
        "schema_version": results.SCHEMA_VERSION,
        "incidents": results.incident_documents(graded),
        "raw_results": [results.trial_document(trial, request.criteria) for trial in graded],
        "statistics": results.statistics(graded, request.criteria, options.k, request.resamples),
        "config": {
            "domain": "sre",
            "ground_truth_path": str(request.ground_truth),
            "outputs_path": str(request.outputs),
            "eval_criteria": [criterion.name for criterion in request.criteria],
            "k": options.k,
            "policy": str(options.policy),
            "ignore_namespaces": sorted(options.ignore_namespaces),
            "judge": "llm" if request.judge else "none",
            "baseline": request.baseline,
            "reasoning_source": "llm" if request.judge else lexical.NAME if request.baseline == "lexical" else "none",
            "expected_runs": request.expected_runs,
            "bootstrap_resamples": request.resamples,
        },
        "warnings": warnings,
        "ungraded_incidents": orphans,
        "incidents_without_trials": unseen,
    }
    if request.judge is not None and ledger is not None:
        document["judge"] = {
            "models": list(request.judge.models),
            "votes": request.judge.votes,
            "usage": ledger.as_dict(),
            "agreement": results.agreements(graded),
        }
    return document
