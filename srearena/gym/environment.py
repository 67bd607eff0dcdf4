"""`IncidentEnvironment`: one problem as a Gymnasium environment.

The seed of `reset` is the seed of the world: the same seed and actions give the same observations and rewards. A world
is prepared once for each seed and forked for each episode, so that further episodes of a seed begin at once.

Observations are texts: what an agent reads. Actions are texts too, or an action's name with the text of its arguments.
Rewards come from the grader at the end of an episode and never appear in an observation.
"""

from __future__ import annotations

import string
from collections import OrderedDict
from dataclasses import replace
from typing import Any, Literal, SupportsFloat

import gymnasium
from gymnasium import spaces

from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.worlds import EpisodeProcess, Step, prepare
from srearena.config import Config
from srearena.utils.status import Outcome

_LONGEST_OBSERVATION = 65_536
_LONGEST_ACTION = 8_192
_CHARACTERS = string.printable
_TEMPLATES = 2
"""Prepared worlds that are kept, the latest ones: each holds the memory of a cluster."""
_START = 1_767_225_600.0
"""2026-01-01T00:00:00Z: observations have timestamps, and must be the same in every run with a seed."""

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
        self._spec = EpisodeSpec(
            stages=stages,
            limits=Limits(steps=max_steps, wall_seconds=None, virtual_seconds=None),
            start=_START,
            config=Config(),
        )
        self._seed = seed
        self._templates: OrderedDict[int, EpisodeProcess] = OrderedDict()
        self._episode: EpisodeProcess | None = None
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
        self._episode = self._template().fork()[0]
        task = self._episode
        actions = "\n".join(task.actions.values())
        self._last = _readable(f"{task.description}\n\n{task.instructions}\n\n{actions}\n\n{task.question}")
        return self._last, {"seed": self._seed}

    def step(self, action: Action) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("call reset before the first step")
        taken = self._episode.act(action if isinstance(action, str) else _call(action))
        self._last = _readable(taken.state)
        if not taken.finished:
            return self._last, 0.0, False, False, _info(taken)
        result = self._episode.grade(agent="gymnasium")
        truncated = result["outcome"] in (Outcome.TIMEOUT.value, Outcome.BUDGET.value)
        scores = result["scores"] or {}
        passed = result["outcome"] == Outcome.PASS.value
        reward = sum(scores.values()) / len(result["asked"]) if self._reward == "dense" else float(passed)
        self._leave()
        return self._last, reward, not truncated, truncated, {**_info(taken), "result": result}

    def fork(self, count: int = 1, seeds: list[int] | None = None) -> list[IncidentEnvironment]:
        """Environments that go on from the present state on their own; `seeds` for another chance from here on."""
        if self._episode is None:
            raise gymnasium.error.ResetNeeded("call reset before a fork")
        copies = []
        for episode in self._episode.fork(count, seeds):
            copy = IncidentEnvironment(self.problem, reward="dense" if self._reward == "dense" else "sparse")
            copy.action_space, copy._spec, copy._seed = self.action_space, self._spec, self._seed
            copy._episode, copy._last = episode, self._last
            copies.append(copy)
        return copies

    def render(self) -> Any:
        return self._last if self.render_mode == "ansi" else None

    def close(self) -> None:
        self._leave()
        while self._templates:
            self._templates.popitem()[1].close()

    def _leave(self) -> None:
        if self._episode is not None:
            self._episode.close()
            self._episode = None

    def _template(self) -> EpisodeProcess:
        if self._seed not in self._templates:
            self._templates[self._seed] = prepare(self.problem, replace(self._spec, seed=self._seed))
            while len(self._templates) > _TEMPLATES:
                self._templates.popitem(last=False)[1].close()
        return self._templates[self._seed]


def _call(action: dict[str, Any]) -> str:
    return f"{ACTION_NAMES[int(action['name'])]}({action['arguments']})"


def _info(step: Step) -> dict[str, Any]:
    return {"stage": step.stage, "steps": step.steps, "invalid_actions": step.invalid_actions}


def _readable(text: str) -> str:
    """The text in the characters of the observation space, within its length."""
    return "".join(character if character in _CHARACTERS else "?" for character in text)[:_LONGEST_OBSERVATION]
