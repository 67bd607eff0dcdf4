"""Spans of an application, from its own Jaeger through the API server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from srearena.service.apps.base import Application
from srearena.service.kubernetes import Kubernetes

_JAEGER, _PORT = "jaeger", 16686
_TRACES = 1500


@dataclass(frozen=True, slots=True)
class Span:
    """One span: whose it is, when it began (seconds since the epoch), how long it took (milliseconds)."""

    service: str
    operation: str
    start: float
    duration: float
    failed: bool
    served: bool
    """Whether it is a request that the service answered, not one that it sent."""

    @property
    def name(self) -> str:
        return f"{self.service}: {self.operation}"


def services(app: Application, api: Kubernetes) -> list[str]:
    """The services that have sent spans; none where the application has no Jaeger."""
    if api.find("services", _JAEGER, app.namespace) is None:
        return []
    return [str(name) for name in _data(app, api, "/api/services")]


def spans(app: Application, api: Kubernetes, service: str, start: float, end: float) -> Iterator[Span]:
    """The spans of traces that a service takes part in; of many traces, the latest."""
    window = f"start={int(start * 1e6)}&end={int(end * 1e6)}"
    for trace in _data(app, api, f"/api/traces?service={service}&limit={_TRACES}&{window}"):
        for span in trace["spans"]:
            tags = {tag["key"]: tag["value"] for tag in span.get("tags") or ()}
            yield Span(
                trace["processes"][span["processID"]]["serviceName"],
                span["operationName"],
                span["startTime"] / 1e6,
                span["duration"] / 1e3,
                tags.get("error") in (True, "true"),
                tags.get("span.kind") == "server",
            )


def _data(app: Application, api: Kubernetes, path: str) -> list[Any]:
    reply = api.request_service(_JAEGER, _PORT, path, app.namespace, timeout=60.0)
    return list(json.loads(reply.text).get("data") or ()) if reply.ok else []


def seconds(moment: str) -> float:
    """The seconds since the epoch of a moment as the API writes it."""
    return datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()
