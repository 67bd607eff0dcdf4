"""`itbench-eval`: grade a directory of trials; subcommands `lint`, `compare`, `report` and `schema`.

Without a subcommand it grades, which is the form that documents and scripts use. Exit codes: 0 done; 1 lint found
errors; 2 invalid command or files; 3 done, but verdicts of the judge are missing (the result names them); 130 stopped
by the user. Errors are one line; `--debug` shows the traceback.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from itbench_evaluations import estimates, results
from itbench_evaluations.agent import Evaluation, EvaluationRequest, evaluate
from itbench_evaluations.comparison import compare, trials_of
from itbench_evaluations.criteria import CRITERIA, HEADLINE, METRICS, select
from itbench_evaluations.errors import InputError
from itbench_evaluations.grading import INFRASTRUCTURE, Options
from itbench_evaluations.judge.settings import DEFAULT_BASE_URL, JudgeSettings, environment, is_configured
from itbench_evaluations.lint import lint_path
from itbench_evaluations.matching import Policy
from itbench_evaluations.report import html, markdown
from itbench_evaluations.report.text import percent, visible
from srearena.errors import SreArenaError

DONE, LINT_ERRORS, WRONG_INPUT, VERDICTS_MISSING, STOPPED = 0, 1, 2, 3, 130
CACHE_NAME = ".itbench-judge-cache"


def _at_least(least: float, kind: Callable[[str], float]) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        if not value >= least:
            raise argparse.ArgumentTypeError(f"must be at least {least:g}")
        return value

    return read


class _Parser(argparse.ArgumentParser):
    """A parser that prints its errors as one line, like all other errors of the program."""

    def error(self, message: str) -> NoReturn:
        print(f"itbench-eval: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(WRONG_INPUT)


def _evaluate_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="itbench-eval",
        description="Grade agents' diagnoses against ground truth.",
        epilog="Other commands: itbench-eval lint | compare | report | schema (each with --help).",
    )
    whole, number = _at_least(1, int), _at_least(0, float)
    add = parser.add_argument
    add("--ground-truth", "-g", type=Path, required=True, help="directory of scenarios, or one JSON/YAML file")
    add("--outputs", "-o", type=Path, required=True, help="directory <incident>/<trial>/agent_output.json")
    add("--result-file", "-r", type=Path, default=Path("evaluation_results.json"), help="default: %(default)s")
    names = ", ".join(criterion.name for criterion in CRITERIA if "@" not in criterion.name)
    add("--eval-criteria", "-e", nargs="+", default=[], metavar="NAME", help=f"only these: {names}")
    add("--k", type=whole, default=3, help="k of root_cause_entity_k, pass@k, pass^k and majority@k (default: 3)")
    add("--max-concurrent", type=whole, default=5, help="concurrent requests to the judge (default: 5)")
    add("--verbose", "-v", action="store_true", help="print progress, and a line per trial")
    add("--domain", "-d", choices=["sre"], default="sre", help=argparse.SUPPRESS)
    add("--debug", action="store_true", help="show tracebacks")
    match = parser.add_argument_group("matching")
    match.add_argument(
        "--policy", choices=[str(p) for p in Policy], default=str(Policy.WORKLOAD), help="default: workload"
    )
    match.add_argument(
        "--strict",
        action="store_true",
        help="do not look up names without a kind in the snapshot",
    )
    match.add_argument(
        "--ignore-namespaces",
        nargs="+",
        default=[],
        metavar="NS",
        help="ignore predictions in these namespaces; `infra` stands for ITBench's own list",
    )
    match.add_argument(
        "--expected-runs", type=_at_least(0, int), default=0, help="runs per incident; missing ones score 0"
    )
    judge = parser.add_argument_group("judge (JUDGE_BASE_URL, JUDGE_API_KEY, JUDGE_MODEL; also from .env)")
    judge.add_argument(
        "--judge", choices=["none", "llm", "auto"], default="auto", help="auto (default): llm if JUDGE_* is set"
    )
    judge.add_argument(
        "--baseline", choices=["lexical", "null"], default="lexical", help="how reasoning is scored without a judge"
    )
    judge.add_argument("--judge-model", action="append", default=[], metavar="MODEL", help="repeat for several judges")
    judge.add_argument("--votes", type=whole, default=1, help="votes of each judge")
    judge.add_argument("--cache-dir", type=Path, help=f"default: {CACHE_NAME} beside the result file")
    judge.add_argument("--no-cache", action="store_true", help="store no replies; a stopped run starts over")
    judge.add_argument("--replay", action="store_true", help="use recorded replies only, send no requests")
    judge.add_argument(
        "--timeout", type=_at_least(0.001, float), default=120.0, help="seconds per request (default: 120)"
    )
    judge.add_argument("--max-retries", type=_at_least(0, int), default=5)
    judge.add_argument("--backoff", type=number, default=1.0, help="seconds before the first retry")
    judge.add_argument("--rpm", type=number, help="maximum number of requests per minute")
    judge.add_argument("--price-input", type=number, metavar="USD", help="per million prompt tokens")
    judge.add_argument("--price-output", type=number, metavar="USD", help="per million completion tokens")
    output = parser.add_argument_group("report")
    output.add_argument("--report", choices=["html", "md"], action="append", default=[], help="beside the result file")
    output.add_argument("--bootstrap", type=whole, default=estimates.RESAMPLES, help="resamples (default: %(default)s)")
    return parser


def _judge_settings(args: argparse.Namespace) -> JudgeSettings | None:
    if args.judge == "none":
        if args.replay:
            raise InputError("--replay needs a judge: use --judge llm")
        return None
    variables = environment()
    models = tuple(dict.fromkeys(args.judge_model or filter(None, [variables.get("JUDGE_MODEL")])))
    if args.judge == "auto" and not is_configured(variables) and not (args.judge_model or args.replay):
        return None
    if not models:
        raise InputError("no judge model: set JUDGE_MODEL or give --judge-model (or use --judge none)")
    return JudgeSettings(
        base_url=variables.get("JUDGE_BASE_URL") or DEFAULT_BASE_URL,
        api_key=variables.get("JUDGE_API_KEY") or "",
        models=models,
        votes=args.votes,
        timeout=args.timeout,
        max_retries=args.max_retries,
        backoff=args.backoff,
        max_concurrent=args.max_concurrent,
        requests_per_minute=args.rpm or None,
        price_input=args.price_input,
        price_output=args.price_output,
    )


def _request(args: argparse.Namespace) -> EvaluationRequest:
    ignored = {name for text in args.ignore_namespaces for name in text.lower().split(",")}
    if "infra" in ignored:
        ignored = (ignored - {"infra"}) | INFRASTRUCTURE
    cache = None if args.no_cache else args.cache_dir or args.result_file.parent / CACHE_NAME
    return EvaluationRequest(
        ground_truth=args.ground_truth,
        outputs=args.outputs,
        options=Options(Policy(args.policy), args.k, frozenset(ignored), args.strict),
        criteria=select(args.eval_criteria),
        judge=_judge_settings(args),
        baseline=args.baseline,
        cache_dir=cache,
        replay=args.replay,
        expected_runs=args.expected_runs,
        resamples=args.bootstrap,
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _run_evaluate(argv: Sequence[str]) -> int:
    args = _evaluate_parser().parse_args(argv)
    return _guarded(lambda: _do_evaluate(args), args.debug, _resume_hint(args))


def _resume_hint(args: argparse.Namespace) -> str:
    if args.no_cache:
        return "nothing was kept (--no-cache)"
    return "the judge's replies so far are kept: give the same command again to go on"


def _do_evaluate(args: argparse.Namespace) -> int:
    request = _request(args)
    if args.verbose:
        _say(f"judge: {', '.join(request.judge.models) if request.judge else 'none'}; policy: {request.options.policy}")
    step = 1 if args.verbose else 100

    def progress(done: int, total: int) -> None:
        if done % step == 0 or (done == total and total > step):
            _say(f"judged {done} of {total} trials")

    outcome = evaluate(request, progress)
    results.write_json(args.result_file, outcome.document)
    for form in dict.fromkeys(args.report):
        render = html.render if form == "html" else markdown.render
        results.write_text(args.result_file.with_suffix(f".{form}"), render(outcome.document))
    _summarise(outcome, args)
    return VERDICTS_MISSING if outcome.judge_errors else DONE


def _summarise(outcome: Evaluation, args: argparse.Namespace) -> None:
    overall = outcome.document["statistics"]["overall"]
    for warning in outcome.warnings:
        _say(f"warning: {visible(warning)}")
    if args.verbose:
        for row in outcome.document["raw_results"]:
            state = f"bad run: {visible(row['error'], 120)}" if row["bad_run"] else f"F1 {_first_score(row)}"
            _say(f"incident {visible(row['incident_id'])} trial {visible(row['trial_id'])}: {state}")
    if outcome.judge_errors:
        first = next(trial.judge_errors[0] for trial in outcome.trials if trial.judge_failed)
        _say(
            f"warning: {outcome.judge_errors} trial(s) have no verdict on reasoning ({visible(first, 200)}); "
            "those fields are null and excluded by name. Give the same command again to ask for the missing ones only"
        )
    print(
        f"{overall['total_trials']} trials of {overall['total_incidents']} incidents, {overall['total_bad_runs']} bad"
    )
    for metric, row in overall.items():
        if isinstance(row, dict) and "@" not in metric:
            interval = f"[{percent(row['ci95'][0])}, {percent(row['ci95'][1])}]" if row.get("ci95") else ""
            left_out = f"  ({row['excluded']} excluded)" if row.get("excluded") else ""
            print(f"  {metric:<46} {percent(row['mean']):>6} % {interval}{left_out}")
    usage = outcome.document.get("judge", {}).get("usage")
    if usage:
        cost = "" if usage["cost_usd"] is None else f", {usage['cost_usd']:.4f} USD"
        print(
            f"judge: {usage['requests']} requests, {usage['from_cache']} replies from cache, "
            f"{usage['prompt_tokens']} + {usage['completion_tokens']} tokens{cost}"
        )
    print(f"written: {args.result_file}")


def _first_score(row: dict[str, Any]) -> str:
    scores = row["flat_scores"]
    return percent(scores.get(HEADLINE, next(iter(scores.values()), None)))


# --- the other commands -----------------------------------------------------------------------------------------------


def _run_lint(argv: Sequence[str]) -> int:
    parser = _Parser(prog="itbench-eval lint", description="Find what is wrong with ground-truth files.")
    parser.add_argument("path", type=Path, help="directory of scenarios, or one JSON/YAML file")
    parser.add_argument("--snapshots", type=Path, help="where the snapshots are, if not beside the files")
    parser.add_argument("--policy", choices=[str(p) for p in Policy], default=str(Policy.WORKLOAD))
    parser.add_argument("--json", action="store_true", help="findings as JSON")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args(argv)

    def work() -> int:
        findings, count = lint_path(args.path, args.snapshots, Policy(args.policy))
        errors = sum(finding.level == "error" for finding in findings)
        if args.json:
            rows = [
                {"level": f.level, "code": f.code, "incident_id": f.incident_id, "message": f.message, "file": f.file}
                for f in findings
            ]
            print(json.dumps({"ground_truths": count, "errors": errors, "findings": rows}, indent=2))
        else:
            for f in findings:
                print(f"{f.level}: incident {visible(f.incident_id)}: {visible(f.message)} [{f.code}] ({f.file})")
            print(f"{count} ground truth(s): {errors} error(s), {len(findings) - errors} warning(s)")
        return LINT_ERRORS if errors else DONE

    return _guarded(work, args.debug)


def _load_result(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot read the result {path}: {problem}") from problem
    if not isinstance(document, dict) or not isinstance(document.get("raw_results"), list):
        raise InputError(f"{path} is not a result of itbench-eval: it has no raw_results")
    return document


def _run_compare(argv: Sequence[str]) -> int:
    parser = _Parser(prog="itbench-eval compare", description="Compare two results on the incidents they share.")
    parser.add_argument("a", type=Path, help="result of agent A")
    parser.add_argument("b", type=Path, help="result of agent B")
    parser.add_argument("--metric", action="append", default=[], help=f"repeatable; default {HEADLINE}")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args(argv)

    def work() -> int:
        first, second = _load_result(args.a), _load_result(args.b)
        chosen = args.metric or [HEADLINE]
        unknown = [metric for metric in chosen if metric not in METRICS]
        if unknown:
            raise InputError(f"unknown metric {unknown[0]!r}: choose from {', '.join(METRICS)}")
        compared = [compare(metric, trials_of(first, metric), trials_of(second, metric)) for metric in chosen]
        if args.json:
            print(json.dumps([each.as_dict() for each in compared], indent=2))
            return DONE
        for each in compared:
            print(
                f"{each.metric}: A {percent(each.mean_a)} %, B {percent(each.mean_b)} %, difference "
                f"{percent(each.difference)} points [{percent(each.low)}, {percent(each.high)}] over {each.incidents} "
                f"incidents; permutation p = {each.permutation_p:.3g}; McNemar p = {each.mcnemar_p:.3g} "
                f"({each.only_a_passed} only A, {each.only_b_passed} only B of {each.paired_trials} paired trials)"
                f"{'; within noise' if each.within_noise else ''}"
            )
        return DONE

    return _guarded(work, args.debug)


def _run_report(argv: Sequence[str]) -> int:
    parser = _Parser(prog="itbench-eval report", description="Render a result as a page.")
    parser.add_argument("result", type=Path)
    parser.add_argument("--format", choices=["html", "md"], default="html")
    parser.add_argument("--output", "-o", type=Path, help="default: beside the result")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args(argv)

    def work() -> int:
        render = html.render if args.format == "html" else markdown.render
        target = args.output or args.result.with_suffix(f".{args.format}")
        document = _load_result(args.result)
        try:
            page = render(document)
        except (KeyError, TypeError, ValueError) as problem:
            raise InputError(f"{args.result} is not a complete result of this version: {problem!r}") from problem
        results.write_text(target, page)
        print(f"written: {target}")
        return DONE

    return _guarded(work, args.debug)


def _run_schema(argv: Sequence[str]) -> int:
    from itbench_evaluations import schemas

    parser = _Parser(prog="itbench-eval schema", description="Print a published JSON Schema.")
    parser.add_argument("name", nargs="?", choices=sorted(schemas.MODELS), help="which one")
    parser.add_argument("--write", action="store_true", help="bring the files in the package up to date")
    parser.add_argument("--debug", action="store_true")
    args = parser.parse_args(argv)

    def work() -> int:
        if args.write:
            for path in schemas.write():
                print(f"written: {path}")
        elif args.name:
            print(schemas.text(args.name), end="")
        else:
            raise InputError(f"which schema? one of {', '.join(sorted(schemas.MODELS))}")
        return DONE

    return _guarded(work, args.debug)


def _guarded(work: Callable[[], int], debug: bool, hint: str = "") -> int:
    """Run a command; print an error as one line and return the exit code."""
    try:
        return work()
    except SreArenaError as problem:
        if debug:
            traceback.print_exc()
        _say(f"itbench-eval: {visible(problem, 2000)}")
        return WRONG_INPUT
    except KeyboardInterrupt:
        _say(f"itbench-eval: stopped{'; ' + hint if hint else ''}")
        return STOPPED
    except BrokenPipeError:
        sys.stderr.close()
        return DONE


_COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "lint": _run_lint,
    "compare": _run_compare,
    "report": _run_report,
    "schema": _run_schema,
}


def _on_terminate(_signal: int, _frame: FrameType | None) -> None:
    signal.raise_signal(signal.SIGINT)  # asyncio handles this signal cleanly at any point


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `itbench-eval`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    signal.signal(signal.SIGTERM, _on_terminate)
    command = _COMMANDS.get(arguments[0]) if arguments else None
    return command(arguments[1:]) if command else _run_evaluate(arguments)
