"""`srearena leak-check`: searches everything an agent can read for words that disclose the fault."""

from __future__ import annotations

import json

import click

from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.preparation import embedded_cluster
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.validity.leaks import leaks
from srearena.config import Config
from srearena.option_types import SEED


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All problems.")
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per problem.")
def command(ids: tuple[str, ...], everything: bool, seed: int, as_json: bool) -> None:
    """Search everything an agent can read in episodes of IDS for disclosing words. Exit 1 if there are any."""
    if not ids and not everything:
        raise ArenaError("which problems? Name some, or use --all")
    registry = ProblemRegistry()
    disclosed = False
    for name in registry.get_problem_ids() if everything else registry.match(ids):
        matches = _check(registry, name, seed)
        disclosed = disclosed or bool(matches)
        if as_json:
            click.echo(json.dumps({"id": name, "leaks": matches}))
        else:
            click.echo(f"{name}: {'no leaks' if not matches else f'{len(matches)} leaks'}")
            for line in matches[:20]:
                click.echo(f"    {line}")
    if disclosed:
        raise click.exceptions.Exit(1)


def _check(registry: ProblemRegistry, name: str, seed: int) -> list[str]:
    problem = registry.get_problem(name, seed)
    spec = EpisodeSpec(seed=seed, in_process=True, config=Config()).pinned_by(problem)
    episode = Episode(problem, embedded_cluster(problem, spec), spec)
    try:
        episode.prepare()
        return leaks(episode)
    finally:
        episode.close()
