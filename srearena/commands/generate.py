"""`srearena generate`: makes new incidents and proves each of them."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from time import monotonic
from typing import Any, get_args

import click

from srearena.conductor.errors import ArenaError
from srearena.conductor.generation.generator import INCIDENTS, Generation
from srearena.conductor.generation.space import SpaceSpec
from srearena.conductor.problems.metadata import Difficulty, Level
from srearena.conductor.validity.verification import can_verify
from srearena.option_types import COUNT, SEED

_MOST = 3
_SHORTEST_KEY = 16
_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.command()
@click.option("--count", type=COUNT, default=10, show_default=True, help="Number of valid incidents.")
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--out", type=_DIRECTORY, required=True, help="Directory of the incidents and of all proofs.")
@click.option("--app", "applications", multiple=True, help="Only on this application.")
@click.option("--level", type=click.Choice(get_args(Level)), help="The level of the first fault.")
@click.option("--difficulty", type=click.Choice(get_args(Difficulty)), help="Only of this measured difficulty.")
@click.option("--faults", default="1", show_default=True, metavar="N | N..M", help="Number of faults, up to three.")
@click.option(
    "--noise/--no-noise", default=True, show_default=True, help="Innocent changes before and after the fault."
)
@click.option(
    "--key",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="File with a secret: a held-out set, which cannot be made without it.",
)
@click.option(
    "--not-in", "excluded", type=_DIRECTORY, multiple=True, help="Make none of the incidents in this directory."
)
@click.option("--parallel", type=COUNT, default=os.cpu_count() or 2, show_default=True, help="Number of processes.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per proof, and one with the figures.")
def command(
    count: int,
    seed: int,
    out: Path,
    applications: tuple[str, ...],
    level: str | None,
    difficulty: str | None,
    faults: str,
    noise: bool,
    key: Path | None,
    excluded: tuple[Path, ...],
    parallel: int,
    as_json: bool,
) -> None:
    """Generate incidents and prove each of them. The same command again resumes, also with a larger --count.

    Candidates that are not visible, not solvable, ambiguous, or won by an agent without a diagnosis are discarded.
    """
    if missing := can_verify():
        raise ArenaError(missing)
    spec = SpaceSpec(seed, applications, level or "", _range(faults), noise, _secret(key))
    generation = Generation(spec, count, out, difficulty or "", parallel, excluded)
    began = monotonic()
    fresh = 0

    def watch(proof: dict[str, Any]) -> None:
        nonlocal fresh
        fresh += 1
        if as_json:
            click.echo(json.dumps(proof))
            return
        found = len(generation.chosen())
        mark = click.style("valid    ", fg="green") if proof["valid"] else click.style("discarded", fg="yellow")
        reason = "" if proof["valid"] else f"  {' '.join(proof['reasons'][0].split())[:100]}"
        click.echo(f"[{min(found, count)}/{count}] {proof['id']} {mark} {proof['seconds']:5.1f} s{reason}")

    try:
        chosen = generation.perform(watch)
    except KeyboardInterrupt:
        click.echo(f"\nStopped: all proofs so far are in {out}. The same command resumes.", err=True)
        raise click.exceptions.Exit(130) from None
    figures = generation.figures()
    per_hour = round(fresh / max(monotonic() - began, 0.001) * 3600) if fresh else 0
    if as_json:
        click.echo(json.dumps({"incidents": [incident.id for incident in chosen], "per_hour": per_hour, **figures}))
        return
    click.echo(f"\n{figures['valid']} of {figures['candidates']} candidates are valid ({figures['share']:.0%})")
    for check, number in figures["discarded"].items():
        click.echo(f"  {number:4d} discarded: {check}")
    if fresh:
        click.echo(f"{per_hour} candidates an hour")
    click.echo(f"{len(chosen)} incidents: {out / INCIDENTS}")


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+))?", text.strip())
    least, most = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 1 <= least <= most <= _MOST:
        raise ArenaError(f"--faults takes a number from 1 to {_MOST}, or a range such as 1..{_MOST}: not {text!r}")
    return least, most


def _secret(path: Path | None) -> bytes:
    if path is None:
        return b""
    secret = path.read_bytes().strip()
    if len(secret) < _SHORTEST_KEY:
        raise ArenaError(f"the key in {path} has {len(secret)} characters: a secret has at least {_SHORTEST_KEY}")
    return secret
