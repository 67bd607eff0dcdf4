"""Which episodes begin with the same healthy system, so that it has to be prepared only once for all of them."""

from __future__ import annotations

import json

from srearena.conductor.episode.agent_access import access_to
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.problems.base import Problem


def healthy_key(problem: Problem, spec: EpisodeSpec) -> str:
    """A text that is equal where the healthy systems are: all that decides one up to the recording of its baseline.

    `spec` is the one of the episode, with what the problem pins.
    """
    app, phases = problem.app, spec.phases
    return json.dumps(
        {
            "application": [type(app).__qualname__, str(app.metadata_path)],
            "set up": [problem.id, spec.variant] if problem.needs_set_up else None,
            "load": dict(problem.load),
            "access": repr(access_to(problem, read_only=spec.read_only)),
            "seed": spec.seed,
            "noise": spec.noise,
            "time": [spec.start, spec.speed, phases.before, phases.total + problem.arrival_seconds],
            "backend": spec.backend.model_dump(),
        },
        sort_keys=True,
        default=str,
    )
