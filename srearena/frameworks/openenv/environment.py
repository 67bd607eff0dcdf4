"""`IncidentEnvironment`: one session of a client, with one episode at a time.

The reward comes with the last observation, from the grader. Nothing else of the result is sent: it names the answer.
"""

from __future__ import annotations

import os
from typing import Any

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata, State

from srearena.conductor.results.store import drawn_seed
from srearena.frameworks.incidents import Incident, IncidentPool, framework_spec, select_problems
from srearena.frameworks.openenv.models import IncidentAction, IncidentObservation

PROBLEMS = "SREARENA_PROBLEMS"
"""Environment variable of the server: a suite, or ids and patterns separated by commas."""
STAGES = "SREARENA_STAGES"
"""Environment variable of the server: stages separated by commas."""


def words(variable: str, default: str) -> list[str]:
    return [word.strip() for word in os.environ.get(variable, default).split(",") if word.strip()]


class IncidentEnvironment(Environment[IncidentAction, IncidentObservation, State]):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, pool: IncidentPool | None = None) -> None:
        super().__init__()
        self._problems = select_problems(words(PROBLEMS, "lite"))
        self._pool = pool or IncidentPool(framework_spec(words(STAGES, "")))
        self._incident: Incident | None = None
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, problem: str | None = None, **options: Any
    ) -> IncidentObservation:
        """Start an episode: of `problem`, or of the one of the server's problems that the seed selects."""
        self.close()
        seed = drawn_seed() if seed is None else seed
        chosen = problem or self._problems[seed % len(self._problems)]
        self._incident = self._pool.open(chosen, seed)
        episode = self._incident.episode
        self._state = State(episode_id=episode_id, step_count=0)
        actions = "\n".join(episode.actions.values())
        text = f"{episode.description}\n\n{episode.instructions}\n\n{actions}"
        return IncidentObservation(text=text, question=episode.question)

    def step(self, action: IncidentAction, timeout_s: float | None = None, **options: Any) -> IncidentObservation:
        if self._incident is None:
            return IncidentObservation(text="The episode is over: reset the environment.", done=True, reward=0.0)
        taken = self._incident.episode.act(action.text)
        self._state.step_count = taken.steps
        if not taken.finished:
            return IncidentObservation(text=taken.state, question=taken.question, reward=0.0)
        grade = self._incident.grade("dense", agent="openenv")
        self.close()
        metadata = {"outcome": grade.outcome, "scores": grade.scores}
        return IncidentObservation(text=taken.state, done=True, reward=grade.reward, metadata=metadata)

    @property
    def state(self) -> State:
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        return EnvironmentMetadata(
            name="SREArena", description="Incidents on a simulated Kubernetes cluster, graded by its behaviour."
        )

    def close(self) -> None:
        if self._incident is not None:
            self._incident.close()
            self._incident = None
