"""Workspace over a running environment, so that the diagnostic tools work on it unchanged.

A `LiveWorkspace` writes the data of the Kubernetes, Prometheus, Loki and Jaeger APIs to a private snapshot in the raw
layout, and updates it before a call if the last update is some time ago. An update fetches logs, spans and samples
since the one before. The Kubernetes API has no history of objects: that of Deployments is taken from their old
ReplicaSets, other changes are visible from the first update on.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from time import monotonic

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.workspace import Workspace
from srearena.cluster.base import TelemetryEndpoints
from srearena.observer.errors import ObserverError
from srearena.observer.log_api import LogApi
from srearena.observer.metric_api import MetricApi
from srearena.observer.recording.raw_files import RawFiles
from srearena.observer.recording.rollouts import write_rollouts
from srearena.observer.recording.telemetry import all_spans, write_logs, write_metrics, write_spans
from srearena.observer.recording.watcher import Watcher
from srearena.observer.trace_api import TraceApi
from srearena.observer.window import Window
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes
from srearena.snapshots import Snapshot

WINDOW_SECONDS = 900.0  # chosen: covers injection and first symptoms
REFRESH_SECONDS = 20.0  # chosen: an update takes seconds, and calls often come in groups


class LiveWorkspace(Workspace):
    """One environment as one snapshot; closing it removes the files."""

    def __init__(
        self,
        kubeconfig: Path | str,
        telemetry: TelemetryEndpoints,
        *,
        window: float = WINDOW_SECONDS,
        refresh: float = REFRESH_SECONDS,
        output: Path | None = None,
    ) -> None:
        """`window` is how far back the first update reaches, `refresh` the maximum age of the data, in seconds."""
        self._directory = Path(tempfile.mkdtemp(prefix="live-incident-"))
        self._refresh_after = refresh
        self._refresh_lock = threading.Lock()
        self._refreshed_at = float("-inf")
        self._fetched_traces: set[str] = set()
        evidence = self._directory / "live"
        evidence.mkdir()
        try:
            self._api = Kubernetes(kubeconfig)
            self._prometheus = MetricApi(telemetry.prometheus, telemetry.token)
            self._loki = LogApi(telemetry.loki, telemetry.token) if telemetry.loki else None
            self._jaeger = TraceApi(telemetry.jaeger, telemetry.token) if telemetry.jaeger else None
            self._files = RawFiles(evidence)
            self._watcher = Watcher(self._api, self._prometheus, self._files)
            self._collected_until = self._watcher.now() - window
            self.refresh()
        except (ObserverError, ServiceError) as problem:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise ToolError(f"the environment cannot be read: {problem}") from problem
        super().__init__(evidence, cache=self._directory / "columns", output=output)

    def close(self) -> None:
        super().close()
        self._files.close()
        self._api.close()
        for source in (self._prometheus, self._loki, self._jaeger):
            if source is not None:
                source.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def snapshot(self, *paths: str | None) -> Snapshot:
        with self._refresh_lock:
            if monotonic() - self._refreshed_at > self._refresh_after:
                try:
                    self.refresh()
                except (ObserverError, ServiceError) as problem:
                    raise ToolError(f"the environment cannot be read any more: {problem}") from problem
        return super().snapshot(*paths)

    def refresh(self) -> None:
        """Fetch the data since the last update."""
        first = not self._watcher.firing_alerts
        now = self._watcher.capture()
        if first:
            write_rollouts(self._watcher.objects, self._files, since=self._collected_until)
        if now > self._collected_until:
            self._fetch(Window(self._collected_until, now))
        self._files.close()  # flush to disk; files are reopened on the next write
        self._collected_until, self._refreshed_at = now, monotonic()

    def _fetch(self, window: Window) -> None:
        if self._loki is not None:
            write_logs(self._loki, window, self._files, self._watcher.deployment_of)
        if self._jaeger is not None:
            spans = [row for row in all_spans(self._jaeger, window) if row["trace_id"] not in self._fetched_traces]
            self._fetched_traces.update(row["trace_id"] for row in spans)
            write_spans(spans, self._files)
        namespaces = {namespace for _, namespace, _ in self._watcher.objects}
        write_metrics(self._prometheus, window, self._files, namespaces)
