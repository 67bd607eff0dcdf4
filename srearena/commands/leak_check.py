"""`srearena leak-check`: does anything an agent can see give the injection away?"""

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


@click.command()
@click.argument("ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every problem there is.")
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per problem.")
def command(ids: tuple[str, ...], everything: bool, seed: int, as_json: bool) -> None:
    """Read all that an agent could read in episodes of IDS, and look for telling words. Exit 1 if there are any."""
    if not ids and not everything:
        raise ArenaError("which problems? Name some, or use --all")
    registry = ProblemRegistry()
    telling = False
    for name in registry.get_problem_ids() if everything else registry.match(ids):
        found = _found(registry, name, seed)
        telling = telling or bool(found)
        if as_json:
            click.echo(json.dumps({"id": name, "leaks": found}))
        else:
            click.echo(f"{name}: {'nothing' if not found else f'{len(found)} places'}")
            for line in found[:20]:
                click.echo(f"    {line}")
    if telling:
        raise click.exceptions.Exit(1)


def _found(registry: ProblemRegistry, name: str, seed: int) -> list[str]:
    problem, spec = registry.get_problem(name), EpisodeSpec(seed=seed, in_process=True, config=Config())
    episode = Episode(problem, embedded_cluster(problem, spec), spec)
    try:
        episode.prepare()
        return leaks(episode)
    finally:
        episode.close()
