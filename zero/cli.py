"""The `zero` command: `zero [OPTIONS OF ZERO] -- [ARGUMENTS OF THE CLI]`.

Arguments after the first `--` are for the coding CLI: `exec` for a non-interactive run (without it, the session is
interactive), `-m MODEL`, options of the CLI, and a query. Errors are one line; exit codes are in `zero.outcomes`.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import click

from srearena.errors import SreArenaError
from srearena.option_types import AMOUNT, COUNT, PORT, POSITIVE
from zero.answers import FORMS
from zero.outcomes import Outcome, RunResult
from zero.providers import WIRE_FORMATS
from zero.record import printable
from zero.request import SANDBOXES, Request
from zero.runner import run
from zero.trajectory import Prices

SETUP_PROBLEM = 1


def _say(line: str) -> None:
    click.echo(f"zero: {line}", err=True)


def _variables(_: click.Context, __: click.Parameter, values: Sequence[str]) -> dict[str, str]:
    variables = {}
    for item in values:
        key, equals, value = item.partition("=")
        if not equals or not key.isidentifier():
            raise click.BadParameter(f"{item!r} is not KEY=VALUE")
        variables[key.upper()] = value
    return variables


_DIRECTORY = click.Path(path_type=Path)


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Exit codes: 0 a valid output; 1 set-up problem; 2 wrong usage; 3 no valid output; 4 the CLI failed; "
    "5 turns; 6 cost; 124 timeout; 130 interrupted; 143 terminated. An interactive session has the CLI's own.",
)
@click.option("-w", "--workspace", type=_DIRECTORY, required=True, help="The agent's directory; created if missing.")
@click.option("-r", "--read-only-dir", "read_only_dirs", type=_DIRECTORY, multiple=True, help="Evidence; repeatable.")
@click.option("--prompt-file", "prompt", help="A prompt file, or the name of a built-in one.")
@click.option("-V", "--variable", "variables", multiple=True, callback=_variables, help="KEY=VALUE for the prompt.")
@click.option("--cli", default="codex", help="codex, claude, gemini, opencode, command, or a plug-in.")
@click.option("--command", default="", help="Command template for --cli command.")
@click.option("--program", default="", help="Executable of the CLI, if not the one on the PATH.")
@click.option("--mcp-servers", type=_DIRECTORY, multiple=True, help="TOML file with additional MCP servers.")
@click.option("--provider", help="Model provider: litellm, openai, openrouter, azure, anthropic, google ...")
@click.option("--base-url", default="", help="Base URL of the provider.")
@click.option("--api-key-env", "key_variable", default="", help="Name of the environment variable with the key.")
@click.option(
    "--wire-api",
    type=click.Choice(["", *WIRE_FORMATS]),
    default="",
    help="Wire format; chat uses a LiteLLM proxy for Codex.",
)
@click.option("--litellm-config", type=_DIRECTORY, help="Start a LiteLLM proxy with this configuration for the run.")
@click.option("--litellm", default="litellm", help="Executable of LiteLLM.")
@click.option("--collect-traces", is_flag=True, help="Collect the CLI's OTLP telemetry in traces/traces.jsonl.")
@click.option("--otel-port", type=PORT, default=0, help="Port of the collector; 0 for any free port.")
@click.option("--output-file", default="agent_output.json", help="Output file in the workspace.")
@click.option("--output-form", type=click.Choice(FORMS), help="Required format; default: the prompt's.")
@click.option(
    "--max-retries", type=click.IntRange(0), default=5, help="How often the agent is resumed for a valid output."
)
@click.option("--timeout", type=POSITIVE, help="Limit of the run in seconds.")
@click.option("--max-cost", type=POSITIVE, help="Limit of the run in USD.")
@click.option("--max-turns", type=COUNT, help="Limit of the run in turns of the model.")
@click.option("--price-input", type=AMOUNT, help="USD per million prompt tokens.")
@click.option("--price-output", type=AMOUNT, help="USD per million completion tokens.")
@click.option("--price-cached", type=AMOUNT, help="USD per million cached prompt tokens.")
@click.option(
    "--sandbox", type=click.Choice(SANDBOXES), default="auto", help="require fails if no sandbox is available."
)
@click.option("--allow-endpoint", "endpoints", multiple=True, help="host:port or URL that the sandbox allows.")
@click.option(
    "--expose", "exposed", type=_DIRECTORY, multiple=True, help="Additional read-only directory in the sandbox."
)
@click.option("--kubeconfig", type=_DIRECTORY, help="Cluster that the agent may reach, also from the sandbox.")
@click.option("--pass-env", "passed_variables", multiple=True, help="Environment variable to pass to the agent.")
@click.option("--dry-run", is_flag=True, help="Check everything and build the workspace without starting the CLI.")
@click.option("-v", "--verbose", is_flag=True, help="Show the CLI's output.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Run a coding CLI as the agent and validate its diagnosis: zero [OPTIONS] -- exec -m MODEL ["query"]"""
    prices = [options.pop(f"price_{name}") for name in ("input", "output", "cached")]
    if (prices[0] is None) != (prices[1] is None):
        raise click.UsageError("--price-input and --price-output go together")
    if prices[0] is not None:
        options["prices"] = Prices(prices[0], prices[1], prices[2])
    result = run(Request(cli_args=tuple(context.obj), **options), _say)
    _print_result(result)
    context.exit(result.exit_code)


def _print_result(result: RunResult) -> None:
    if result.outcome is Outcome.ANSWERED:
        cost = "" if result.usage.cost_usd is None else f", {result.usage.cost_usd:.4f} USD"
        tokens = f"{result.usage.prompt} + {result.usage.completion} tokens{cost}"
        _say(f"{result.output} ({result.attempts} attempt(s), {result.turns} turns, {tokens}, {result.seconds:.1f} s)")
    elif result.outcome not in (Outcome.PREPARED, Outcome.CONVERSED):
        why = f": {printable('; '.join(result.complaints))}" if result.complaints else ""
        _say(f"{result.outcome}{why} (see {result.workspace / 'traces'})")


class _Signals:
    """Stop the run cleanly at the first SIGINT or SIGTERM and ignore further ones."""

    def __init__(self) -> None:
        self.received = 0

    def __call__(self, number: int, _: FrameType | None) -> None:
        self.received = number
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `zero`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    split = arguments.index("--") if "--" in arguments else len(arguments)
    zero_args, cli_args = arguments[:split], arguments[split + 1 :]
    signals = _Signals()
    before = {number: signal.signal(number, signals) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = command.main(zero_args, prog_name="zero", standalone_mode=False, obj=cli_args)
        return 143 if signals.received == signal.SIGTERM else int(code or 0)
    except click.exceptions.Abort:
        code = 143 if signals.received == signal.SIGTERM else 130
        _say("stopped")
        return code
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except SreArenaError as problem:
        _say(printable(str(problem)))
        return SETUP_PROBLEM
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
