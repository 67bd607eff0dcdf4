"""The tools of one server, and the one way to call them: arguments checked, answers in pages, every call on record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from time import monotonic
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from sre_tools.errors import ToolError
from sre_tools.live.paging import Pages
from srearena.errors import SreArenaError

Audit = Callable[..., None]


@dataclass(frozen=True, slots=True)
class LiveTool:
    name: str
    description: str
    arguments: type[BaseModel]
    run: Callable[[Any], str]
    reads: bool
    """It changes nothing in the environment."""
    bounded: bool = False
    """It keeps its answers short itself, with cursors of its own."""

    @property
    def schema(self) -> dict[str, Any]:
        schema = self.arguments.model_json_schema()
        schema.pop("title", None)
        schema.pop("description", None)
        return schema


class MoreArguments(BaseModel):
    model_config = ConfigDict(extra="forbid")
    cursor: str


class Toolset:
    def __init__(self, tools: Iterable[LiveTool], audit: Audit) -> None:
        self._pages = Pages()
        self._audit = audit
        self._turn = threading.Lock()
        more = LiveTool(
            "more",
            "The next part of a long answer.",
            MoreArguments,
            lambda given: self._pages.more(given.cursor),
            reads=True,
        )
        self.tools = {tool.name: tool for tool in (*tools, more)}

    def call(self, name: str, arguments: Mapping[str, Any] | None) -> str:
        """What a tool answers; ToolError tells the agent what to do instead. Either is on record."""
        began = monotonic()
        given = dict(arguments or {})
        try:
            answer = self._answer(name, given)
        except Exception as problem:
            self._record(name, given, began, error=str(problem) or type(problem).__name__)
            if isinstance(problem, SreArenaError):
                raise ToolError(str(problem)) from problem
            raise
        self._record(name, given, began, characters=len(answer))
        return answer

    def _answer(self, name: str, given: dict[str, Any]) -> str:
        tool = self.tools.get(name)
        if tool is None:
            near = get_close_matches(name, self.tools, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(self.tools))}"
            raise ToolError(f"there is no tool {name!r}: {hint}")
        try:
            checked = tool.arguments.model_validate(given)
        except ValidationError as problem:
            parts = [f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg'].lower()}" for e in problem.errors()]
            raise ToolError(
                f"{name}: {'; '.join(parts)}. It takes: {', '.join(tool.arguments.model_fields)}"
            ) from problem
        if name == "more" or tool.bounded:
            return tool.run(checked)
        if tool.reads:
            return self._pages.first(tool.run(checked))
        with self._turn:  # changes are remembered in their order
            return self._pages.first(tool.run(checked))

    def _record(self, name: str, given: dict[str, Any], began: float, **facts: Any) -> None:
        try:
            self._audit(tool=name, arguments=given, seconds=round(monotonic() - began, 4), **facts)
        except ToolError:
            if name != "submit":  # after the last submission there is no episode to write to
                raise
