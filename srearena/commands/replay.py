"""`srearena replay`: makes the world of a finished trial again, at any of its steps, to look around in it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import click

from srearena.conductor.errors import ArenaError
from srearena.conductor.worlds import Journal, load


@click.command()
@click.argument("result", type=click.Path(path_type=Path))
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--step", type=click.IntRange(min=0), help="After this action, 0 for the start; by default after the last."
)
def command(result: Path, words: tuple[str, ...], step: int | None) -> None:
    """Make the world of a trial again from its journal, and open a shell in it, or run COMMAND.

    RESULT is the folder of a trial, or its journal.json; trials on an embedded cluster have one. KUBECONFIG is set in
    the shell, to the agent's access, and to an administrator's after the last submission. Time stands still in the
    cluster.
    """
    journal = Journal.read(result)
    actions = [str(request["action"]) for request in journal.requests if request["do"] == "act"]
    # What came after the last action, such as a submission, ends the agent's access.
    step = len(actions) if step is None else step
    journal = journal.up_to(step)
    with load(journal) as episode:
        addresses = episode.connect()
        if episode.status().finished:
            addresses["kubeconfig"] = episode.observe()["kubeconfig"]
        click.echo(f"{journal.problem}, seed {journal.spec.seed}, step {step} of {len(actions)}", err=True)
        for number, action in enumerate(actions[:step], 1):
            click.echo(f"{number:>4} {action}", err=True)
        for name, address in addresses.items():
            click.echo(f"{name}: {address}", err=True)
        line = list(words) or [os.environ.get("SHELL") or "/bin/sh"]
        try:
            ended = subprocess.run(line, env={**os.environ, "KUBECONFIG": addresses["kubeconfig"]}, check=False)
        except OSError as problem:
            raise ArenaError(f"{line[0]} cannot be run: {problem.strerror}") from problem
    if ended.returncode:
        raise click.exceptions.Exit(ended.returncode if ended.returncode > 0 else 128 - ended.returncode)
