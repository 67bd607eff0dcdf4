"""The context that live tools work with: one episode's connection, kubectl, telemetry and analysis workspace."""

from __future__ import annotations

import threading

from sre_tools.live.changes import Changes
from sre_tools.live.connection import Connection
from sre_tools.live.kubectl_runner import KubectlRunner
from sre_tools.live.paging import Pages
from sre_tools.live.telemetry import TelemetryReader
from sre_tools.live_workspace import LiveWorkspace
from srearena.closeable import Closeable
from srearena.conductor.actions.kubectl_process import KubectlProcess
from srearena.service.kubernetes import Kubernetes


class LiveContext(Closeable):
    def __init__(self, connection: Connection, mode: str) -> None:
        self.connection = connection
        self.mode = mode
        self.pages = Pages()
        self._process = KubectlProcess(connection.kubeconfig)
        self._kubernetes = Kubernetes(connection.kubeconfig)
        self.telemetry = TelemetryReader(connection)
        self._workspace: LiveWorkspace | None = None
        self._workspace_lock = threading.Lock()
        try:
            self.changes = Changes(self._kubernetes)
            self.kubectl = KubectlRunner(self._process, self.changes, mode)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()
        self.telemetry.close()
        self._kubernetes.close()
        self._process.close()

    def workspace(self) -> LiveWorkspace:
        """The environment as a snapshot for the analysis tools; the first call collects it, which takes a while."""
        with self._workspace_lock:
            if self._workspace is None:
                self._workspace = LiveWorkspace(self.connection.kubeconfig, self.connection.telemetry)
            return self._workspace

    def sleep(self, seconds: float) -> None:
        """`sleep` of the shell tool: time passes in the environment."""
        self.connection.wait(min(seconds, 600.0))
