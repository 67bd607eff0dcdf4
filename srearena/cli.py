"""The `srearena` command: one subcommand per module of `srearena.commands`, and the other commands of the package.

An error that the user can act on is one line on standard error and an exit code; `--debug` shows the traceback.
"""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
import sys
from importlib.metadata import entry_points
from typing import Any

import click

from srearena import commands
from srearena.backends import backend_options
from srearena.errors import SreArenaError

_INTERRUPTED = 130


_SCRIPTS = {
    "judge": ("itbench-eval", "Grade diagnoses of incidents: `itbench-eval`."),
    "leaderboard": ("itbench-leaderboard", "Run agents on incidents and rank them: `itbench-leaderboard`."),
    "tools": ("sre-tools", "Diagnostic tools over recorded incidents: `sre-tools`."),
    "zero": ("zero", "Run a coding CLI as the agent: `zero`."),
}
"""Commands of the package that have a name of their own: found by entry point, since they import this one."""


class _Commands(click.Group):
    """Imports a command's module only when that command runs, so that `srearena` starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        modules = (module.name.replace("_", "-") for module in pkgutil.iter_modules(commands.__path__))
        return sorted({*modules, *_SCRIPTS})

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=2)
            hint = f": did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"there is no command {args[0]!r}{hint or ', `srearena --help` lists them'}")
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _SCRIPTS:
            return _Script(*_SCRIPTS[cmd_name])
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{commands.__name__}.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command


class _Script(click.Command):
    """A command that passes all its arguments, `--help` and `--` too, to a script of the package."""

    def __init__(self, name: str, purpose: str) -> None:
        super().__init__(name, callback=self._call, help=purpose, add_help_option=False)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return ctx.args

    def _call(self) -> None:
        found = list(entry_points(group="console_scripts", name=str(self.name)))
        if not found:
            raise SreArenaError(f"{self.name} is not installed: install the package again")
        sys.argv = [str(self.name), *click.get_current_context().args]
        sys.exit(found[0].load()())


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="srearena")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
@backend_options
@click.pass_context
def cli(invocation: click.Context, /, debug: bool, **where: Any) -> None:
    """Put AI agents for site reliability engineering to the test."""
    invocation.obj = {"debug": debug}


def run(argv: list[str]) -> None:
    """Run a command line, and exit with its status."""
    debug = "--debug" in argv or bool(os.environ.get("SREARENA_DEBUG"))
    try:
        colour = False if os.environ.get("NO_COLOR") else None  # None: colours on terminals only
        status = cli(
            argv, prog_name="srearena", standalone_mode=False, color=colour
        )  # click returns the code of an Exit
        if isinstance(status, int):
            sys.exit(status)
    except click.exceptions.Exit as end:
        sys.exit(end.exit_code)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(_INTERRUPTED)
    except SreArenaError as problem:
        if debug:
            raise
        click.echo(f"Error: {problem}", err=True)
        sys.exit(1)
