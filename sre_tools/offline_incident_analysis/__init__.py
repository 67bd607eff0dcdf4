"""Diagnostic tools over a recorded incident: as an MCP server, a shell command and a library.

with Workspace("Scenario-3") as workspace:
    reply = call_tool(workspace, "alert_summary", {"limit": 10})
"""

from __future__ import annotations

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.calls import all_tools, call_tool
from sre_tools.offline_incident_analysis.workspace import Workspace
from sre_tools.registry import Tool

__all__ = ["Tool", "ToolError", "Workspace", "all_tools", "call_tool"]
