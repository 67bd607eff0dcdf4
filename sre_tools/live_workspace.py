"""The same tools over a running environment: what its APIs tell now, kept as a snapshot that grows.

The tools know nothing of this. A `LiveWorkspace` writes what the Kubernetes, Prometheus, Loki and Jaeger APIs say into
a private directory in the raw layout, and brings it up to date before a call if the last look is some time ago. Logs,
spans and samples are fetched once, for the time since the last look. Objects have no past in the Kubernetes API; that
of Deployments is read off their old ReplicaSets, everything else is known from the first look on.
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
from srearena.observer.recording.watching import Watcher
from srearena.observer.trace_api import TraceApi
from srearena.observer.window import Window
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes
from srearena.snapshots import Snapshot

WINDOW_SECONDS = 900.0
REFRESH_SECONDS = 20.0


class LiveWorkspace(Workspace):
    """One environment, as one snapshot; close it to let go of its files."""

    def __init__(
        self,
        kubeconfig: Path | str,
        telemetry: TelemetryEndpoints,
        *,
        window: float = WINDOW_SECONDS,
        refresh: float = REFRESH_SECONDS,
        output: Path | None = None,
    ) -> None:
        """`window` is how far back the first look reaches; `refresh` how old a look may be, both in seconds."""
        self._place = Path(tempfile.mkdtemp(prefix="live-incident-"))
        self._refresh_after = refresh
        self._looking = threading.Lock()
        self._looked = float("-inf")
        self._traces: set[str] = set()
        evidence = self._place / "live"
        evidence.mkdir()
        try:
            self._api = Kubernetes(kubeconfig)
            self._prometheus = MetricApi(telemetry.prometheus, telemetry.token)
            self._loki = LogApi(telemetry.loki, telemetry.token) if telemetry.loki else None
            self._jaeger = TraceApi(telemetry.jaeger, telemetry.token) if telemetry.jaeger else None
            self._files = RawFiles(evidence)
            self._watcher = Watcher(self._api, self._prometheus, self._files)
            self._until = self._watcher.now() - window
            self.refresh()
        except (ObserverError, ServiceError) as problem:
            shutil.rmtree(self._place, ignore_errors=True)
            raise ToolError(f"the environment cannot be looked at: {problem}") from problem
        super().__init__(evidence, cache=self._place / "columns", output=output)

    def close(self) -> None:
        super().close()
        self._files.close()
        self._api.close()
        for source in (self._prometheus, self._loki, self._jaeger):
            if source is not None:
                source.close()
        shutil.rmtree(self._place, ignore_errors=True)

    def snapshot(self, *paths: str | None) -> Snapshot:
        with self._looking:
            if monotonic() - self._looked > self._refresh_after:
                try:
                    self.refresh()
                except (ObserverError, ServiceError) as problem:
                    raise ToolError(f"the environment cannot be looked at any more: {problem}") from problem
        return super().snapshot(*paths)

    def refresh(self) -> None:
        """Fetch what happened since the last look."""
        first = not self._watcher.fired
        now = self._watcher.look()
        if first:
            write_rollouts(self._watcher.objects, self._files, since=self._until)
        if now > self._until:
            self._fetch(Window(self._until, now))
        self._files.close()  # so that everything is on disk; the next row opens its file again
        self._until, self._looked = now, monotonic()

    def _fetch(self, window: Window) -> None:
        if self._loki is not None:
            write_logs(self._loki, window, self._files, self._watcher.deployment_of)
        if self._jaeger is not None:
            spans = [row for row in all_spans(self._jaeger, window) if row["trace_id"] not in self._traces]
            self._traces.update(row["trace_id"] for row in spans)
            write_spans(spans, self._files)
        namespaces = {place for _, place, _ in self._watcher.objects}
        write_metrics(self._prometheus, window, self._files, namespaces)
