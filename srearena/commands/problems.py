"""`srearena problems`: lists problems, without the answers."""

from __future__ import annotations

import json
from typing import get_args

import click

from srearena import completions
from srearena.conductor.problems.metadata import Level, Summary
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.utils.columns import columns


@click.command()
@click.argument("ids", nargs=-1, shell_complete=completions.problems)
@click.option("--app", "application", help="Only of this application (a part of its name is enough).")
@click.option("--level", type=click.Choice(get_args(Level)), help="Only of this level.")
@click.option("--difficulty", type=click.Choice(["easy", "medium", "hard"]))
@click.option("--spoilers", is_flag=True, help="Also show the fault and its remedy.")
@click.option("--json", "as_json", is_flag=True, help="As a JSON list.")
def command(
    ids: tuple[str, ...],
    application: str | None,
    level: str | None,
    difficulty: str | None,
    spoilers: bool,
    as_json: bool,
) -> None:
    """List problems: IDS or patterns, or all of them."""
    registry = ProblemRegistry()
    names = registry.match(ids) if ids else registry.get_problem_ids()
    summaries = [
        summary
        for name in names
        for summary in [registry.get_problem(name).summary()]
        if _matches(summary, application, level, difficulty)
    ]
    if as_json:
        click.echo(json.dumps([summary.as_document(spoilers=spoilers) for summary in summaries], indent=2))
        return
    rows = [("ID", "APPLICATION", "LEVEL", "DIFFICULTY")]
    rows += [(s.id, s.application, s.level, s.difficulty) for s in summaries]
    lines = columns(rows)
    click.echo(lines[0])
    for summary, line in zip(summaries, lines[1:], strict=True):
        click.echo(line)
        if spoilers:
            _spoil(summary)
    click.echo(f"\n{len(summaries)} problems. Try one: srearena shell, or srearena run ID --agent NAME")


def _matches(summary: Summary, application: str | None, level: str | None, difficulty: str | None) -> bool:
    plain = summary.application.lower().replace(" ", "_")
    return (
        (application is None or application.lower().replace("-", "_").replace(" ", "_") in plain)
        and (level is None or summary.level == level)
        and (difficulty is None or summary.difficulty == difficulty)
    )


def _spoil(summary: Summary) -> None:
    hidden = summary.spoilers
    click.echo(f"    {hidden['ground_truth']['explanation']}")
    click.echo(f"    at fault: {', '.join(hidden['ground_truth']['roots']) or 'nothing'}")
    for line in hidden["remedy"].splitlines():
        click.echo(f"    $ {line}")
