"""`srearena export FOLDER`: writes suites, results and trajectories: as Parquet, or in formats of Harbor."""

from __future__ import annotations

import json
from pathlib import Path

import click

from srearena import completions
from srearena.conductor.results.store import find_run
from srearena.frameworks.harbor import export_tasks, trajectories
from srearena.frameworks.incidents import select_problems
from srearena.frameworks.parquet import export
from srearena.option_types import SEED


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--as",
    "kind",
    type=click.Choice(["parquet", "harbor"]),
    default="parquet",
    show_default=True,
    help="Parquet files with a data card, or tasks and ATIF trajectories for Harbor.",
)
@click.option("--suite", "suites", multiple=True, default=("full",), show_default=True, help="Can be repeated.")
@click.option("--run", "runs", multiple=True, shell_complete=completions.runs, help="A run; can be repeated.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Of the tasks for Harbor.")
@click.option("--image", default="srearena", show_default=True, help="Image of the arena in the tasks for Harbor.")
def command(folder: Path, kind: str, suites: tuple[str, ...], runs: tuple[str, ...], seed: int, image: str) -> None:
    """Write problems of suites, and results and trajectories of runs, into FOLDER."""
    if kind == "harbor":
        tasks = export_tasks(folder / "tasks", select_problems(suites), seed, image)
        click.echo(f"{folder / 'tasks'}  {len(tasks)} tasks")
        written = 0
        for run in map(find_run, runs):
            place = folder / "trajectories" / run.name
            place.mkdir(parents=True, exist_ok=True)
            for name, document in trajectories(run):
                (place / name).write_text(json.dumps(document, indent=1))
                written += 1
        if runs:
            click.echo(f"{folder / 'trajectories'}  {written} trajectories")
        return
    counts = export(folder, suites, [find_run(run) for run in runs])
    for table, count in counts.items():
        click.echo(f"{folder / table}.parquet  {count} rows")
    click.echo(f'Load a table: datasets.load_dataset("{folder}", "results")')
