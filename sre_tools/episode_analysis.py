"""The diagnostic tools as an episode's `analyse` action (entry point of the group `srearena.analysis_tools`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sre_tools.live.analysis import call_live, live_tools
from sre_tools.live_workspace import LiveWorkspace
from srearena.cluster.base import Cluster


class EpisodeAnalysis:
    """The tools over one running environment; the first call records its state."""

    def __init__(self, kubeconfig: Path, cluster: Cluster) -> None:
        self._kubeconfig = kubeconfig
        self._cluster = cluster
        self._workspace: LiveWorkspace | None = None

    def describe(self) -> str:
        """List the tools with their arguments, one per line."""
        return "\n".join(
            f"{tool.name}({', '.join(tool.input_schema['properties'])}): {tool.title}" for tool in live_tools().values()
        )

    def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; ToolError where there is no such tool or its arguments are wrong."""
        if self._workspace is None:
            self._workspace = LiveWorkspace(self._kubeconfig, self._cluster.telemetry)
        return call_live(self._workspace, tool, arguments)

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None
