"""`IncidentEnvironment`: one problem as a Gymnasium environment.

The seed of `reset` is the seed of the world: the same seed and actions give the same observations and rewards. A world
is prepared once for each seed and forked for each episode, so that further episodes of a seed begin at once, also those
of other environments in this process, such as the parts of a vector environment.

Observations are texts: what an agent reads. Actions are texts too, or an action's name with the text of its arguments.
Rewards come from the grader at the end of an episode and never appear in an observation.
"""

from __future__ import annotations

import string
from typing import Any, Literal, SupportsFloat

import gymnasium
from gymnasium import spaces

from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.worlds import Step
from srearena.frameworks.incidents import Incident, IncidentPool, SharedPools

_LONGEST_OBSERVATION = 65_536
_LONGEST_ACTION = 8_192
_CHARACTERS = string.printable
_POOLS = SharedPools()

Observation = str
Action = str | dict[str, Any]
ACTION_NAMES = Toolbox.names()
"""The names behind the numbers of structured actions."""


class IncidentEnvironment(gymnasium.Env[Observation, Action]):
    """One problem, from the first question to the grade.

    `actions`: "text" for `kubectl("get pods")`, or "structured" for `{"name": 4, "arguments": '"get pods"'}`.
    `reward`: "sparse" is 1 for a passed episode; "dense" is the mean of the stages' scores, for partial success.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 - as Gymnasium declares it

    def __init__(
        self,
        problem: str,
        *,
        actions: Literal["text", "structured"] = "text",
        reward: Literal["sparse", "dense"] = "sparse",
        stages: tuple[str, ...] | None = None,
        max_steps: int = 30,
        seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self.problem = problem
        self.render_mode = render_mode
        self._reward = reward
        self._options = (tuple(stages) if stages is not None else None, max_steps)
        self._seed = seed
        self._pool: IncidentPool | None = None
        self._incident: Incident | None = None
        self._last = ""
        self.observation_space = spaces.Text(_LONGEST_OBSERVATION, min_length=0, charset=_CHARACTERS)
        text = spaces.Text(_LONGEST_ACTION, min_length=0, charset=_CHARACTERS)
        self.action_space = text
        if actions == "structured":
            self.action_space = spaces.Dict({"name": spaces.Discrete(len(ACTION_NAMES)), "arguments": text})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self._seed = self._seed if seed is None else seed
        self._leave()
        if self._pool is None:
            self._pool = _POOLS.join(*self._options)
        self._incident = self._pool.open(self.problem, self._seed)
        task = self._incident.episode
        actions = "\n".join(task.actions.values())
        self._last = _readable(f"{task.description}\n\n{task.instructions}\n\n{actions}\n\n{task.question}")
        return self._last, {"seed": self._seed}

    def step(self, action: Action) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        if self._incident is None:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        taken = self._incident.episode.act(action if isinstance(action, str) else _call(action))
        self._last = _readable(taken.state)
        if not taken.finished:
            return self._last, 0.0, False, False, _info(taken)
        grade = self._incident.grade(self._reward, agent="gymnasium")
        self._leave()
        information = {**_info(taken), "result": grade.result}
        return self._last, grade.reward, not grade.limited, grade.limited, information

    def fork(self, count: int = 1, seeds: list[int] | None = None) -> list[IncidentEnvironment]:
        """Environments that go on from the present state on their own; `seeds` for another chance from here on."""
        if self._incident is None:
            raise gymnasium.error.ResetNeeded("call reset before a fork")
        copies = []
        for incident in self._incident.fork(count, seeds):
            copy = IncidentEnvironment(self.problem, reward=self._reward)
            copy.action_space, copy._options, copy._seed = self.action_space, self._options, self._seed
            copy._incident, copy._last = incident, self._last
            copies.append(copy)
        return copies

    def render(self) -> Any:
        return self._last if self.render_mode == "ansi" else None

    def close(self) -> None:
        self._leave()
        if self._pool is not None:
            self._pool = None
            _POOLS.leave(*self._options)

    def _leave(self) -> None:
        if self._incident is not None:
            self._incident.close()
            self._incident = None


def _call(action: dict[str, Any]) -> str:
    return f"{ACTION_NAMES[int(action['name'])]}({action['arguments']})"


def _info(step: Step) -> dict[str, Any]:
    return {"stage": step.stage, "steps": step.steps, "invalid_actions": step.invalid_actions}


def _readable(text: str) -> str:
    """The text in the characters of the observation space, within its length."""
    return "".join(character if character in _CHARACTERS else "?" for character in text)[:_LONGEST_OBSERVATION]
