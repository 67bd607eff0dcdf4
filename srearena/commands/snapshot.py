"""`srearena snapshot`: inspects and checks recorded incidents."""

from __future__ import annotations

import json
from pathlib import Path

import click

from srearena.snapshots import SnapshotError, find_snapshots, open_snapshot
from srearena.snapshots.examples import unpack
from srearena.snapshots.inspection import Inspection, inspect

_DIRECTORY = click.argument("directory", type=click.Path(path_type=Path))
_CACHE = click.option(
    "--cache", type=click.Path(file_okay=False, path_type=Path), help="Directory for the column cache."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="As one JSON document per snapshot.")


@click.group()
def command() -> None:
    """Show and check recorded incidents, unpack examples, and clean caches."""


def _inspections(directory: Path, cache: Path | None) -> list[Inspection]:
    directories = find_snapshots(directory)
    if not directories:
        raise SnapshotError(f"no snapshot at or under {directory}: it has no alerts, events or tables")
    inspections = []
    for path in directories:
        with open_snapshot(path, cache=cache) as snapshot:
            inspections.append(inspect(snapshot))
    return inspections


@command.command()
@_DIRECTORY
@_CACHE
@_JSON
def info(directory: Path, cache: Path | None, as_json: bool) -> None:
    """Show the contents of the snapshots at or under DIRECTORY."""
    for inspection in _inspections(directory, cache):
        if as_json:
            click.echo(json.dumps(inspection.as_document()))
            continue
        key = f"answer key: {inspection.answer_key}" if inspection.answer_key else "no answer key"
        click.echo(f"{inspection.directory} ({inspection.form} layout, {key})")
        for table in inspection.tables:
            size = f"{table.bytes / 1e6:.1f} MB"
            span = f"{table.first} .. {table.last}" if table.first else "no times"
            click.echo(f"  {table.table:<8} {table.rows:>10} rows  {size:>10} in {table.files} files  {span}")


@command.command()
@_DIRECTORY
@_CACHE
@_JSON
def check(directory: Path, cache: Path | None, as_json: bool) -> None:
    """Read all snapshots at or under DIRECTORY and report oddities; exit 1 if one cannot be used."""
    unusable = False
    for inspection in _inspections(directory, cache):
        unusable = unusable or bool(inspection.problems)
        if as_json:
            click.echo(json.dumps(inspection.as_document()))
            continue
        verdict = "cannot be used" if inspection.problems else "odd" if inspection.oddities else "sound"
        click.echo(f"{inspection.directory}: {verdict}")
        for label, lines in (("problem", inspection.problems), ("odd", inspection.oddities)):
            for line in lines:
                click.echo(f"  {label}: {line}")
    if unusable:
        raise click.exceptions.Exit(1)


@command.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path("ITBench-Snapshots"))
def examples(directory: Path) -> None:
    """Unpack the six recorded incidents that come with SREArena into DIRECTORY (default: ITBench-Snapshots)."""
    for path in unpack(directory):
        click.echo(path)


@command.command()
@_DIRECTORY
@_CACHE
def clean(directory: Path, cache: Path | None) -> None:
    """Delete the column cache of the snapshots at or under DIRECTORY; it is rebuilt when needed."""
    for path in find_snapshots(directory):
        with open_snapshot(path, cache=cache) as snapshot:
            snapshot.cache.remove()
        click.echo(f"{path}: columns removed")
