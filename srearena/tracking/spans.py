"""A session as spans: the episode, its stages, and in them actions, tool calls and model calls.

Span ids are derived from the session id, so that exporting a session twice gives the same spans.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Entry = Mapping[str, Any]


@dataclass(slots=True)
class Span:
    """A span of the episode's trace."""

    name: str
    start: float
    end: float
    span_id: str = ""
    parent_id: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    failed: bool = False


def trace_id(session: str) -> str:
    return hashlib.sha256(f"trace {session}".encode()).hexdigest()[:32]


def spans_of(entries: Sequence[Entry], session: str, facts: Mapping[str, Any] | None = None) -> list[Span]:
    """Convert the entries of a session to spans, the episode's first. `facts` are attributes of the episode."""
    if not entries:
        return []
    start, end = _at(entries[0]), max(_at(entry) for entry in entries)
    spans = [Span("episode", start, end, attributes={"session.id": session, **(facts or {})})]
    stages = _stages(entries)
    for span in (*stages, *_actions(entries), *_timed(entries)):
        spans.append(span)
    for number, span in enumerate(spans):
        span.span_id = hashlib.sha256(f"span {session} {number}".encode()).hexdigest()[:16]
    for span in spans[1:]:
        enclosing = [stage for stage in stages if stage is not span and stage.start <= span.end <= stage.end]
        span.parent_id = (enclosing[-1] if enclosing and span not in stages else spans[0]).span_id
    return spans


def _at(entry: Entry) -> float:
    return datetime.fromisoformat(str(entry["at"])).timestamp()


def _stages(entries: Sequence[Entry]) -> list[Span]:
    spans: list[Span] = []
    for entry in entries:
        if entry["what"] == "stage":
            spans.append(Span(f"stage {entry['name']}", _at(entry), 0.0, attributes={"stage": entry["name"]}))
        elif entry["what"] in ("submission", "end of actions") and spans and not spans[-1].end:
            spans[-1].end = _at(entry)
        elif entry["what"] == "verdict":
            for span in spans:
                if span.attributes["stage"] == entry.get("stage") and entry.get("verdict"):
                    span.attributes["passed"] = bool(entry["verdict"].get("passed"))
    last = max(_at(entry) for entry in entries)
    for span in spans:
        span.end = span.end or last
    return spans


def _actions(entries: Sequence[Entry]) -> list[Span]:
    pending: dict[Any, Entry] = {}
    spans: list[Span] = []
    for entry in entries:
        if entry["what"] == "action":
            pending[entry.get("step")] = entry
        elif entry["what"] == "state" and entry.get("step") in pending:
            action = pending.pop(entry["step"])
            text, state = str(action.get("text", "")), str(entry.get("text", ""))
            attributes = {"step": entry["step"], "action": text[:500], "answer.length": len(state)}
            spans.append(
                Span("action", _at(action), _at(entry), attributes=attributes, failed=state.startswith("Error"))
            )
    return spans


def _timed(entries: Sequence[Entry]) -> list[Span]:
    """The spans of entries that are written at their end, with their duration."""
    spans: list[Span] = []
    for entry in entries:
        end = _at(entry)
        start = end - float(entry.get("seconds") or 0.0)
        if entry["what"] == "model call":
            attributes = {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": entry.get("model", ""),
                "gen_ai.usage.input_tokens": entry.get("tokens_in", 0),
                "gen_ai.usage.output_tokens": entry.get("tokens_out", 0),
                "cost.usd": float(entry.get("cost") or 0.0),
                "tries": entry.get("tries", 1),
            }
            spans.append(Span("model call", start, end, attributes=attributes, failed=entry.get("stop") == "failed"))
        elif entry["what"] == "tool call":
            attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": entry.get("tool", "")}
            spans.append(
                Span(f"tool {entry.get('tool', '')}", start, end, attributes=attributes, failed="error" in entry)
            )
    return spans
