"""A small application and problems on it, for tests that need a whole episode within a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from srearena.conductor.episode.episode import Episode
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.preparation import embedded_cluster
from srearena.conductor.episode.spec import EpisodeSpec, Timeline
from srearena.conductor.problems.base import Problem
from srearena.conductor.problems.injected import InjectedProblem
from srearena.conductor.problems.noop import Noop
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.scheduling import ScalePodZero
from srearena.conductor.problems.target_port import TargetPort
from srearena.conductor.session import Session
from srearena.config import Config

SHOP = str(Path(__file__).parent / "corner_shop")
TIMELINE = Timeline(before=60, after=120, deployment=300)

PORT, ZERO, QUIET = "corner_shop_port", "corner_shop_zero", "corner_shop_quiet"
problem(PORT, app=SHOP, service="api")(TargetPort)
problem(ZERO, app=SHOP, service="store")(ScalePodZero)
problem(QUIET, app=SHOP)(Noop)


def shop_problem(kind: type[InjectedProblem], service: str = "api", **options: Any) -> InjectedProblem:
    """A problem of that family, on the corner shop."""
    problem_on_shop = kind(app=SHOP, service=service, **options)
    problem_on_shop.id = f"{kind.family}_corner_shop"
    return problem_on_shop


@contextmanager
def prepared_episode(
    of: Problem,
    *,
    stages: tuple[str, ...] | None = None,
    limits: Limits | None = None,
    session: Session | None = None,
    read_only: bool = False,
) -> Iterator[Episode]:
    """An episode that is prepared up to the agent's start."""
    spec = EpisodeSpec(1, stages, limits or Limits(), TIMELINE, in_process=True, config=Config(), read_only=read_only)
    episode = Episode(of, embedded_cluster(of, spec), spec, session=session)
    try:
        episode.prepare()
        yield episode
    finally:
        episode.close()


def call(text: str) -> str:
    """An action as an agent writes it."""
    return f"I will look.\n```\n{text}\n```"
