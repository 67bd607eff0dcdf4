"""`srearena export FOLDER`: writes suites, results and trajectories as Parquet files."""

from __future__ import annotations

from pathlib import Path

import click

from srearena import completions
from srearena.conductor.results.store import find_run
from srearena.frameworks.parquet import export


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--suite", "suites", multiple=True, default=("full",), show_default=True, help="Can be repeated.")
@click.option("--run", "runs", multiple=True, shell_complete=completions.runs, help="A run; can be repeated.")
def command(folder: Path, suites: tuple[str, ...], runs: tuple[str, ...]) -> None:
    """Write problems of suites, and results and trajectories of runs, as Parquet files with a data card into FOLDER."""
    counts = export(folder, suites, [find_run(run) for run in runs])
    for table, count in counts.items():
        click.echo(f"{folder / table}.parquet  {count} rows")
    click.echo(f'Load a table: datasets.load_dataset("{folder}", "results")')
