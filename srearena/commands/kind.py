"""`srearena kind`: a real cluster in containers on this machine."""

from __future__ import annotations

from pathlib import Path

import click

from srearena.cluster.kubernetes import kind

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group()
def command() -> None:
    """Create and delete kind clusters; needs kind and a container engine."""


@command.command()
@click.option("--name", default=kind.NAME, show_default=True)
@click.option(
    "--config", type=_FILE, help="Configuration file of kind; by default the built-in one for this CPU architecture."
)
@click.option("--kubeconfig", type=_FILE, help="File for the kubeconfig; by default kubectl's.")
def up(name: str, config: Path | None, kubeconfig: Path | None) -> None:
    """Create a cluster with three workers."""
    context = kind.up(name, config, kubeconfig)
    click.echo(f"Use it with `srearena run --backend kubernetes --context {context} ...`.")


@command.command()
@click.option("--name", default=kind.NAME, show_default=True)
def down(name: str) -> None:
    """Delete a cluster and everything in it."""
    kind.down(name)
    click.echo(f"The kind cluster {name!r} is deleted.")
