"""Transcripts: the event log of a trial, or the trajectory of a leaderboard's run, as steps for a reader.

A step is one thing that happened: an action with its answer, a tool call, a submission, the opening of a stage. The
texts are those of agents and clusters; everything that shows them must treat them as text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

_BLOCK = re.compile(r"```[\w-]*\n?(.*?)```", re.DOTALL)
_LONGEST_TITLE = 160
_HIDDEN = frozenset({"verdict", "noise", "state at the end"})
"""Entries that are shown elsewhere, from the result: the event log of a running trial must not disclose them."""


@dataclass(slots=True)
class Step:
    """One step of a transcript."""

    kind: str
    """`stage`, `action`, `tool`, `submission`, `command`, `model`, `message`, `note` or `end`."""
    title: str
    stage: str = ""
    at: str = ""
    clock: float | None = None
    """The system's time, in seconds since the epoch."""
    command: str = ""
    answer: str = ""
    thought: str = ""
    seconds: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    cost: float | None = None
    failed: bool = False
    line: int = -1
    """The number of its entry in the event log, from 0."""
    is_action: bool = False
    """Whether it is an action of the agent, which a submission may be too."""

    def as_document(self) -> dict[str, Any]:
        """The fields that are set, to keep transcripts of thousands of steps small."""
        always = ("kind", "title", "stage")
        fields = {key: value for key, value in asdict(self).items() if key not in ("line", "is_action")}
        return {key: value for key, value in fields.items() if key in always or value not in (None, "", False)}


class SessionTranscript:
    """Steps from the entries of a session, as far as it has come."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.model = ""
        self._stage = ""
        self._line = -1
        self._open: Step | None = None
        """The action without an answer."""
        self._pending: list[Mapping[str, Any]] = []
        """Model calls whose action has not come yet."""

    @classmethod
    def of(cls, entries: Iterable[Mapping[str, Any]]) -> SessionTranscript:
        transcript = cls()
        for line, entry in enumerate(entries):
            transcript._line = line
            if isinstance(entry, Mapping):
                transcript.add(entry)
        transcript.flush()
        return transcript

    def add(self, entry: Mapping[str, Any]) -> None:
        what = str(entry.get("what", ""))
        handler = _HANDLERS.get(what)
        if handler is not None:
            handler(self, entry)
        elif what not in _HIDDEN:
            facts = {key: value for key, value in entry.items() if key not in ("at", "clock", "what")}
            self._append(Step("note", what[:_LONGEST_TITLE], answer=_text(facts) if facts else ""), entry)

    def flush(self) -> None:
        """Add model calls that led to no action."""
        if self._pending:
            step = Step("model", "Call of the model", self._stage, str(self._pending[0].get("at", "")))
            self._use_pending(step)
            self.steps.append(step)

    def _append(self, step: Step, entry: Mapping[str, Any]) -> Step:
        step.stage, step.line = self._stage, self._line
        step.at, step.clock = str(entry.get("at", "")), _number(entry.get("clock"))
        self.steps.append(step)
        return step

    def _add_stage(self, entry: Mapping[str, Any]) -> None:
        self._stage = str(entry.get("name", ""))
        self._append(Step("stage", f"Stage: {self._stage}"), entry)

    def _add_model_call(self, entry: Mapping[str, Any]) -> None:
        self.model = str(entry.get("model") or self.model)
        self._pending.append(entry)

    def _add_action(self, entry: Mapping[str, Any]) -> None:
        text = _text(entry.get("text"))
        command = command_in(text)
        step = Step("action", title_of(command), command=command, is_action=True, thought=_BLOCK.sub("", text).strip())
        if step.thought == command:
            step.thought = ""
        self._use_pending(step)
        self._open = self._append(step, entry)

    def _add_state(self, entry: Mapping[str, Any]) -> None:
        step, self._open = self._open, None
        if step is None:
            return
        step.answer = _text(entry.get("text"))
        step.failed = step.answer.startswith("Error:")
        step.seconds = _seconds_between(step.at, str(entry.get("at", "")))

    def _add_submission(self, entry: Mapping[str, Any]) -> None:
        stage, value = str(entry.get("stage", "")), entry.get("value")
        title = f"Submitted for {stage}: {'done' if value is None else title_of(_text(value))}"
        if self._open is not None:  # by an action, whose text is known
            self._open.kind, self._open.title = "submission", title
            return
        self._append(Step("submission", title, command="" if value is None else _text(value)), entry)

    def _add_tool_call(self, entry: Mapping[str, Any]) -> None:
        command = f"{entry.get('tool', '')} {_text(entry.get('arguments') or {})}"
        error = _text(entry.get("error") or "")
        length = entry.get("characters")
        answer = error or (f"(an answer of {length} characters, not recorded)" if length is not None else "")
        step = Step("tool", title_of(command), command=command, answer=answer, failed=bool(error))
        step.seconds = _number(entry.get("seconds"))
        self._append(step, entry)

    def _add_refused(self, entry: Mapping[str, Any]) -> None:
        command = f"{entry.get('name', '')} {_text(entry.get('arguments') or {})}"
        self._append(
            Step("tool", title_of(command), command=command, answer=_text(entry.get("text")), failed=True), entry
        )

    def _add_command(self, entry: Mapping[str, Any]) -> None:
        text, status = _text(entry.get("text")), entry.get("status")
        answer = _text(entry.get("output") or "")
        step = Step("command", title_of(text), command=text, answer=answer, failed=status not in (0, None))
        step.seconds = _number(entry.get("seconds"))
        self._append(step, entry)

    def _add_end(self, entry: Mapping[str, Any]) -> None:
        reason = _text(entry.get("reason") or "")
        self._append(Step("end", "End of the agent's part", answer=reason), entry)

    def _add_ending(self, entry: Mapping[str, Any]) -> None:
        outcome = str(entry.get("outcome", ""))
        step = Step("end", f"Graded: {outcome}", answer=_text(entry.get("reason") or ""), failed=outcome != "pass")
        self._append(step, entry)

    def _use_pending(self, step: Step) -> None:
        """Count the model calls that led to a step towards it."""
        calls, self._pending = self._pending, []
        if not calls:
            return
        texts = [_text(call.get("text")) for call in calls if call.get("text")]
        thoughts = [_BLOCK.sub("", text).strip() for text in texts]
        thought = "\n\n".join(text for text in thoughts if text)
        step.thought = thought or step.thought
        step.tokens_in = _total(calls, "tokens_in")
        step.tokens_out = _total(calls, "tokens_out")
        cost = sum(_number(call.get("cost")) or 0.0 for call in calls)
        step.cost = round(cost, 6) if any(call.get("cost") is not None for call in calls) else None


_HANDLERS = {
    "stage": SessionTranscript._add_stage,
    "model call": SessionTranscript._add_model_call,
    "action": SessionTranscript._add_action,
    "state": SessionTranscript._add_state,
    "submission": SessionTranscript._add_submission,
    "tool call": SessionTranscript._add_tool_call,
    "tool refused": SessionTranscript._add_refused,
    "command": SessionTranscript._add_command,
    "end of actions": SessionTranscript._add_end,
    "ending": SessionTranscript._add_ending,
}


def trajectory_steps(document: Any) -> list[Step]:
    """The steps of a trajectory in the Agent Trajectory Interchange Format."""
    steps: list[Step] = []
    rows = document.get("steps") if isinstance(document, Mapping) else None
    for row in rows if isinstance(rows, list) else ():
        if isinstance(row, Mapping):
            steps += _trajectory_step(row)
    return steps


def _trajectory_step(row: Mapping[str, Any]) -> list[Step]:
    at, message = str(row.get("timestamp") or ""), _text(row.get("message") or "")
    if row.get("source") != "agent":
        return [Step("message", title_of(message), at=at, answer=message)]
    thought = "\n\n".join(part for part in (_text(row.get("reasoning_content") or ""), message) if part)
    calls = [call for call in row.get("tool_calls") or () if isinstance(call, Mapping)]
    seen = _mapping(row.get("observation")).get("results") or ()
    results = [result for result in seen if isinstance(result, Mapping)]
    failed = _mapping(row.get("extra")).get("failed_calls") or ()
    steps = []
    for call in calls:
        name, arguments = str(call.get("function_name", "")), call.get("arguments")
        command = f"{name} {_text(arguments)}" if arguments else name
        if name == "action" and not arguments:  # an action of a live problem: the text is the command
            command, thought = command_in(thought), _BLOCK.sub("", thought).strip()
        number = call.get("tool_call_id")
        answers = [_text(result.get("content")) for result in results if result.get("source_call_id") == number]
        step = Step("tool", title_of(command), at=at, command=command, answer="\n".join(answers), thought=thought)
        step.failed = number in failed
        steps.append(step)
        thought = ""
    if not steps:
        answers = [_text(result.get("content")) for result in results]
        steps = [Step("message", title_of(message), at=at, answer="\n".join(answers), thought=thought)]
    metrics = _mapping(row.get("metrics"))
    steps[0].tokens_in = _whole(metrics.get("prompt_tokens"))
    steps[0].tokens_out = _whole(metrics.get("completion_tokens"))
    steps[0].cost = _number(metrics.get("cost_usd"))
    return steps


def command_in(text: str) -> str:
    """The command in an agent's text: its last fenced block, or the whole text."""
    blocks = _BLOCK.findall(text)
    return str(blocks[-1] if blocks else text).strip()


def title_of(text: str) -> str:
    """One line for a list of steps."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_TITLE else line[: _LONGEST_TITLE - 1] + "…"


def _text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _total(calls: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(_whole(call.get(key)) or 0 for call in calls)


def _seconds_between(start: str, end: str) -> float | None:
    try:
        return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 3)
    except (ValueError, TypeError):
        return None
