"""`srearena regrade`: grade stored trials with today's graders."""

from __future__ import annotations

import json

import click

from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.results.regrading import regrade
from srearena.conductor.results.store import find_run, read_trials, write_summary


@click.command()
@click.argument("run")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per trial.")
def command(run: str, as_json: bool) -> None:
    """Grade the trials of RUN anew from what was submitted.

    Repairs keep the verdict they got then: they are judged by how the system behaves, and that system is gone.
    """
    folder, registry = find_run(run), ProblemRegistry()
    changed, kept, documents = 0, 0, []
    for document in list(read_trials(folder)):
        fresh = regrade(folder, document, registry) if document.get("stages") else document
        documents.append(fresh)
        changed += fresh["outcome"] != document["outcome"]
        kept += len(fresh.get("kept", ()))
        if as_json:
            told = {key: fresh[key] for key in ("problem", "trial", "outcome", "grader", "scores")}
            click.echo(json.dumps({**told, "kept": fresh.get("kept", [])}))
        elif fresh["outcome"] != document["outcome"]:
            click.echo(f"{fresh['problem']} #{fresh['trial']}: {document['outcome']} -> {fresh['outcome']}")
    write_summary(folder, documents)
    if not as_json:
        click.echo(f"{len(documents)} trials graded anew, {changed} outcomes changed")
        if kept:
            click.echo(f"verdicts on repairs kept: {kept} (they need the system as it was then; run the trials again)")
