"""The tools by name: what each takes, what it gives, and the one way to call it.

A tool is a function from a `Call` and its checked arguments to an `Answer`, registered where it is defined. Paths,
cursors, budgets and errors are handled here, the same for all of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.replies import (
    DEFAULT_TOKENS,
    MAX_TOKENS,
    MIN_TOKENS,
    Answer,
    Window,
    envelope,
    envelope_schema,
    read_cursor,
)
from sre_tools.offline_incident_analysis.workspace import Workspace
from srearena.snapshots import Snapshot, SnapshotError
from srearena.snapshots.errors import DataError

_MODULES = (
    "alert_tools",
    "event_tools",
    "metric_tools",
    "anomaly_tool",
    "log_tools",
    "trace_tools",
    "topology_tools",
    "object_tools",
    "context_tool",
    "incident_tools",
)
_PATHS = ("base_dir", "snapshot_dir", "events_file", "logs_file", "trace_file", "k8s_objects_file")


class Arguments(BaseModel):
    """What every tool takes."""

    model_config = ConfigDict(extra="forbid")
    cursor: str | None = Field(None, description="`next_cursor` of the reply before, with the same other arguments")
    max_tokens: int = Field(
        DEFAULT_TOKENS, ge=MIN_TOKENS, le=MAX_TOKENS, description="about how long the reply may be, in tokens"
    )


class Timed(Arguments):
    start_time: str | None = Field(None, description="ISO 8601, inclusive; without a zone it is UTC")
    end_time: str | None = Field(None, description="ISO 8601, inclusive; without a zone it is UTC")


class Paged(Timed):
    limit: int | None = Field(None, ge=0, description="rows per reply; 0 for all that fit")
    offset: int = Field(0, ge=0, description="rows to skip")


@dataclass(frozen=True, slots=True)
class Call:
    """What a tool has to answer with."""

    snapshot: Snapshot
    workspace: Workspace
    window: Window


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    title: str
    description: str
    arguments: type[Arguments]
    fields: dict[str, str]
    run: Callable[[Call, Any], Answer]

    @property
    def input_schema(self) -> dict[str, Any]:
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        return schema

    @property
    def output_schema(self) -> dict[str, Any]:
        return envelope_schema(self.fields)


_TOOLS: dict[str, Tool] = {}
_A = TypeVar("_A", bound=Arguments)


def tool(
    name: str, title: str, arguments: type[_A], fields: dict[str, str]
) -> Callable[[Callable[[Call, _A], Answer]], Callable[[Call, _A], Answer]]:
    """Register a function; its docstring is what agents read."""

    def register(function: Callable[[Call, _A], Answer]) -> Callable[[Call, _A], Answer]:
        text = " ".join((function.__doc__ or "").split())
        _TOOLS[name] = Tool(name, title, text, arguments, fields, function)
        return function

    return register


def all_tools() -> dict[str, Tool]:
    for module in _MODULES:
        importlib.import_module(f"sre_tools.offline_incident_analysis.{module}")
    return dict(_TOOLS)


def _explain(problem: ValidationError, chosen: Tool) -> str:
    parts = []
    for error in problem.errors():
        where = ".".join(str(piece) for piece in error["loc"]) or "arguments"
        parts.append(f"{where}: {error['msg'].lower()}")
    known = ", ".join(chosen.arguments.model_fields)
    return f"{chosen.name}: {'; '.join(parts)}. It takes: {known}"


def call_tool(workspace: Workspace, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Call a tool by name; the reply is its envelope, an error is a `ToolError`."""
    tools = all_tools()
    chosen = tools.get(name)
    if chosen is None:
        raise ToolError(f"there is no tool {name!r}; there are {', '.join(sorted(tools))}")
    given = {key: value for key, value in (arguments or {}).items() if value is not None}
    try:
        checked = chosen.arguments.model_validate(given)
    except ValidationError as problem:
        raise ToolError(_explain(problem, chosen)) from problem
    plain = checked.model_dump(exclude={"cursor", "max_tokens", "offset"})
    offset = getattr(checked, "offset", 0)
    if checked.cursor:
        offset = read_cursor(checked.cursor, name, plain)
    window = Window(offset, getattr(checked, "limit", None) or None)
    try:
        snapshot = workspace.snapshot(*(getattr(checked, path, None) for path in _PATHS))
        answer = chosen.run(Call(snapshot, workspace, window), checked)
    except DataError as problem:
        raise ToolError(f"{name} could not read this snapshot's data: {str(problem).splitlines()[0]}") from problem
    except SnapshotError as problem:
        raise ToolError(f"{problem}. `srearena snapshot check` tells more about this snapshot") from problem
    return envelope(name, snapshot.root.name, plain, answer, window, checked.max_tokens)


def instant(text: str | None, what: str) -> datetime | None:
    """A time an agent gave, naive and in UTC as the tables have it."""
    if not text:
        return None
    try:
        value = datetime.fromisoformat(text.strip())
    except ValueError as problem:
        raise ToolError(f"{what}: {text!r} is no time; write it as 2025-06-01T10:00:00Z") from problem
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
