"""The diagnostic tools over a running system: descriptions, arguments, replies and errors in terms of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sre_tools.errors import ToolError
from sre_tools.live.terms import live_reply, live_schema, live_text
from sre_tools.offline_incident_analysis import Workspace, all_tools, call_tool
from sre_tools.registry import Tool, lookup


def live_tools() -> dict[str, Tool]:
    """The diagnostic tools with descriptions and arguments for a running system."""
    return {
        name: replace(
            tool,
            title=live_text(tool.title),
            description=live_text(tool.description),
            adapt_schema=live_schema,
            output_schema=None,  # it describes the keys of replies over recordings
        )
        for name, tool in all_tools().items()
    }


def call_live(workspace: Workspace, name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Call a diagnostic tool over a running system."""
    lookup(live_tools(), name).validate(arguments)  # whose message lists the arguments that there are here
    try:
        return live_reply(call_tool(workspace, name, arguments))
    except ToolError as problem:
        raise ToolError(live_text(str(problem))) from problem


class RunningSystemTools:
    """The diagnostic tools over one running system, as a `Toolset`."""

    name = "live_incident_analysis"
    instructions = (
        "Diagnostic tools over a running Kubernetes system. Begin with alert_summary, then incident_timeline or "
        "change_impact; get_context_contract tells all about one object. Times are UTC. Replies are short; next_cursor "
        "continues one."
    )
    concurrency: int | None = 1  # calls share one collection of data

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.tools = live_tools()

    def call(self, name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        return call_live(self._workspace, name, arguments or {})
