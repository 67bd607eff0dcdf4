"""`srearena snapshot`: look into recorded incidents and see whether they can be relied on."""

from __future__ import annotations

import json
from pathlib import Path

import click

from srearena.snapshots import SnapshotError, find_snapshots, open_snapshot
from srearena.snapshots.inspection import Inspection, inspect

_DIRECTORY = click.argument("directory", type=click.Path(path_type=Path))
_CACHE = click.option("--cache", type=click.Path(file_okay=False, path_type=Path), help="Where to keep columns.")
_JSON = click.option("--json", "as_json", is_flag=True, help="As one JSON document per snapshot.")


@click.group()
def command() -> None:
    """Check, show and tidy recorded incidents."""


def _inspections(directory: Path, cache: Path | None) -> list[Inspection]:
    places = find_snapshots(directory)
    if not places:
        raise SnapshotError(f"no snapshot at or under {directory}: nothing there looks like alerts, events, or tables")
    found = []
    for place in places:
        with open_snapshot(place, cache=cache) as snapshot:
            found.append(inspect(snapshot))
    return found


@command.command()
@_DIRECTORY
@_CACHE
@_JSON
def info(directory: Path, cache: Path | None, as_json: bool) -> None:
    """Show what the snapshots at or under DIRECTORY hold."""
    for found in _inspections(directory, cache):
        if as_json:
            click.echo(json.dumps(found.as_document()))
            continue
        key = f"answer key: {found.answer_key}" if found.answer_key else "no answer key"
        click.echo(f"{found.directory} ({found.form} layout, {key})")
        for table in found.tables:
            size = f"{table.bytes / 1e6:.1f} MB"
            span = f"{table.first} .. {table.last}" if table.first else "no times"
            click.echo(f"  {table.table:<8} {table.rows:>10} rows  {size:>10} in {table.files} files  {span}")


@command.command()
@_DIRECTORY
@_CACHE
@_JSON
def check(directory: Path, cache: Path | None, as_json: bool) -> None:
    """Read everything at or under DIRECTORY and say what is odd; exit 1 if something cannot be used."""
    useless = False
    for found in _inspections(directory, cache):
        useless = useless or bool(found.problems)
        if as_json:
            click.echo(json.dumps(found.as_document()))
            continue
        verdict = "cannot be used" if found.problems else "odd" if found.oddities else "sound"
        click.echo(f"{found.directory}: {verdict}")
        for label, lines in (("problem", found.problems), ("odd", found.oddities)):
            for line in lines:
                click.echo(f"  {label}: {line}")
    if useless:
        raise click.exceptions.Exit(1)


@command.command()
@_DIRECTORY
@_CACHE
def clean(directory: Path, cache: Path | None) -> None:
    """Remove the columns kept for the snapshots at or under DIRECTORY; they are made again when needed."""
    for place in find_snapshots(directory):
        with open_snapshot(place, cache=cache) as snapshot:
            snapshot.cache.remove()
        click.echo(f"{place}: columns removed")
