"""The diagnostic tools of recorded incidents, over the running environment. The first call looks around for a while."""

from __future__ import annotations

import json
import threading
from typing import Any

from pydantic import BaseModel

from sre_tools.live.connection import Connection
from sre_tools.live.toolset import LiveTool
from sre_tools.live_workspace import LiveWorkspace
from sre_tools.offline_incident_analysis import all_tools, call_tool


class AnalysisTools:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._workspace: LiveWorkspace | None = None
        self._opening = threading.Lock()

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()

    def tools(self) -> list[LiveTool]:
        return [
            LiveTool(name, tool.description, tool.arguments, self._caller(name), reads=True, bounded=True)
            for name, tool in all_tools().items()
        ]

    def _caller(self, name: str) -> Any:
        def run(given: BaseModel) -> str:
            with self._opening:
                if self._workspace is None:
                    self._workspace = LiveWorkspace(self._connection.kubeconfig, self._connection.telemetry)
            reply = call_tool(self._workspace, name, given.model_dump(exclude_unset=True))
            return json.dumps(reply, default=str)

        return run
