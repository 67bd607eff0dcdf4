"""`srearena verify`: proves that problems are valid."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import click

from srearena.backends import backend_options, chosen_config
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.trials.processes import in_processes
from srearena.conductor.validity.verification import can_verify, verify


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All problems.")
@click.option("--parallel", default=2, show_default=True, help="Number of parallel proofs.")
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per problem.")
@backend_options
def command(ids: tuple[str, ...], everything: bool, parallel: int, seed: int, as_json: bool, **where: Any) -> None:
    """Prove that problems are valid: IDS or patterns, or --all of them. Exit 1 if one is not."""
    if missing := can_verify():
        raise ArenaError(missing)
    if not ids and not everything:
        raise ArenaError("which problems? Name some, or use --all")
    registry = ProblemRegistry()
    chosen = registry.get_problem_ids() if everything else registry.match(ids)
    config = chosen_config(**where)
    invalid = 0
    for proof in in_processes(partial(verify, seed=seed, config=config), chosen, parallel if config.embedded else 1):
        invalid += not proof["valid"]
        if as_json:
            click.echo(json.dumps(proof))
            continue
        mark = click.style("valid  ", fg="green") if proof["valid"] else click.style("INVALID", fg="red")
        passed = sum(proof["checks"].values())
        click.echo(f"{proof['id']:<58} {mark} {passed}/{len(proof['checks'])} checks {proof['seconds']:6.1f} s")
        for reason in proof["reasons"]:
            click.echo(f"    {reason}")
    if not as_json:
        click.echo(f"\n{len(chosen) - invalid} of {len(chosen)} problems are valid")
    if invalid:
        raise click.exceptions.Exit(1)
