"""A whole evaluation: find ground truths and trials, grade by rule, ask the judge about reasoning, compute statistics.

Every trial appears in the result exactly once, whatever happened to it. Grading by rule is fast and repeated each time.
The judge's replies cost money and time and are stored as they arrive, so the same command continues a stopped run.
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
from itbench_evaluations.judge.client import JudgeClient, Ledger
from itbench_evaluations.judge.panel import Panel, Verdict
from itbench_evaluations.judge.settings import JudgeSettings
from itbench_evaluations.loader import Trial, find_trials
from itbench_evaluations.matching import Policy
from itbench_evaluations.results import GradedTrial
from itbench_evaluations.submission import Submission, read_bytes, unreadable
from srearena.coroutines import run_blocking
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.files import load_truths, read_bounded
from srearena.utils.cache import ReplyCache

Baseline = Literal["lexical", "null"]
Progress = Callable[[int, int], None]
_LARGEST_OUTPUT = 50_000_000  # bytes; chosen: a diagnosis has a thousandth of it


@dataclass(frozen=True, slots=True)
class EvaluationRequest:
    """Everything that determines a result."""

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
    """Graded trials, the result document, and warnings for the user."""

    trials: list[GradedTrial]
    truths: Mapping[str, GroundTruth]
    document: dict[str, Any]
    warnings: list[str]

    @property
    def judge_errors(self) -> int:
        return int(self.document["statistics"]["overall"]["total_judge_errors"])


@dataclass(slots=True)
class _Pending:
    """A trial graded by rule, before the judge."""

    trial: Trial
    submission: Submission
    case: Case


def read_trial(trial: Trial) -> Submission:
    """Read the output of a trial; a missing or unreadable file is a bad run with its reason."""
    if trial.file is None:
        return unreadable(f"no agent_output.json in {trial.directory.name}/")
    try:
        return read_bytes(read_bounded(trial.file, _LARGEST_OUTPUT))
    except OSError as problem:
        return unreadable(f"the output file cannot be read: {problem.strerror or problem}")


def evaluate(request: EvaluationRequest, progress: Progress | None = None) -> Evaluation:
    """Run an evaluation; raises `InputError` for errors of the user, never for errors of an agent."""
    truths = load_truths(request.ground_truth)
    warnings = list(truths.warnings)
    outputs = find_trials(request.outputs, set(truths.truths))
    warnings += outputs.warnings
    gradable = [trial for trial in outputs.trials if trial.incident_id in truths.truths]
    orphans = sorted({trial.incident_id for trial in outputs.trials} - truths.truths.keys())
    if orphans:
        warnings.append(f"no ground truth for incident(s) {', '.join(orphans)}: their trials are not graded")
    if not gradable:
        raise InputError(
            f"none of the incidents under {request.outputs} ({', '.join(orphans)}) has a ground truth in "
            f"{request.ground_truth}"
        )
    gradable += _missing_runs(gradable, truths.truths, request.expected_runs, request.outputs)
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
        graded, ledger = run_blocking(_with_judge(pending, request, request.judge, progress))
    else:
        graded = [_by_rule(each, request.baseline) for each in pending]
    document = _document(graded, request, ledger, warnings, orphans, unseen)
    return Evaluation(graded, truths.truths, document, warnings)


def grade_trial(trial: Trial, view: TruthView, request: EvaluationRequest) -> GradedTrial:
    """Grade one trial as it ends, with the same result as `evaluate`."""
    submission = read_trial(trial)
    pending = _Pending(trial, submission, prepare(view, submission, request.options))
    if request.judge is None:
        return _by_rule(pending, request.baseline)
    graded, _ = run_blocking(_with_judge([pending], request, request.judge, None))
    return graded[0]


def _missing_runs(trials: list[Trial], truths: Mapping[str, GroundTruth], expected: int, outputs: Path) -> list[Trial]:
    """Expected runs that left no directory: they count as failed."""
    counts = Counter(trial.incident_id for trial in trials)
    missing = []
    for incident in sorted(truths) if expected else ():
        used = {trial.trial_id for trial in trials if trial.incident_id == incident}
        free = (str(number) for number in range(1, expected + len(used) + 1) if str(number) not in used)
        for _ in range(expected - counts[incident]):
            trial_id = next(free)
            missing.append(Trial(incident, trial_id, None, outputs / incident / trial_id))
    return missing


def _graded(
    pending: _Pending, case: Case, source: str, scores: Mapping[str, float] | None, missing: str
) -> GradedTrial:
    name = str(pending.trial.file or pending.trial.directory)
    return GradedTrial(pending.trial.trial_id, case.finish(scores, source, missing), name)


def _by_rule(pending: _Pending, baseline: Baseline) -> GradedTrial:
    if baseline == "null":
        return _graded(pending, pending.case, "none", None, "not judged: --judge none with --baseline null")
    return _graded(pending, pending.case, lexical.NAME, pending.case.lexical_scores(), "")


async def _with_judge(
    pending: list[_Pending], request: EvaluationRequest, settings: JudgeSettings, progress: Progress | None
) -> tuple[list[GradedTrial], Ledger]:
    cache = ReplyCache(request.cache_dir)
    done = 0
    async with JudgeClient(settings, cache, replay=request.replay) as client:
        panel = Panel(client)

        async def judge_and_count(pending_trial: _Pending) -> GradedTrial:
            nonlocal done
            graded = await _judge_one(pending_trial, request, panel)
            done += 1
            if progress:
                progress(done, len(pending))
            return graded

        graded = await asyncio.gather(*(judge_and_count(each) for each in pending))
    return list(graded), client.ledger


async def _judge_one(pending: _Pending, request: EvaluationRequest, panel: Panel) -> GradedTrial:
    case = pending.case
    errors: list[str] = []
    if request.options.policy is Policy.LENIENT and case.unmatched:
        chosen, errors = await panel.match(case)
        if chosen:
            case = prepare(case.view, pending.submission, request.options, chosen)
            case.notes += [f"{name}: matched to {group} by the judge, no rule did" for name, group in chosen.items()]
    verdict = Verdict({})
    if any(criterion.judged for criterion in request.criteria):
        verdict = await panel.judge(case)
    missing = "" if verdict.scores is not None else f"the judge gave no verdict: {verdict.errors[0]}"
    graded = _graded(pending, case, "llm", verdict.scores, missing)
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
        warnings.append(
            f"{few} incident(s) have fewer than {options.k} runs: pass@k, pass^k and majority@k use the others only"
        )
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
            "strict": options.strict,
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
