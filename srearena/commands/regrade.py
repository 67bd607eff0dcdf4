"""`srearena regrade`: grades stored trials with the current graders."""

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
    """Grade the trials of RUN again from the stored submissions.

    Mitigations keep their verdict: they are graded by the behaviour of a system that no longer exists.
    """
    folder, registry = find_run(run), ProblemRegistry()
    changed, kept, documents = 0, 0, []
    for document in list(read_trials(folder)):
        regraded = regrade(folder, document, registry) if document.get("stages") else document
        documents.append(regraded)
        changed += regraded["outcome"] != document["outcome"]
        kept += len(regraded.get("kept", ()))
        if as_json:
            summary = {key: regraded[key] for key in ("problem", "trial", "outcome", "grader", "scores")}
            click.echo(json.dumps({**summary, "kept": regraded.get("kept", [])}))
        elif regraded["outcome"] != document["outcome"]:
            click.echo(f"{regraded['problem']} #{regraded['trial']}: {document['outcome']} -> {regraded['outcome']}")
    write_summary(folder, documents)
    if not as_json:
        click.echo(f"{len(documents)} trials graded again, {changed} outcomes changed")
        if kept:
            click.echo(f"mitigation verdicts kept: {kept} (they need the running system; run the trials again)")
