"""The `srearena` command: one subcommand per module of `srearena.commands`.

An error that the user can act on is one line on standard error and an exit code; `--debug` shows the traceback.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import sys
from typing import Any

import click

from srearena import commands
from srearena.backends import backend_options
from srearena.errors import SreArenaError

_INTERRUPTED = 130


class _Commands(click.Group):
    """Imports a command's module only when that command runs, so that `srearena` starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(module.name.replace("_", "-") for module in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command = importlib.import_module(f"{commands.__name__}.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command


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
