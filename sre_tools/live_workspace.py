"""Workspace over a running environment, so that the diagnostic tools work on it unchanged.

A `LiveWorkspace` writes the data of the Kubernetes, Prometheus, Loki and Jaeger APIs to a private snapshot in the raw
layout. Alerts, events and objects are captured at the start, and again before a call if the last capture is some time
ago; logs, spans and samples up to that capture are fetched when a question needs them, samples only of the objects it
is about. The Kubernetes API has no history of objects: that of Deployments is taken from their old ReplicaSets, other
changes are visible from the first capture on.
"""

from __future__ import annotations

import shutil
import threading
from collections import defaultdict
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

from sre_tools.errors import ToolError
from sre_tools.live_snapshot import LiveSnapshot
from sre_tools.offline_incident_analysis.deployments import deployed_until
from sre_tools.offline_incident_analysis.workspace import Workspace
from srearena.cluster.base import TelemetryEndpoints
from srearena.observer.errors import ObserverError
from srearena.observer.log_api import LogApi
from srearena.observer.metric_api import MetricApi
from srearena.observer.recording.raw_files import RawFiles
from srearena.observer.recording.rollouts import write_rollouts
from srearena.observer.recording.telemetry import (
    MeasuredObject,
    all_spans,
    measured_objects,
    write_logs,
    write_metrics_of,
    write_spans,
)
from srearena.observer.recording.watcher import Watcher
from srearena.observer.trace_api import TraceApi
from srearena.observer.window import Window
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj
from srearena.snapshots import Snapshot
from srearena.temporary import make_folder

WINDOW_SECONDS = 900.0  # chosen: covers injection and first symptoms
REFRESH_SECONDS = 20.0  # chosen: an update takes a fraction of a second, and calls often come in groups


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
        """`window` is how far back the data reach at first, `refresh` the maximum age of the data, in seconds."""
        self._directory = make_folder("live-incident")
        self._refresh_after = refresh
        self._refreshed_at = float("-inf")
        self._refresh_lock = threading.RLock()
        evidence = self._directory / "live"
        evidence.mkdir()
        try:
            self._api = Kubernetes(kubeconfig)
            self._source = _Environment(self._api, telemetry, RawFiles(evidence), window)
            self.refresh()
        except (ObserverError, ServiceError) as problem:
            shutil.rmtree(self._directory, ignore_errors=True)
            raise ToolError(f"the environment cannot be read: {problem}") from problem
        super().__init__(evidence, cache=self._directory / "columns", output=output)

    def close(self) -> None:
        super().close()
        self._source.close()
        self._api.close()
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
        """Capture the present state; what else is there up to now is fetched when it is needed."""
        self._source.capture()
        self._refreshed_at = monotonic()

    def _new_snapshot(self, directory: Path) -> Snapshot:
        return LiveSnapshot(directory, self._directory / "columns", self._source)


class _Environment:
    """An environment as the source of a snapshot's files; each table is complete up to a time of its own."""

    def __init__(self, api: Kubernetes, telemetry: TelemetryEndpoints, files: RawFiles, window: float) -> None:
        self._prometheus = MetricApi(telemetry.prometheus, telemetry.token)
        self._loki = LogApi(telemetry.loki, telemetry.token) if telemetry.loki else None
        self._jaeger = TraceApi(telemetry.jaeger, telemetry.token) if telemetry.jaeger else None
        self._files = files
        self._lock = threading.RLock()
        self._watcher = Watcher(api, self._prometheus, files)
        self._now = self._watcher.now()
        self._start = self._now - window
        self.observed_since = datetime.fromtimestamp(self._start, UTC)
        self._logs_until = self._spans_until = self._start
        self._metrics_until: dict[MeasuredObject, float] = {}
        self._measured: tuple[float, set[MeasuredObject]] | None = None
        self._fetched_traces: set[str] = set()

    def close(self) -> None:
        self._files.close()
        for source in (self._prometheus, self._loki, self._jaeger):
            if source is not None:
                source.close()

    def capture(self) -> None:
        """Capture alerts, events and objects; the other tables can be fetched up to this time from now on."""
        with self._lock:
            first = not self._watcher.firing_alerts
            self._now = self._watcher.capture()
            if first:
                self.observed_since = self._handed_over() or self.observed_since
                write_rollouts(self._watcher.objects, self._files, since=self.observed_since.timestamp())
            self._flush()

    def _handed_over(self) -> datetime | None:
        """When the applications were deployed, if that is in the window: the incident is what happened since."""
        created = [
            (namespace, time, resource)
            for (resource, namespace, _), obj in self._watcher.objects.items()
            if (time := _created(obj)) >= self.observed_since
        ]
        return deployed_until(created)

    def _flush(self) -> None:
        self._files.close()  # files are reopened on the next write

    def fetch_table(self, name: str) -> bool:
        with self._lock:
            if name == "logs" and self._loki is not None and self._now > self._logs_until:
                window = Window(self._logs_until, self._now)
                write_logs(self._loki, window, self._files, self._watcher.deployment_of)
                self._logs_until = self._now
            elif name == "spans" and self._jaeger is not None and self._now > self._spans_until:
                spans = all_spans(self._jaeger, Window(self._spans_until, self._now))
                spans = [row for row in spans if row["trace_id"] not in self._fetched_traces]
                self._fetched_traces.update(row["trace_id"] for row in spans)
                write_spans(spans, self._files)
                self._spans_until = self._now
            elif name == "metrics":
                return self.fetch_metrics_of(self.measured_objects())
            else:
                return False
            self._flush()
            return True

    def fetch_metrics_of(self, objects: Collection[MeasuredObject]) -> bool:
        with self._lock:
            missing: dict[float, list[MeasuredObject]] = defaultdict(list)
            for measured in objects:
                until = self._metrics_until.get(measured, self._start)
                if until < self._now:
                    missing[until].append(measured)
            for until, some in sorted(missing.items()):
                write_metrics_of(self._prometheus, Window(until, self._now), self._files, self._namespaces, some)
                self._metrics_until.update(dict.fromkeys(some, self._now))
            self._flush()
            return bool(missing)

    @property
    def _namespaces(self) -> set[str]:
        return {namespace for _, namespace, _ in self._watcher.objects if namespace}

    def measured_objects(self) -> set[MeasuredObject]:
        with self._lock:
            if self._measured is None or self._measured[0] != self._now:
                window = Window(self._start, self._now)
                self._measured = (self._now, measured_objects(self._prometheus, window, self._namespaces))
            return self._measured[1]

    def metric_times(self) -> tuple[datetime, datetime] | None:
        with self._lock:
            # `up` is written at every scrape, of whatever target.
            series = self._prometheus.series(Window(self._start, self._now), "up")
            times = [when for one in series for when, _ in one.points]
        if not times:
            return None
        return datetime.fromtimestamp(min(times), UTC), datetime.fromtimestamp(max(times), UTC)


def _created(obj: Obj) -> datetime:
    return datetime.fromisoformat(str(obj["metadata"]["creationTimestamp"]))
