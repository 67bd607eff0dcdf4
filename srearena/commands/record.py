"""`srearena record`: records problems as snapshots of incidents."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import click

from srearena.backends import backend_options, chosen_config
from srearena.conductor.episode.spec import Timeline
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.trials.processes import in_processes, with_signals
from srearena.errors import SreArenaError
from srearena.observer.recorder import LAYOUTS, Recorder
from srearena.observer.recording.data_set import DataSet, Scenario, verify_files
from srearena.option_types import AMOUNT, COUNT, POSITIVE, SEED

_Result = tuple[Scenario, float, str]
_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.argument("problems", nargs=-1, metavar="[PROBLEM]...")
@click.option("--all", "everything", is_flag=True, help="All problems, or all that the PROBLEM patterns match.")
@click.option("--out", type=_DIRECTORY, required=True, help="The snapshot's directory; with --all, the data set's.")
@click.option("--answers", type=_DIRECTORY, help="Directory for the answer key; OUT-answers by default.")
@click.option(
    "--with-answer", is_flag=True, help="Put the answer key into the snapshot's directory, as older recorders did."
)
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--before", type=AMOUNT, default=300.0, show_default=True, help="Seconds of healthy operation to record.")
@click.option("--after", type=POSITIVE, default=600.0, show_default=True, help="Seconds with the fault.")
@click.option("--parallel", type=COUNT, default=1, show_default=True, help="With --all: number of parallel recordings.")
@click.option("--itbench-names", is_flag=True, help="Namespaces as in ITBench's data set: otel-demo for the shop.")
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    default=LAYOUTS[0],
    show_default=True,
    help="itbench: as ITBench's present recorder, with raw/ and objects every five minutes.",
)
@click.option("--check", is_flag=True, help="Record nothing; compare the data set at OUT with its manifest.")
@backend_options
def command(
    problems: tuple[str, ...],
    everything: bool,
    out: Path,
    answers: Path | None,
    with_answer: bool,
    seed: int,
    before: float,
    after: float,
    parallel: int,
    itbench_names: bool,
    layout: str,
    check: bool,
    **where: Any,
) -> None:
    """Run a PROBLEM and record it as a snapshot; with --all, record a data set. The same command again resumes it."""
    if check:
        _check(out)
        return
    if min(before, after) < 60:
        raise ArenaError("a recording needs at least 60 seconds before and after the fault")
    timeline = Timeline(before=before, after=after)
    registry = ProblemRegistry()
    config = chosen_config(**where)
    if everything:
        if with_answer:
            raise ArenaError("--with-answer works with one problem; a data set keeps its answers in another directory")
        if parallel > 1 and not config.embedded:
            raise ArenaError("a real cluster holds one recording at a time: use --parallel 1")
        chosen = registry.match(problems) if problems else registry.get_problem_ids()
        answers_directory = answers or out.with_name(f"{out.name}-answers")
        recorder = Recorder(timeline=timeline, config=config, itbench_names=itbench_names, layout=layout)
        _data_set(DataSet(out, answers_directory, seed=seed), chosen, recorder, parallel)
        return
    if len(problems) != 1:
        raise ArenaError("which problem? Name one, or use --all for a data set of many; `srearena problems` lists them")
    answers_directory = out if with_answer else answers or out.with_name(f"{out.name}-answers")
    recorder = Recorder(seed=seed, timeline=timeline, config=config, itbench_names=itbench_names, layout=layout)
    problem = registry.get_problem(registry.identify(problems[0]))
    recording = recorder.record(problem, out, answers_directory, lambda text: click.echo(text, err=True))
    rows = ", ".join(f"{count} {kind}" for kind, count in recording.rows.items())
    click.echo(f"{recording.directory}: {rows}")
    click.echo(f"answer key: {recording.answer_key}")


def _check(out: Path) -> None:
    differences = verify_files(out)
    for line in differences:
        click.echo(line)
    click.echo("differs from its manifest" if differences else "matches its manifest")
    if differences:
        raise click.exceptions.Exit(1)


def _data_set(data_set: DataSet, chosen: list[str], recorder: Recorder, parallel: int) -> None:
    plan = data_set.plan(chosen)
    waiting = [scenario for scenario in plan if not data_set.done(scenario)]
    if len(waiting) < len(plan):
        click.echo(f"{len(plan) - len(waiting)} of {len(plan)} scenarios are recorded already", err=True)
    failed = 0
    work = partial(_record_one, data_set, recorder)
    recorded = (
        (work(scenario) for scenario in waiting)
        if parallel <= 1
        else in_processes(partial(with_signals, work), waiting, parallel)
    )
    try:
        with closing(recorded):  # no process may finish a scenario after the manifest is written
            for number, (scenario, seconds, complaint) in enumerate(recorded, 1):
                failed += bool(complaint)
                status = f"not recorded: {complaint}" if complaint else f"recorded in {seconds:.0f} s"
                click.echo(f"[{number}/{len(waiting)}] {scenario.name} ({scenario.problem}) {status}", err=True)
    finally:
        manifest = data_set.close()
    click.echo(f"{len(plan) - failed} scenarios in {data_set.out}; checksums in {manifest.name}")
    click.echo(f"answers: {data_set.answers}")
    if failed:
        raise click.exceptions.Exit(1)


def _record_one(data_set: DataSet, recorder: Recorder, scenario: Scenario) -> _Result:
    """Record one scenario with its own seed, so that generated names differ between scenarios."""
    began = monotonic()
    recorder = replace(recorder, seed=data_set.seed + scenario.number)
    try:
        problem = ProblemRegistry().get_problem(scenario.problem)
        data_set.record(scenario, lambda out, answers: recorder.record(problem, out, answers))
    except SreArenaError as failure:
        return scenario, monotonic() - began, str(failure)
    return scenario, monotonic() - began, ""
