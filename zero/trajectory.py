"""The agent's steps in one format for all CLIs: ATIF (Agent Trajectory Interchange Format), version 1.4.

Adapters add the events of their CLI; the trajectory groups them into steps. A step of the agent is one turn of the
model: its text, the tools it called, and their results. The next text or call after results starts a new turn. Times
are when Zero read the event.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

SCHEMA_VERSION = "ATIF-v1.4"
MAX_TEXT = 100_000  # characters of one message or result; longer ones are cut and marked


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and cost. `prompt` includes `cached`."""

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
        metrics: dict[str, Any] = {"prompt_tokens": self.prompt, "completion_tokens": self.completion}
        metrics["cached_tokens"] = self.cached
        if self.cost_usd is not None:
            metrics["cost_usd"] = round(self.cost_usd, 8)
        return metrics


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens, for CLIs that do not report their cost."""

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
    """Join two parts of a text; a text that was cut stays unchanged."""
    if before.endswith(_LEFT_OUT):
        return before
    return _cut(f"{before}{between}{more}" if before else more)


@dataclass
class Trajectory:
    """The steps so far. `turns` counts those of the agent."""

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
    _first: int = 0  # index of the attempt's first step
    _turn_steps: dict[str, int] = field(default_factory=dict)  # step index by turn id
    _before: Usage = field(default_factory=Usage)  # of earlier attempts
    _attempt: Usage = field(default_factory=Usage)  # of the current attempt: the sum of its turns
    _total: Usage | None = None  # of the current attempt, if the CLI reported a total

    def _stamp(self) -> str:
        return self.now().isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _add(self, source: str, message: str) -> dict[str, Any]:
        step: dict[str, Any] = {"step_id": len(self.steps) + 1, "timestamp": self._stamp(), "source": source}
        step["message"] = _cut(message)
        self.steps.append(step)
        return step

    # --- events --------------------------------------------------------------------------------------------

    def add_message(self, text: str, source: str = "user") -> None:
        """A message to the agent: the task, or complaints about its output."""
        self._open = None
        self._add(source, text)

    def _turn(self, turn_id: str = "") -> dict[str, Any]:
        """The step of the current turn. `turn_id` identifies a turn, for CLIs that report ids."""
        if turn_id and turn_id in self._turn_steps:
            return self.steps[self._turn_steps[turn_id]]
        step = self._open
        if step is None or "observation" in step or turn_id:
            step = self._add("agent", "")
            if self.model:
                step["model_name"] = self.model
            self.turns += 1
            self._open = step
            if turn_id:
                self._turn_steps[turn_id] = len(self.steps) - 1
        return step

    def add_text(self, text: str, turn_id: str = "") -> None:
        step = self._turn(turn_id)
        if "tool_calls" in step and not turn_id:  # text after a call belongs to the next turn
            self._open = None
            step = self._turn()
        step["message"] = _joined(step["message"], text)

    def append_text(self, text: str) -> None:
        """Append to a message that the CLI reports in parts."""
        step = self._turn()
        step["message"] = _joined(step["message"], text, "")

    def add_reasoning(self, text: str, turn_id: str = "") -> None:
        step = self._turn(turn_id)
        step["reasoning_content"] = _joined(step.get("reasoning_content", ""), text)

    def add_tool_call(self, call: str, function: str, arguments: dict[str, Any], turn_id: str = "") -> None:
        tool_call = {"tool_call_id": call, "function_name": function, "arguments": arguments}
        self._turn(turn_id).setdefault("tool_calls", []).append(tool_call)

    def has_tool_call(self, call: str) -> bool:
        return self._calling(call) is not None

    def _calling(self, call: str) -> dict[str, Any] | None:
        """The latest step with a tool call."""
        steps = (s for s in reversed(self.steps) if any(c["tool_call_id"] == call for c in s.get("tool_calls", ())))
        return next(steps, None)

    def add_tool_result(self, call: str, content: str, *, failed: bool = False) -> None:
        step = self._calling(call)
        result: dict[str, Any] = {"content": _cut(content)}
        if step is None:
            step = self._turn()
        else:
            result = {"source_call_id": call, **result}
        step.setdefault("observation", {"results": []})["results"].append(result)
        if failed:
            step.setdefault("extra", {}).setdefault("failed_calls", []).append(call)

    def add_error(self, text: str) -> None:
        """Add an error that the CLI reported."""
        self.errors.append(text)

    def add_usage(self, usage: Usage, turn_id: str = "", *, partial: bool = False) -> None:
        """Tokens of one turn: of `turn_id`, or else of the first turn of this attempt without tokens.

        `partial`: reported before the reply was complete, so that the completion tokens are not final.
        """
        usage = self._priced(usage)
        self._attempt += usage
        step: dict[str, Any] | None
        if turn_id:
            step = self._turn(turn_id)
        else:
            turns = [each for each in self.steps[self._first :] if each["source"] == "agent"]
            step = next((each for each in turns if "metrics" not in each), turns[-1] if turns else None)
        if step is not None:
            step["metrics"] = usage.metrics()
            if partial:
                del step["metrics"]["completion_tokens"]

    def lacks_usage(self, turn_id: str) -> bool:
        """Whether a turn has no tokens yet; some CLIs repeat them with every part of a message."""
        return turn_id not in self._turn_steps or "metrics" not in self.steps[self._turn_steps[turn_id]]

    def set_attempt_usage(self, usage: Usage) -> None:
        """Tokens of the whole attempt, if the CLI reports a total."""
        self._total = self._priced(usage)

    def end_attempt(self) -> Usage:
        usage = self.attempt_usage
        self._before += usage
        self._attempt, self._total, self._open = Usage(), None, None
        self._turn_steps.clear()
        self.attempt += 1
        self._first = len(self.steps)
        return usage

    def _priced(self, usage: Usage) -> Usage:
        if usage.cost_usd is None and self.prices is not None:
            return Usage(usage.prompt, usage.completion, usage.cached, self.prices.cost(usage))
        return usage

    # --- results -------------------------------------------------------------------------------------------

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
