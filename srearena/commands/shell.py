"""`srearena shell`: a person in the agent's place."""

from __future__ import annotations

import click

from srearena.conductor.console import Console


@click.command()
@click.option("--seed", default=0, show_default=True)
def command(seed: int) -> None:
    """Solve problems yourself: start one, look around with kubectl, submit."""
    Console(click.echo, seed=seed).loop()
