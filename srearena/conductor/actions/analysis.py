"""The diagnostic tools of recorded incidents as one action, over the environment as it is now.

They are an extra and live above this package, so they are looked up by name when first asked for.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from srearena.cluster import Cluster
from srearena.conductor.errors import BadAction
from srearena.errors import SreArenaError

_TOKENS = 5000
"""How long an answer is by default: short enough not to be cut in the middle."""


class Analysis:
    def __init__(self, cluster: Cluster, kubeconfig: Path) -> None:
        self._cluster = cluster
        self._kubeconfig = kubeconfig
        self._workspace: Any = None

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """What a tool answers; without a tool, which there are."""
        try:
            tools = importlib.import_module("sre_tools.offline_incident_analysis")
            live = importlib.import_module("sre_tools.live_workspace")
        except ImportError as problem:
            raise BadAction("the analysis tools are not installed here: pip install 'srearena[tools]'") from problem
        if not tool:
            return "\n".join(
                f"{found.name}({', '.join(found.input_schema['properties'])}): {found.title}"
                for found in tools.all_tools().values()
            )
        try:
            if self._workspace is None:
                self._workspace = live.LiveWorkspace(self._kubeconfig, self._cluster.telemetry)
            given = {"max_tokens": _TOKENS, **arguments}
            return json.dumps(tools.call_tool(self._workspace, tool, given), default=str)
        except SreArenaError as problem:
            raise BadAction(f"analyse: {problem}") from problem
