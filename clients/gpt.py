"""`python3 clients/gpt.py`: run the LLM agent on a problem, with a live transcript.

    python3 clients/gpt.py --problem scale_pod_zero_social_net --model gpt-4.1
    python3 clients/gpt.py --suite 'missing_*' --model anthropic/claude-sonnet-4-5 --budget-usd 5

Keys come from the environment or from `.env` in the working directory. With `--suite` it runs `srearena run`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import click

from srearena.paths import results_directory

if __name__ == "__main__":  # works as a script without installing the project
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from srearena.conductor.agent_process.client import AgentProcess
from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError
from srearena.conductor.preconditions import check_agent
from srearena.conductor.results.store import totals
from srearena.dotenv import environment
from srearena.errors import SreArenaError
from srearena.tracking.weights_and_biases import is_enabled, log_run

DEFAULT_PROBLEM = "scale_pod_zero_social_net"
DEFAULT_MODEL = "gpt-4.1"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--problem", default=DEFAULT_PROBLEM, show_default=True, help="`srearena problems` lists them.")
@click.option("--model", help=f"Default: SREARENA_MODEL, or else {DEFAULT_MODEL}.")
@click.option("--suite", multiple=True, metavar="GLOB", help="Several problems by pattern, instead of one.")
@click.option("--max-steps", default=30, show_default=True)
@click.option("--budget-usd", type=float, help="Limit on the cost of the problem, or of the whole suite.")
@click.option("--variant", default="react", show_default=True, help="react or plan-and-verify.")
@click.option("--tools", default="", help="kubectl, telemetry or sre; default: those of the variant.")
@click.option("--agent-option", "options", multiple=True, metavar="KEY=VALUE", help="See docs/llm-agent.md.")
@click.option("--seed", default=0, show_default=True)
@click.option("--stages", help="Only these stages, separated by commas.")
@click.option("--quiet", is_flag=True, help="No transcript.")
def main(
    problem: str,
    model: str | None,
    suite: tuple[str, ...],
    max_steps: int,
    budget_usd: float | None,
    variant: str,
    tools: str,
    options: tuple[str, ...],
    seed: int,
    stages: str | None,
    quiet: bool,
) -> None:
    """Run an LLM agent on a problem."""
    agent_options = {"variant": variant, "tools": tools, **dict(_pair(option) for option in options)}
    agent_options["model"] = model or environment().get("SREARENA_MODEL") or DEFAULT_MODEL
    if suite:
        words = [*suite, "--agent", "llm", "--max-steps", str(max_steps), "--seed", str(seed)]
        words += [word for key, value in agent_options.items() for word in ("--agent-option", f"{key}={value}")]
        words += ["--stages", stages] if stages else []
        words += ["--budget-usd", str(budget_usd)] if budget_usd is not None else []
        _suite(words)
        return
    _run_problem(problem, agent_options, Limits(steps=max_steps, cost=budget_usd), seed, stages, quiet)


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise ArenaError(f"--agent-option takes KEY=VALUE, not {text!r}")
    return key, value


def _suite(words: list[str]) -> None:
    from srearena.commands.run import command

    command.main(words, prog_name="srearena run", standalone_mode=False)


def _run_problem(
    problem: str, agent_options: dict[str, str], limits: Limits, seed: int, stages: str | None, quiet: bool
) -> None:
    from clients.llm import LlmAgent, Settings

    agent_options = {"transcript": str(not quiet), **agent_options}
    settings = Settings.from_options(agent_options)
    if limits.cost is not None and LlmAgent(settings).priceless:
        raise ArenaError(
            f"a budget in dollars needs prices, and {settings.model} has none here: give "
            "--agent-option price_in=... --agent-option price_out=... (dollars per million tokens)"
        )
    selected = tuple(stages.split(",")) if stages else None
    spec = EpisodeSpec(seed=seed, stages=selected, limits=limits, in_process=True)
    conductor = Conductor(spec, say=lambda text: click.echo(f"... {text}", err=True))
    check_agent("llm", agent_options)
    with AgentProcess("llm", agent_options, echo=sys.stderr) as agent:
        conductor.register_agent(agent, "llm")
        conductor.init_problem(problem)
        result = asyncio.run(conductor.start_problem())
    _track(result, {"problem": problem, "seed": seed, "limits": limits.as_document(), **agent_options})
    used = result["usage"]
    click.echo(f"Outcome: {result['outcome']}. {result['reason']}".rstrip())
    for stage in result["stages"]:
        if stage["verdict"]:
            click.echo(f"  {stage['stage']}: {'passed' if stage['verdict']['passed'] else 'failed'}")
    click.echo(
        f"{used['steps']} steps, {used['tokens_in']:,} tokens in, {used['tokens_out']:,} out, ${used['cost']:.4f}"
    )


def _track(result: dict[str, Any], config: dict[str, Any]) -> None:
    """Log the result to Weights & Biases if `USE_WANDB` is set."""
    variables = environment()
    if is_enabled(variables):
        folder = results_directory() / result["run"]
        click.echo(f"W&B: {log_run(folder, [result], totals([result]), config, variables)}", err=True)


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except click.ClickException as wrong:
        wrong.show()
        sys.exit(wrong.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except SreArenaError as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(1)
