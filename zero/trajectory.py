"""What the agent did, in one format for all CLIs: ATIF (Agent Trajectory Interchange Format), version 1.4.

An adapter tells what it reads from its CLI (`said`, `thought`, `called`, `returned`, `spent`); steps come out. A step
of the agent is one turn of the model: what it said, the tools it called, what they returned. It ends when something
follows that can only have been said with the results at hand. Times are when Zero read the event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

SCHEMA_VERSION = "ATIF-v1.4"
MAX_TEXT = 100_000  # characters of one message or result; what is cut is said


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money. `prompt` includes `cached`."""

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        costs = [each for each in (self.cost_usd, other.cost_usd) if each is not None]
        return Usage(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached + other.cached,
            sum(costs) if costs else None,
        )

    def metrics(self) -> dict[str, Any]:
        found: dict[str, Any] = {"prompt_tokens": self.prompt, "completion_tokens": self.completion}
        found["cached_tokens"] = self.cached
        if self.cost_usd is not None:
            found["cost_usd"] = round(self.cost_usd, 8)
        return found


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens, for CLIs that do not tell what they cost."""

    prompt: float
    completion: float
    cached: float | None = None

    def cost(self, usage: Usage) -> float:
        cached = self.prompt if self.cached is None else self.cached
        fresh = usage.prompt - usage.cached
        return (fresh * self.prompt + usage.cached * cached + usage.completion * self.completion) / 1e6


def wall_clock() -> datetime:
    return datetime.now(UTC)


_LEFT_OUT = "\n[more was left out]"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - len(_LEFT_OUT)].removesuffix(_LEFT_OUT) + _LEFT_OUT


def _joined(before: str, more: str, between: str = "\n") -> str:
    """Two pieces of one text; one that was cut stays as it is."""
    if before.endswith(_LEFT_OUT):
        return before
    return _cut(f"{before}{between}{more}" if before else more)


@dataclass
class Trajectory:
    """Steps as they come in. `turns` counts those of the agent."""

    agent: str
    version: str
    model: str = ""
    prices: Prices | None = None
    session: str = ""
    now: Callable[[], datetime] = wall_clock
    steps: list[dict[str, Any]] = field(default_factory=list)
    turns: int = 0
    attempt: int = 1
    errors: list[str] = field(default_factory=list)
    _open: dict[str, Any] | None = None
    _first: int = 0  # the attempt's first step
    _marks: dict[str, int] = field(default_factory=dict)
    _before: Usage = field(default_factory=Usage)  # of attempts that are over
    _attempt: Usage = field(default_factory=Usage)  # of the one that runs: the sum of what its steps told
    _total: Usage | None = None  # of the one that runs, where the CLI told a total

    def _stamp(self) -> str:
        return self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _add(self, source: str, message: str) -> dict[str, Any]:
        step: dict[str, Any] = {"step_id": len(self.steps) + 1, "timestamp": self._stamp(), "source": source}
        step["message"] = _cut(message)
        self.steps.append(step)
        return step

    # --- what comes in --------------------------------------------------------------------------------------------

    def told(self, text: str, source: str = "user") -> None:
        """What the agent was told: the task, or that its output cannot be accepted."""
        self._open = None
        self._add(source, text)

    def _turn(self, mark: str = "") -> dict[str, Any]:
        """The step of the turn under way. `mark` names a turn for CLIs that number them."""
        if mark and mark in self._marks:
            return self.steps[self._marks[mark]]
        step = self._open
        if step is None or "observation" in step or mark:
            step = self._add("agent", "")
            if self.model:
                step["model_name"] = self.model
            self.turns += 1
            self._open = step
            if mark:
                self._marks[mark] = len(self.steps) - 1
        return step

    def said(self, text: str, mark: str = "") -> None:
        step = self._turn(mark)
        if "tool_calls" in step and not mark:  # words after a call belong to the next turn
            self._open = None
            step = self._turn()
        step["message"] = _joined(step["message"], text)

    def continued(self, text: str) -> None:
        """A further piece of a message that comes in pieces."""
        step = self._turn()
        step["message"] = _joined(step["message"], text, "")

    def thought(self, text: str, mark: str = "") -> None:
        step = self._turn(mark)
        step["reasoning_content"] = _joined(step.get("reasoning_content", ""), text)

    def called(self, call: str, function: str, arguments: dict[str, Any], mark: str = "") -> None:
        one = {"tool_call_id": call, "function_name": function, "arguments": arguments}
        self._turn(mark).setdefault("tool_calls", []).append(one)

    def knows(self, call: str) -> bool:
        return self._calling(call) is not None

    def _calling(self, call: str) -> dict[str, Any] | None:
        """The latest step with this call."""
        calling = (s for s in reversed(self.steps) if any(c["tool_call_id"] == call for c in s.get("tool_calls", ())))
        return next(calling, None)

    def returned(self, call: str, content: str, *, failed: bool = False) -> None:
        step = self._calling(call)
        result: dict[str, Any] = {"content": _cut(content)}
        if step is None:
            step = self._turn()
        else:
            result = {"source_call_id": call, **result}
        step.setdefault("observation", {"results": []})["results"].append(result)
        if failed:
            step.setdefault("extra", {}).setdefault("failed_calls", []).append(call)

    def failed(self, text: str) -> None:
        """An error that the CLI reported."""
        self.errors.append(text)

    def spent(self, usage: Usage, mark: str = "", *, partial: bool = False) -> None:
        """Tokens of one turn: the one marked, or the first of this attempt that has not been told yet.

        `partial`: told while the answer was being written, so that the completion is not counted.
        """
        usage = self._priced(usage)
        self._attempt += usage
        step: dict[str, Any] | None
        if mark:
            step = self._turn(mark)
        else:
            turns = [each for each in self.steps[self._first :] if each["source"] == "agent"]
            step = next((each for each in turns if "metrics" not in each), turns[-1] if turns else None)
        if step is not None:
            step["metrics"] = usage.metrics()
            if partial:
                del step["metrics"]["completion_tokens"]

    def is_new(self, mark: str) -> bool:
        """Whether the tokens of a marked turn have not been told yet; some CLIs repeat them with every piece."""
        return mark not in self._marks or "metrics" not in self.steps[self._marks[mark]]

    def totalled(self, usage: Usage) -> None:
        """Tokens of the whole attempt, where the CLI sums them up itself."""
        self._total = self._priced(usage)

    def attempt_ended(self) -> Usage:
        usage = self.attempt_usage
        self._before += usage
        self._attempt, self._total, self._open = Usage(), None, None
        self._marks.clear()
        self.attempt += 1
        self._first = len(self.steps)
        return usage

    def _priced(self, usage: Usage) -> Usage:
        if usage.cost_usd is None and self.prices is not None:
            return Usage(usage.prompt, usage.completion, usage.cached, self.prices.cost(usage))
        return usage

    # --- what comes out -------------------------------------------------------------------------------------------

    @property
    def attempt_usage(self) -> Usage:
        return self._attempt if self._total is None else self._total

    @property
    def usage(self) -> Usage:
        return self._before + self.attempt_usage

    def document(self, **extra: Any) -> dict[str, Any]:
        usage = self.usage
        final: dict[str, Any] = {
            "total_prompt_tokens": usage.prompt,
            "total_completion_tokens": usage.completion,
            "total_cached_tokens": usage.cached,
            "total_steps": len(self.steps),
        }
        if usage.cost_usd is not None:
            final["total_cost_usd"] = round(usage.cost_usd, 8)
        agent: dict[str, Any] = {"name": self.agent, "version": self.version}
        if self.model:
            agent["model_name"] = self.model
        return {
            "schema_version": SCHEMA_VERSION,
            "session_id": self.session or "none",
            "agent": agent,
            "steps": self.steps,
            "final_metrics": final,
            "extra": {"turns": self.turns, "errors": self.errors, **extra},
        }
