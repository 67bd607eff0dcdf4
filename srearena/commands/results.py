"""`srearena results`: shows the results of runs, and compares two runs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from srearena import completions
from srearena.conductor.errors import ArenaError
from srearena.conductor.results.comparison import as_document, compare
from srearena.conductor.results.store import all_runs, find_run, read_trials, totals
from srearena.conductor.trials.tables import stage_marks
from srearena.paths import results_directory
from srearena.utils.columns import columns
from srearena.utils.status import outcome_colour


@click.command()
@click.argument("arguments", nargs=-1, metavar="[RUN | diff RUN RUN]", shell_complete=completions.runs)
@click.option("--json", "as_json", is_flag=True)
def command(arguments: tuple[str, ...], as_json: bool) -> None:
    """List the runs, show one RUN, or compare two with `diff A B`."""
    if not arguments:
        _list(as_json)
    elif arguments[0] == "diff" and len(arguments) == 3:
        _diff(find_run(arguments[1]), find_run(arguments[2]), as_json)
    elif len(arguments) == 1:
        _show(find_run(arguments[0]), as_json)
    else:
        raise ArenaError("use `srearena results`, `srearena results RUN` or `srearena results diff RUN RUN`")


def _list(as_json: bool) -> None:
    runs = [(path, totals(list(read_trials(path)))) for path in all_runs()]
    if as_json:
        click.echo(json.dumps([{"run": path.name, **figures} for path, figures in runs]))
        return
    if not runs:
        click.echo(f"No results in {results_directory()} yet: `srearena run ID --agent NAME` creates some.")
        return
    rows = [("RUN", "TRIALS", "PASSED")]
    rows += [(path.name, str(f["trials"]), str(f["outcomes"].get("pass", 0))) for path, f in runs]
    for line in columns(rows):
        click.echo(line)


def _show(run: Path, as_json: bool) -> None:
    documents = list(read_trials(run))
    if as_json:
        click.echo(json.dumps({"run": run.name, **totals(documents), "results": documents}))
        return
    for document in documents:
        outcome = click.style(f"{document['outcome']:<18}", fg=outcome_colour(document["outcome"]))
        usage = document.get("usage") or {}
        seconds = usage.get("wall_seconds", 0.0)
        click.echo(
            f"{document['problem']:<52} #{document['trial']} {outcome} {stage_marks(document):<24} "
            f"{usage.get('steps', 0):>3} steps {seconds:7.1f} s"
        )
        if document["outcome"] != "pass" and document.get("reason"):
            click.echo(f"    {document['reason'][:300]}")
        for change in document.get("collateral", ())[:3]:
            click.echo(f"    {change['class']} collateral: {change['change']}")
    figures = totals(documents)
    click.echo(f"\n{figures['outcomes'].get('pass', 0)} of {figures['trials']} trials passed")
    for stage, counts in figures["stages"].items():
        click.echo(f"  {stage:<13} {counts['passed']} of {counts['of']}")
    alarms = figures["false_alarms"]
    if alarms["of"]:
        click.echo(f"  false alarms  {alarms['raised']} of {alarms['of']}")


def _diff(before: Path, after: Path, as_json: bool) -> None:
    first, second = list(read_trials(before)), list(read_trials(after))
    if as_json:
        click.echo(json.dumps(as_document(first, second)))
        return
    rows = [("PROBLEM", before.name, after.name, "")]
    rows += [(c.problem, c.before or "-", c.after or "-", c.kind) for c in compare(first, second)]
    for line in columns(rows):
        click.echo(line)
