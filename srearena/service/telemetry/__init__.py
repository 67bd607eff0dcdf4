"""Telemetry for the agent besides the observer: logs in memory, where no log store is needed."""

from srearena.service.telemetry.pod_logs import PodLogs

__all__ = ["PodLogs"]
