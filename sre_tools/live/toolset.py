"""The toolset of the MCP server over a running episode: replies in pages, every call in the episode's record."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from time import monotonic
from typing import Any

from sre_tools.errors import ToolError
from sre_tools.live.analysis import call_live, live_tools
from sre_tools.live.context import LiveContext
from sre_tools.registry import Tool, ToolArguments, lookup, tools_in
from srearena.errors import SreArenaError

_ANALYSIS_ORDER = 1000  # the diagnostic tools are listed after the live ones, before `more`


class LiveToolset:
    """All tools over one episode, as a `Toolset`: the live ones, and the diagnostic ones over the environment."""

    name = "srearena"
    instructions = (
        "You are the engineer on call for a running system that may be broken. `task` says what is asked. Look with "
        "kubectl, prometheus_*, loki_*, jaeger_* and the analysis tools; answer each question with `submit`."
    )
    concurrency: int | None = None

    def __init__(self, context: LiveContext) -> None:
        self._context = context
        self._change_lock = threading.Lock()
        tools = sorted([*_live_tools(context.mode), *_analysis_tools()], key=lambda tool: tool.order)
        self.tools = {tool.name: tool for tool in tools}

    def call(self, name: str, arguments: Mapping[str, Any] | None) -> str:
        """A tool's reply, or its first page; ToolError tells the agent what to do instead. Both are recorded."""
        began = monotonic()
        plain = dict(arguments or {})
        try:
            reply = self._reply(name, plain)
        except Exception as problem:
            self._record(name, plain, began, error=str(problem) or type(problem).__name__)
            if isinstance(problem, SreArenaError):
                raise ToolError(str(problem)) from problem
            raise
        self._record(name, plain, began, characters=len(reply))
        return reply

    def _reply(self, name: str, arguments: dict[str, Any]) -> str:
        tool = lookup(self.tools, name)
        checked = tool.validate(arguments)
        if tool.bounded:
            return str(tool.run(self._context, checked))
        if tool.read_only:
            return self._context.pages.first(tool.run(self._context, checked))
        with self._change_lock:  # changes are numbered in the order in which they are made
            return self._context.pages.first(tool.run(self._context, checked))

    def _record(self, name: str, arguments: dict[str, Any], began: float, **facts: Any) -> None:
        try:
            self._context.connection.audit(
                tool=name, arguments=arguments, seconds=round(monotonic() - began, 4), **facts
            )
        except ToolError:
            if name != "submit":  # after the last submission there is no episode to write to
                raise


def _live_tools(mode: str) -> Iterator[Tool]:
    for tool in tools_in("sre_tools.live.tools").values():
        adapted = tool.for_mode(tool, mode) if tool.for_mode else tool
        if adapted is not None:
            yield adapted


def _analysis_tools() -> Iterator[Tool]:
    for tool in live_tools().values():
        yield replace(
            tool,
            run=_over_environment(tool.name),
            title="",
            order=_ANALYSIS_ORDER + tool.order,
            read_only=True,
            destructive=False,
            bounded=True,
        )


def _over_environment(name: str) -> Callable[[LiveContext, ToolArguments], str]:
    """A diagnostic tool that works on the running environment and replies with text."""

    def run(live: LiveContext, arguments: ToolArguments) -> str:
        reply = call_live(live.workspace(), name, arguments.model_dump(exclude_unset=True))
        return json.dumps(reply, default=str)

    return run
