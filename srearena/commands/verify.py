"""`srearena verify`: proves that problems are valid."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from srearena.backends import backend_options, chosen_config
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.trials.remote import proofs_on
from srearena.conductor.trials.workers import Task, in_workers
from srearena.conductor.validity import worker
from srearena.conductor.validity.report import write_report
from srearena.conductor.validity.verification import can_verify, verification_spec
from srearena.conductor.validity.worker import request
from srearena.executors import executor_options, machines_for
from srearena.option_types import COUNT, SEED
from srearena.ray_machines import RayMachines


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All problems.")
@click.option("--battery", is_flag=True, help="Also play every cheat and every honest repair.")
@click.option("--runs", is_flag=True, help="Only play two trials: the remedy must pass, doing nothing must fail.")
@click.option("--parallel", type=COUNT, default=2, show_default=True, help="Number of parallel proofs.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="The first seed.")
@click.option("--seeds", type=COUNT, default=1, show_default=True, help="Number of seeds to prove each problem with.")
@click.option(
    "--warm/--cold",
    default=True,
    show_default=True,
    help="Whether proofs on one application are forks of one healthy system, where forks are safe.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per problem and seed.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the table of problems and checks to this file.")
@executor_options
@backend_options
def command(
    ids: tuple[str, ...],
    everything: bool,
    battery: bool,
    runs: bool,
    parallel: int,
    seed: int,
    seeds: int,
    warm: bool,
    as_json: bool,
    report: Path | None,
    executor: str,
    ray_address: str | None,
    ray_cpus: float,
    **where: Any,
) -> None:
    """Prove that problems are valid: IDS or patterns, or --all of them. Exit 1 if one is not."""
    if missing := can_verify():
        raise ArenaError(missing)
    if not ids and not everything:
        raise ArenaError("which problems? Name some, or use --all")
    registry = ProblemRegistry()
    chosen = registry.get_problem_ids() if everything else registry.match(ids)
    config = chosen_config(**where)
    if battery and not config.embedded:
        raise ArenaError("the battery runs on an embedded cluster: leave --backend out")
    if executor == "ray" and not config.embedded:
        raise ArenaError("proofs on a real cluster run on this machine: leave --executor out")
    proofs: list[dict[str, Any]] = []
    with machines_for(executor, ray_address, ray_cpus) as machines:
        for number in range(seed, seed + seeds):
            spec = verification_spec(number, config)
            tasks = [
                Task(problem, spec, request(problem, number, config, runs=runs, battery=battery)) for problem in chosen
            ]
            for proof in _proofs(tasks, parallel if config.embedded else 1, warm, machines):
                proofs.append({**proof, "seed": number})
                _print(proofs[-1], as_json, seeds > 1)
    if report is not None:
        write_report(report, proofs)
    invalid = sum(not proof["valid"] for proof in proofs)
    if not as_json:
        what = "proofs hold" if seeds > 1 else "problems are valid"
        click.echo(f"\n{len(proofs) - invalid} of {len(proofs)} {what}; {_errors(proofs)} environment errors")
    if invalid:
        raise click.exceptions.Exit(1)


def _proofs(tasks: list[Task], parallel: int, warm: bool, machines: RayMachines | None) -> Iterator[dict[str, Any]]:
    if machines is None:
        yield from in_workers(worker.__name__, tasks, parallel, warm=warm)
        return
    for problem, proof in proofs_on(machines, worker.__name__, tasks, warm=warm):
        if proof is None:
            raise ArenaError(f"the proof of {problem} was lost on the Ray cluster, with every machine that tried it")
        yield proof


def _print(proof: dict[str, Any], as_json: bool, with_seed: bool) -> None:
    if as_json:
        click.echo(json.dumps(proof))
        return
    mark = click.style("valid  ", fg="green") if proof["valid"] else click.style("INVALID", fg="red")
    passed = sum(proof["checks"].values())
    name = f"{proof['id']} (seed {proof['seed']})" if with_seed else proof["id"]
    click.echo(f"{name:<58} {mark} {passed}/{len(proof['checks'])} checks {proof['seconds']:6.1f} s")
    for reason in proof["reasons"]:
        click.echo(f"    {reason}")


def _errors(proofs: Iterable[dict[str, Any]]) -> int:
    """Proofs in which a trial ended in an environment error, or none could be played."""
    names = ("environment", "runs without environment error")
    return sum(any(proof["checks"].get(name) is False for name in names) for proof in proofs)
