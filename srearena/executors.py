"""The options that select where trials and proofs are executed: `--executor`, `--ray-address`, `--ray-cpus`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import click

from srearena.option_types import POSITIVE
from srearena.ray_machines import RayMachines

F = TypeVar("F", bound=Callable[..., Any])


def executor_options(command: F) -> F:
    """Add the options to a command; it gets `executor`, `ray_address` and `ray_cpus`."""
    options = (
        click.option(
            "--executor",
            type=click.Choice(["local", "ray"]),
            default="local",
            show_default=True,
            help="Where: on this machine, or on those of a Ray cluster.",
        ),
        click.option(
            "--ray-address", metavar="ADDRESS", help="Of the Ray cluster; by default the one of this machine."
        ),
        click.option(
            "--ray-cpus",
            type=POSITIVE,
            default=1.0,
            show_default=True,
            help="CPUs that Ray reserves for a trial or a proof.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def machines_for(executor: str, address: str | None, cpus: float) -> Iterator[RayMachines | None]:
    """The machines of the Ray cluster; None for this machine."""
    if executor != "ray":
        yield None
        return
    with RayMachines(address, cpus) as machines:
        for line in machines.warnings():
            click.echo(line, err=True)
        yield machines
