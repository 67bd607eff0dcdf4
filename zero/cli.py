"""The `zero` command: `zero [ZERO'S OPTIONS] -- [THE CLI'S ARGUMENTS]`.

Everything after the first `--` is for the coding CLI: `exec` for a run to the end (without it, an interactive session),
`-m MODEL`, options it knows, and a query. What goes wrong is one line; exit codes are those of `zero.outcomes`.
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
from zero.answers import FORMS
from zero.outcomes import Outcome, RunResult
from zero.providers import WIRES
from zero.record import harmless
from zero.request import SANDBOXES, Request
from zero.runner import run
from zero.trajectory import Prices

SETUP_PROBLEM = 1


def _say(line: str) -> None:
    click.echo(f"zero: {line}", err=True)


def _variables(_: click.Context, __: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for item in given:
        key, equals, value = item.partition("=")
        if not equals or not key.isidentifier():
            raise click.BadParameter(f"{item!r} is not KEY=VALUE")
        found[key.upper()] = value
    return found


_DIRECTORY = click.Path(path_type=Path)


@click.command(
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Exit codes: 0 a valid output; 1 set-up problem; 2 wrong usage; 3 no valid output; 4 the CLI failed; "
    "5 turns; 6 cost; 124 timeout; 130 interrupted; 143 terminated. An interactive session has the CLI's own.",
)
@click.option("-w", "--workspace", type=_DIRECTORY, required=True, help="The agent's directory; made if need be.")
@click.option("-r", "--read-only-dir", "read_only_dirs", type=_DIRECTORY, multiple=True, help="Evidence; repeatable.")
@click.option("--prompt-file", "prompt", help="A prompt file, or the name of one of ours.")
@click.option("-V", "--variable", "variables", multiple=True, callback=_variables, help="KEY=VALUE for the prompt.")
@click.option("--cli", default="codex", help="codex, claude, gemini, opencode, command, or a plug-in's.")
@click.option("--command", default="", help="The command template, for --cli command.")
@click.option("--program", default="", help="The CLI's executable, if not the one on the PATH.")
@click.option("--mcp-servers", type=_DIRECTORY, multiple=True, help="A TOML file with further MCP servers.")
@click.option("--provider", help="Who serves the model: litellm, openai, openrouter, azure, anthropic, google ...")
@click.option("--base-url", default="", help="The provider's address.")
@click.option("--api-key-env", "key_variable", default="", help="The name of the variable that holds the key.")
@click.option("--wire-api", type=click.Choice(["", *WIRES]), default="", help="chat goes through LiteLLM for Codex.")
@click.option("--litellm-config", type=_DIRECTORY, help="Start a LiteLLM proxy from this file for the run.")
@click.option("--litellm", default="litellm", help="LiteLLM's executable.")
@click.option("--collect-traces", is_flag=True, help="Collect the CLI's OTLP telemetry in traces/traces.jsonl.")
@click.option("--otel-port", default=0, help="Port to collect on; 0 is any free one.")
@click.option("--output-file", default="agent_output.json", help="Where in the workspace the output is expected.")
@click.option("--output-form", type=click.Choice(FORMS), help="What it must be; by default as the prompt says.")
@click.option("--max-retries", type=click.IntRange(0), default=5, help="How often the agent is resumed for its output.")
@click.option("--timeout", type=click.FloatRange(0, min_open=True), help="Seconds for the whole run.")
@click.option("--max-cost", type=click.FloatRange(0, min_open=True), help="USD for the whole run.")
@click.option("--max-turns", type=click.IntRange(1), help="Turns of the model for the whole run.")
@click.option("--price-input", type=click.FloatRange(0), help="USD per million prompt tokens.")
@click.option("--price-output", type=click.FloatRange(0), help="USD per million completion tokens.")
@click.option("--price-cached", type=click.FloatRange(0), help="USD per million cached prompt tokens.")
@click.option("--sandbox", type=click.Choice(SANDBOXES), default="auto", help="require refuses to run without one.")
@click.option("--allow-endpoint", "endpoints", multiple=True, help="host:port or URL the sandbox lets through.")
@click.option("--expose", "exposed", type=_DIRECTORY, multiple=True, help="A directory the sandbox shows, read-only.")
@click.option("--kubeconfig", type=_DIRECTORY, help="The cluster that the agent may reach, through the sandbox too.")
@click.option("--pass-env", "passed_variables", multiple=True, help="A variable the agent's process is to have.")
@click.option("--dry-run", is_flag=True, help="Check everything and build the workspace, start nothing.")
@click.option("-v", "--verbose", is_flag=True, help="Show what the CLI prints.")
@click.pass_context
def command(context: click.Context, /, **options: Any) -> None:
    """Give a coding CLI a workspace and get a diagnosis back: zero [OPTIONS] -- exec -m MODEL ["query"]"""
    prices = [options.pop(f"price_{name}") for name in ("input", "output", "cached")]
    if (prices[0] is None) != (prices[1] is None):
        raise click.UsageError("--price-input and --price-output go together")
    if prices[0] is not None:
        options["prices"] = Prices(prices[0], prices[1], prices[2])
    result = run(Request(cli_args=tuple(context.obj), **options), _say)
    _tell(result)
    context.exit(result.exit_code)


def _tell(result: RunResult) -> None:
    if result.outcome is Outcome.ANSWERED:
        cost = "" if result.usage.cost_usd is None else f", {result.usage.cost_usd:.4f} USD"
        tokens = f"{result.usage.prompt} + {result.usage.completion} tokens{cost}"
        _say(f"{result.output} ({result.attempts} attempt(s), {result.turns} turns, {tokens}, {result.seconds:.1f} s)")
    elif result.outcome not in (Outcome.PREPARED, Outcome.CONVERSED):
        why = f": {harmless('; '.join(result.complaints))}" if result.complaints else ""
        _say(f"{result.outcome}{why} (see {result.workspace / 'traces'})")


class _Signals:
    """The first Ctrl-C or SIGTERM ends the run in good order; further ones do not disturb that."""

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
    own, cli_args = arguments[:split], arguments[split + 1 :]
    signals = _Signals()
    before = {number: signal.signal(number, signals) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = command.main(own, prog_name="zero", standalone_mode=False, obj=cli_args)
        return 143 if signals.received == signal.SIGTERM else int(code or 0)
    except click.exceptions.Abort:
        code = 143 if signals.received == signal.SIGTERM else 130
        _say("stopped")
        return code
    except click.ClickException as problem:
        problem.show()
        return problem.exit_code
    except SreArenaError as problem:
        _say(harmless(str(problem)))
        return SETUP_PROBLEM
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
