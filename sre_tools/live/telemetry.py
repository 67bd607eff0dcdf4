"""HTTP reader of an episode's Prometheus, Loki and Jaeger, for the telemetry tools."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from sre_tools.live.connection import Connection
from srearena.conductor.actions.telemetry import Telemetry


class TelemetryReader(Telemetry):
    """The reader behind agents' actions, with any path of the three APIs."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)  # type: ignore[arg-type]  # of a cluster, it uses only `telemetry`

    def get(self, backend: str, path: str, **query: Any) -> Any:
        """The JSON reply of `prometheus`, `loki` or `jaeger`; parameters that are None are left out."""
        return self._get(backend, path, **query)


def path_segment(text: str) -> str:
    """A text, quoted as one segment of a path."""
    return quote(text, safe="")


def matching(values: list[str] | None, contains: str = "") -> str:
    """The values that contain a text, one per line."""
    return "\n".join(value for value in values or [] if contains in value) or "(none)"
