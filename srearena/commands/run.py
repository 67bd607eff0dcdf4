"""`srearena run`: runs an agent on problems, in parallel, with a live table."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from srearena import completions
from srearena.backends import backend_options, chosen_config
from srearena.conductor.agent_process.isolation import AUTO, CHOICES, NONE
from srearena.conductor.agents import agent_names, make_agent
from srearena.conductor.episode.disclosure import check_operator
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError
from srearena.conductor.preconditions import check_agent, check_cluster, check_folder
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.store import read_trials, run_seed, totals
from srearena.conductor.stages import in_order
from srearena.conductor.trials.problem_suites import ProblemSuite, problem_suite
from srearena.conductor.trials.remote import RemoteSuite
from srearena.conductor.trials.suite import ERRORS, Progress, Suite
from srearena.conductor.trials.tables import LiveTable
from srearena.conductor.trials.trial import Trial
from srearena.dotenv import environment
from srearena.executors import executor_options, machines_for
from srearena.option_types import AMOUNT, COUNT, POSITIVE, SEED
from srearena.paths import results_directory
from srearena.tracking.weights_and_biases import is_enabled as tracked
from srearena.tracking.weights_and_biases import log_run
from srearena.utils.status import outcome_colour


@click.command()
@click.argument("ids", nargs=-1, shell_complete=completions.problems)
@click.option(
    "--suite",
    "suite_name",
    metavar="NAME",
    shell_complete=completions.suites,
    help="A named suite: lite (21 problems of every kind; lite@1 fixes its version), full, noop, or a level.",
)
@click.option("--problems", "patterns", multiple=True, metavar="GLOB", help="Problems by pattern, e.g. 'missing_*'.")
@click.option(
    "--agent",
    default="nothing",
    show_default=True,
    shell_complete=completions.agents,
    help="Name of the agent, or module:Class.",
)
@click.option("--model", help="Model of the LLM agent, e.g. gpt-4.1 or anthropic/claude-sonnet-4-5.")
@click.option(
    "--script", type=click.Path(dir_okay=False, path_type=Path), help="File with the actions of the scripted agent."
)
@click.option("--agent-option", "options", multiple=True, metavar="KEY=VALUE", help="Option of the agent.")
@click.option(
    "--isolation",
    type=click.Choice(CHOICES),
    default=AUTO,
    show_default=True,
    help="What keeps the agent's process from the harness; auto for the strongest that works here.",
)
@click.option(
    "--in-process-agent",
    is_flag=True,
    help="Run the agent in the harness's process, for debugging: it can read the answer, and the results say so.",
)
@click.option(
    "--trials",
    type=COUNT,
    default=1,
    show_default=True,
    help="Trials per problem, each with its own seed.",
)
@click.option("--parallel", type=COUNT, default=1, show_default=True, help="Number of parallel trials.")
@click.option(
    "--seed",
    type=SEED,
    help="Seed of the first trial; each further trial adds one. Without it, it is drawn, and kept with the run.",
)
@click.option("--stages", help="Only these stages, separated by commas, e.g. detection,mitigation.")
@click.option("--max-steps", type=COUNT, default=30, show_default=True)
@click.option("--max-tokens", type=COUNT)
@click.option("--max-cost", type=AMOUNT, help="In US dollars, per trial.")
@click.option("--budget-usd", type=AMOUNT, help="Limit for all trials together; no trial starts without budget left.")
@click.option(
    "--max-seconds", type=POSITIVE, default=3600.0, show_default=True, help="Limit in real seconds per trial."
)
@click.option(
    "--noise/--no-noise",
    default=None,
    help="Innocent changes before and after the fault, by the trial's seed; on by default with --problems and --suite.",
)
@click.option(
    "--warm/--cold",
    default=True,
    show_default=True,
    help="Whether trials of one application and seed are forks of one healthy system, where forks are safe.",
)
@click.option("--fixed", is_flag=True, help="The catalogue's own target, parameters and moment instead of the seed's.")
@click.option(
    "--run", "name", help="Name of the run; by default derived from the command, so that the same command resumes."
)
@click.option("--fresh", is_flag=True, help="Start a new run instead of resuming.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per trial as it ends, and totals at the end.")
@executor_options
@backend_options
def command(
    ids: tuple[str, ...],
    suite_name: str | None,
    patterns: tuple[str, ...],
    agent: str,
    model: str | None,
    script: Path | None,
    options: tuple[str, ...],
    isolation: str,
    in_process_agent: bool,
    trials: int,
    parallel: int,
    seed: int | None,
    stages: str | None,
    max_steps: int,
    max_tokens: int | None,
    max_cost: float | None,
    budget_usd: float | None,
    max_seconds: float,
    noise: bool | None,
    warm: bool,
    fixed: bool,
    name: str | None,
    fresh: bool,
    as_json: bool,
    executor: str,
    ray_address: str | None,
    ray_cpus: float,
    **where: Any,
) -> None:
    """Run an agent on problems: IDS, a --suite, or all that --problems matches. The same command again resumes.

    Trials that ended in an error of the agent or of the environment are run again, all others keep their results.

    Exit status: 0 where every trial was graded, whatever its grade; 1 where one ended in an error of the agent or of
    the environment; 130 after Ctrl-C and 143 after SIGTERM.
    """
    chosen_suite = problem_suite(suite_name) if suite_name is not None else None
    requested = (*ids, *patterns, *(chosen_suite.problems if chosen_suite else ()))
    if not requested:
        raise ArenaError("which problems? Name some, or use --suite lite; `srearena problems` lists them")
    if ":" not in agent and agent not in agent_names():
        names = ", ".join(agent_names())
        raise ArenaError(f"there is no agent {agent!r}: choose from {names}, or name a class as module:Class")
    chosen = ProblemRegistry().match(requested)
    noise = bool(patterns or chosen_suite) if noise is None else noise
    agent_options = _options(options)
    if model is not None:
        agent_options["model"] = model
    if script is not None:
        agent_options["script"] = str(script.absolute())
    if max_cost is not None or budget_usd is not None:
        _require_prices(agent, agent_options)
    limits = Limits(steps=max_steps, tokens=max_tokens, cost=max_cost, wall_seconds=max_seconds)
    selected_stages = in_order(stages.split(",")) if stages else None
    config = chosen_config(**where)
    if parallel > 1 and not config.embedded:
        raise ArenaError("a real cluster holds one episode at a time: use --parallel 1")
    if executor == "ray":
        if not config.embedded:
            raise ArenaError("trials on a real cluster run on this machine: leave --executor out")
        if budget_usd is not None:
            raise ArenaError("--budget-usd is for trials on this machine: use --max-cost with --executor ray")
    identity: list[object] = [chosen, agent_options, trials, seed, selected_stages, limits.as_document(), noise, fixed]
    if not config.embedded:
        identity.append([config.k8s_host, config.kubeconfig, config.context])
    isolation = NONE if in_process_agent else isolation
    if isolation != AUTO:
        identity.append(isolation)
    run = _run_folder(name, fresh, agent, identity)
    check_folder(run)
    check_operator(os.environ)
    if _is_unfinished(run, chosen, trials):
        check_agent(agent, agent_options, isolation)
        check_cluster(config)
    run.mkdir(parents=True, exist_ok=True)
    seed = run_seed(run) if seed is None else seed
    spec = EpisodeSpec(stages=selected_stages, limits=limits, noise=noise, fixed=fixed, config=config)
    plan = [
        Trial(problem, agent, str(run), number, agent_options, isolation, replace(one, seed=seed + number))
        for number in range(trials)
        for problem, one in _with_stages(chosen, spec)
    ]
    with machines_for(executor, ray_address, ray_cpus) as machines:
        suite = (
            Suite(plan, run, parallel, budget=budget_usd, warm=warm)
            if machines is None
            else RemoteSuite(plan, run, warm=warm, machines=machines)
        )
        results, table = _watched(suite, chosen_suite, as_json)
    results = [result for result in results if any(_same(result, trial) for trial in plan)]
    figures = totals(results)
    variables = environment()
    if tracked(variables):
        settings = {"agent": agent, "trials": trials, "seed": seed, "limits": limits.as_document(), **agent_options}
        url = log_run(run, results, figures, settings, variables)
        click.echo(f"W&B: {url}", err=True)
    not_started = sum(entry.result is None for entry in suite.progress)
    if as_json:
        click.echo(json.dumps({"run": run.name, "folder": str(run), **figures, "not_begun": not_started}))
    else:
        table.close()
        _report(run, results, figures, not_started)
    if _errors(results):
        raise click.exceptions.Exit(1)


def _watched(suite: Suite, chosen: ProblemSuite | None, as_json: bool) -> tuple[list[dict[str, Any]], LiveTable]:
    """Perform the trials of a run, with a table or JSON lines; returns the results, and the table to be closed."""
    if chosen is not None and not as_json:
        click.echo(f"Suite {chosen.name}: {len(chosen.problems)} problems")
    table = LiveTable(sys.stdout, live=not as_json and sys.stdout.isatty(), quiet=as_json)

    def watch(entry: Progress) -> None:
        if as_json and entry.result is not None:
            click.echo(json.dumps({**entry.result, "earlier_run": entry.from_earlier_run}))
        table.show(suite.progress, entry)

    return _perform(suite, watch, table), table


def _is_unfinished(run: Path, problems: list[str], trials: int) -> bool:
    """Whether a trial of the run has no grade yet."""
    registry = ProblemRegistry()
    graded = {(one["problem"], one["trial"]) for one in read_trials(run) if one["outcome"] not in ERRORS}
    return any(
        (registry.resolve(text).id, number) not in graded for text in problems for number in range(max(1, trials))
    )


def _with_stages(ids: list[str], spec: EpisodeSpec) -> list[tuple[str, EpisodeSpec]]:
    """Each problem under the id of its results, with the stages that the user or the id's suffix selects."""
    registry = ProblemRegistry()
    specs: dict[str, EpisodeSpec] = {}
    for text in ids:
        selection = registry.resolve(text)
        if selection.id in specs:
            raise ArenaError(
                f"{text} is {selection.id} with another choice of stages, and a run has one result for each problem: "
                "use --stages, or one run for each"
            )
        specs[selection.id] = replace(spec, stages=spec.stages or selection.stages)
    return list(specs.items())


def _perform(suite: Suite, watch: Callable[[Progress], None], table: LiveTable) -> list[dict[str, Any]]:
    """Perform the trials. Ctrl-C and SIGTERM end the processes of all trials, and say how to resume."""
    received: list[int] = []

    def stop(number: int, frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        return suite.perform(watch)
    except KeyboardInterrupt:
        table.close()
        ended = sum(entry.result is not None for entry in suite.progress)
        click.echo(
            f"\nStopped: {ended} of {len(suite.progress)} trials have results in {suite.run}. "
            "The same command resumes.",
            err=True,
        )
        raise click.exceptions.Exit(128 + (received[0] if received else signal.SIGINT)) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _report(run: Path, results: list[dict[str, Any]], figures: dict[str, Any], not_started: int) -> None:
    """Print the totals of a run."""
    outcomes = ", ".join(
        click.style(f"{count} {outcome}", fg=outcome_colour(outcome)) for outcome, count in figures["outcomes"].items()
    )
    click.echo(f"\n{figures['trials']} trials: {outcomes}")
    for outcome, reason in _errors(results):
        click.echo(f"  {outcome}: {reason}")
    if any(result.get("isolation") == NONE for result in results):
        click.echo("  unguarded: the agent ran in the harness's process, where it can read the answer")
    if not_started:
        click.echo(f"{not_started} more were not started: the budget is spent. Resume with a larger --budget-usd.")
    for stage, counts in figures["stages"].items():
        click.echo(f"  {stage:<13} {counts['passed']} of {counts['of']}")
    click.echo(f"Results: {run} (`srearena results {run.name}`, `srearena view {run.name}`)")


def _same(result: dict[str, object], trial: Trial) -> bool:
    return result.get("problem") == trial.problem and result.get("trial") == trial.number


def _errors(results: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Every distinct error, of agents and of environments, that ended a trial: outcome and reason."""
    reasons = [(str(result["outcome"]), str(result["reason"])) for result in results if result["outcome"] in ERRORS]
    return list(dict.fromkeys(reasons))


def _options(pairs: tuple[str, ...]) -> dict[str, object]:
    agent_options: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ArenaError(f"--agent-option takes KEY=VALUE, not {pair!r}")
        agent_options[key] = value
    return agent_options


def _require_prices(agent: str, agent_options: dict[str, object]) -> None:
    """Refuse a budget in dollars for an agent without prices: its cost is unknown."""
    if getattr(make_agent(agent, agent_options), "priceless", False):
        raise ArenaError(
            f"a budget in dollars needs prices, and {agent_options.get('model') or 'the model'} has none here: give "
            "--agent-option price_in=... --agent-option price_out=... (dollars per million tokens)"
        )


def _run_folder(name: str | None, fresh: bool, agent: str, identity: object) -> Path:
    """The folder of the run, by its name or by a hash of the command's arguments."""
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()[:8]
    base = name or f"{agent.replace(':', '.')}-{digest}"
    folder = results_directory() / base
    number = 2
    while fresh and folder.exists():
        folder, number = results_directory() / f"{base}-{number}", number + 1
    return folder
