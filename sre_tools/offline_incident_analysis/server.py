"""The toolset of the MCP server over a recorded incident."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sre_tools.offline_incident_analysis.calls import all_tools, call_tool
from sre_tools.offline_incident_analysis.workspace import Workspace


class RecordedIncidentTools:
    """The diagnostic tools over one workspace, as a `Toolset`."""

    name = "offline_incident_analysis"
    instructions = (
        "Diagnostic tools over one recorded Kubernetes incident. Begin with alert_summary, then incident_timeline or "
        "change_impact; get_context_contract tells all about one object. Leave paths out. Times are UTC. Replies are "
        "short; next_cursor continues one."
    )
    # Queries use all cores already: more at once take more memory and are no faster.
    concurrency: int | None = min(4, os.cpu_count() or 1)

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.tools = all_tools()

    def call(self, name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        return call_tool(self._workspace, name, arguments)
