"""`srearena shell`: the interactive console."""

from __future__ import annotations

from typing import Any

import click

from srearena.backends import backend_options, chosen_config
from srearena.conductor.serving.console import Console
from srearena.option_types import SEED


@click.command()
@click.option("--seed", type=SEED, default=0, show_default=True)
@backend_options
def command(seed: int, **where: Any) -> None:
    """Solve problems yourself: start one, investigate with kubectl, submit."""
    Console(click.echo, seed=seed, config=chosen_config(**where)).loop()
