"""`Incident` and `IncidentPool`: what every adapter needs of an episode.

Prepare a world or fork it, show the task and the tools, perform tool calls, grade after the last submission, compute
the reward. The grade comes from the oracles of `srearena run`. Only `grade` discloses anything of the answer, and it
ends the agent's part first: no reward can be read while an agent can still act.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from srearena.closeable import Closeable
from srearena.conductor.actions.toolbox import Toolbox
from srearena.conductor.episode.limits import Limits
from srearena.conductor.episode.spec import EpisodeSpec
from srearena.conductor.errors import ArenaError
from srearena.conductor.problems.registry import ProblemRegistry
from srearena.conductor.trials.problem_suites import problem_suite, suite_names
from srearena.conductor.worlds import EpisodeProcess, Step, fork_is_safe, prepare
from srearena.config import Config
from srearena.llm.messages import Tool, ToolCall
from srearena.llm.tools import BadArguments, action_of, tools_from
from srearena.utils.status import Outcome

RewardKind = Literal["sparse", "dense"]
START = 1_767_225_600.0
"""2026-01-01T00:00:00Z: what an agent reads has timestamps, and must be the same in every run with a seed."""
_TEMPLATES = 2
"""Prepared worlds that a pool keeps, the latest ones: each holds the memory of a cluster."""
_SHARED_TEMPLATES = 8
"""The same for a pool that several environments share, for as many seeds at once."""
_TOOL_USE = (
    "Act by calling the tools you have. The tool `submit` answers the present question; its argument `solution` is the "
    "answer itself (a text, a list or an object)."
)


def framework_spec(stages: Sequence[str] | None = None, max_steps: int = 30) -> EpisodeSpec:
    """An episode whose outcome depends on seed and actions alone: fixed start, no limit on real time."""
    limits = Limits(steps=max_steps, wall_seconds=None, virtual_seconds=None)
    return EpisodeSpec(stages=tuple(stages) if stages else None, limits=limits, start=START, config=Config())


def select_problems(names: str | Sequence[str]) -> list[str]:
    """The ids behind a suite, an id or pattern, or several of them."""
    found: dict[str, None] = {}
    for name in [names] if isinstance(names, str) else names:
        suite = name.partition("@")[0] in suite_names()
        found.update(dict.fromkeys(problem_suite(name).problems if suite else ProblemRegistry().match([name])))
    return list(found)


def tools() -> tuple[Tool, ...]:
    """The actions as tools of a model; the same for every problem."""
    return tools_from(Toolbox.descriptions())


@dataclass(frozen=True, slots=True)
class Grade:
    """The graded episode, for the harness: keep `result` from the agent, it names the answer."""

    reward: float
    passed: bool
    outcome: str
    scores: dict[str, float]
    """The score of each stage, from 0 to 1."""
    result: dict[str, Any]

    @property
    def limited(self) -> bool:
        """Whether a limit ended the episode."""
        return self.outcome in (Outcome.TIMEOUT.value, Outcome.BUDGET.value)

    def summary(self) -> dict[str, Any]:
        """The part of the grade that does not name the answer."""
        return {"reward": self.reward, "passed": self.passed, "outcome": self.outcome, "scores": self.scores}


def grade_from(result: Mapping[str, Any], kind: RewardKind = "sparse") -> Grade:
    """Compute the reward of a result document.

    `sparse` is 1 for a passed episode; `dense` is the mean of the scores of all stages that were asked.
    """
    if kind not in get_args(RewardKind):
        raise ArenaError(f"there is no reward {kind!r}: choose from {', '.join(get_args(RewardKind))}")
    scores = {name: float(score) for name, score in (result["scores"] or {}).items()}
    passed = result["outcome"] == Outcome.PASS.value
    dense = sum(scores.values()) / len(result["asked"]) if result["asked"] else 0.0
    return Grade(dense if kind == "dense" else float(passed), passed, str(result["outcome"]), scores, dict(result))


class Incident(Closeable):
    """One episode, from the task to the grade."""

    def __init__(self, problem: str, seed: int, episode: EpisodeProcess) -> None:
        self.problem = problem
        self.seed = seed
        self.episode = episode
        self._grade: Grade | None = None

    @property
    def task(self) -> str:
        """The task for an agent with tools: the system, the questions and how to answer them."""
        _, marker, questions = self.episode.instructions.partition("You are asked")
        return f"{self.episode.description}\n\n{_TOOL_USE}\n\n{marker}{questions}\n\n{self.episode.question}"

    @property
    def finished(self) -> bool:
        return self._grade is not None or self.episode.status().finished

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> Step:
        """Perform a tool call, with arguments as a mapping or as the model's JSON; mistakes are answered in words."""
        text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
        try:
            return self.episode.act(action_of(ToolCall("", name, text)))
        except BadArguments as mistake:
            return replace(self.episode.act(f"{name}(...)"), state=f"Error: {mistake}")

    def grade(
        self, kind: RewardKind = "sparse", *, agent: str = "agent", results: Path | None = None, trial: int = 0
    ) -> Grade:
        """End the agent's part, grade it and return the reward; again, the same grade.

        With `results`, the folder of a run, the result is written there as this trial, as `srearena run` does.
        """
        if self._grade is None:
            self._grade = grade_from(self.episode.grade(agent=agent, results=results, trial=trial), kind)
        return self._grade

    def fork(self, count: int = 1, seeds: Sequence[int] | None = None) -> list[Incident]:
        """Copies that go on from the present state independently."""
        return [Incident(self.problem, self.seed, copy) for copy in self.episode.fork(count, seeds)]

    def close(self) -> None:
        self.episode.close()


class IncidentPool(Closeable):
    """Incidents by problem and seed: each world is prepared once and forked for every episode; safe for threads."""

    def __init__(self, spec: EpisodeSpec | None = None, templates: int = _TEMPLATES) -> None:
        self.spec = spec or framework_spec()
        self._most = max(templates, 1)
        self._templates: OrderedDict[tuple[str, int], EpisodeProcess] = OrderedDict()
        self._lock = threading.Lock()
        # Frameworks have no moment at which they are done with an environment: at the latest, the end of the process.
        weakref.finalize(self, _close_all, self._templates)

    def open(self, problem: str, seed: int = 0) -> Incident:
        """Start an episode; the caller closes it."""
        return self.group(problem, seed, 1)[0]

    def group(self, problem: str, seed: int, size: int) -> list[Incident]:
        """Start several episodes from the same state."""
        if not fork_is_safe():
            return [Incident(problem, seed, self._prepare(problem, seed)) for _ in range(size)]
        with self._lock:
            return [Incident(problem, seed, copy) for copy in self._template(problem, seed).fork(size)]

    def _template(self, problem: str, seed: int) -> EpisodeProcess:
        key = (problem, seed)
        if key not in self._templates:
            self._templates[key] = self._prepare(problem, seed)
            while len(self._templates) > self._most:
                self._templates.popitem(last=False)[1].close()
        self._templates.move_to_end(key)
        return self._templates[key]

    def _prepare(self, problem: str, seed: int) -> EpisodeProcess:
        return prepare(problem, replace(self.spec, seed=seed))

    def close(self) -> None:
        with self._lock:
            _close_all(self._templates)


class SharedPools:
    """Pools that several environments of this process use; the last one that leaves a pool closes it."""

    def __init__(self) -> None:
        self._pools: dict[tuple[tuple[str, ...] | None, int], IncidentPool] = {}
        self._users: Counter[tuple[tuple[str, ...] | None, int]] = Counter()
        self._lock = threading.Lock()

    def join(self, stages: tuple[str, ...] | None, max_steps: int) -> IncidentPool:
        """The pool of such episodes."""
        key = (stages, max_steps)
        with self._lock:
            self._users[key] += 1
            if key not in self._pools:
                self._pools[key] = IncidentPool(framework_spec(stages, max_steps), _SHARED_TEMPLATES)
            return self._pools[key]

    def leave(self, stages: tuple[str, ...] | None, max_steps: int) -> None:
        key = (stages, max_steps)
        with self._lock:
            self._users[key] -= 1
            if not self._users[key]:
                self._pools.pop(key).close()


def _close_all(templates: OrderedDict[tuple[str, int], EpisodeProcess]) -> None:
    while templates:
        templates.popitem()[1].close()
