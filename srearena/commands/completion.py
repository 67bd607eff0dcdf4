"""`srearena completion`: the script with which a shell completes `srearena` commands."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(invocation: click.Context, shell: str) -> None:
    """Print the completion script for SHELL: commands, options, problems, agents and runs.

    bash, in ~/.bashrc: eval "$(srearena completion bash)". zsh, in ~/.zshrc: the same with zsh. fish:
    srearena completion fish > ~/.config/fish/completions/srearena.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(invocation.find_root().command, {}, "srearena", "_SREARENA_COMPLETE").source())
