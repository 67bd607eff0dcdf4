"""The Service through which users reach an application, with sample requests, and its service level objectives.

Both come from the application's metadata, so that the agent sees the same values that oracles judge by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from srearena.service.errors import ApplicationError, Unreachable
from srearena.service.kubernetes import Kubernetes


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A request with the response that a healthy application gives."""

    path: str
    method: str = "GET"
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    contains: str = ""
    """A text that the response contains."""

    def matches(self, status: int, text: str) -> bool:
        return status == self.status and self.contains in text

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of a sample request."""

    request: SampleRequest
    status: int
    """The HTTP status; 0 where there was no response."""
    text: str
    seconds: float = 0.0
    """The response time, in the cluster's time."""
    content_type: str = ""

    @property
    def ok(self) -> bool:
        return self.request.matches(self.status, self.text)


@dataclass(frozen=True, slots=True)
class Frontend:
    """The Service that users send their requests to."""

    service: str
    port: int
    protocol: str = "HTTP"
    requests: tuple[SampleRequest, ...] = ()
    namespace: str = ""
    """The namespace of the Service, if not the application's."""

    @classmethod
    def parse(cls, value: Any, source: str) -> Frontend:
        allowed = {"service", "port", "protocol", "namespace", "requests"}
        fields = _fields(value, allowed, f"{source}: Front Door")
        if not isinstance(fields.get("service"), str) or not isinstance(fields.get("port"), int):
            raise ApplicationError(f"{source}: Front Door needs a service (text) and a port (a number)")
        request_fields = set(SampleRequest.__dataclass_fields__)
        requests = []
        for number, entry in enumerate(fields.pop("requests", ())):
            request = _fields(entry, request_fields, f"{source}: Front Door, request {number + 1}")
            if not str(request.get("path", "")).startswith("/"):
                raise ApplicationError(f"{source}: Front Door, request {number + 1} needs a path that starts with /")
            requests.append(SampleRequest(**request))
        return cls(requests=tuple(requests), **fields)

    def probe(self, api: Kubernetes, namespace: str, request: SampleRequest, timeout: float = 10.0) -> ProbeResult:
        """Send one request to the Service through the API server."""
        try:
            reply = api.request_service(
                self.service,
                self.port,
                request.path,
                self.namespace or namespace,
                method=request.method,
                body=request.body.encode() if request.body else None,
                headers=request.headers,
                timeout=timeout,
            )
        except Unreachable as problem:
            return ProbeResult(request, 0, str(problem))
        content_type = next((value for key, value in reply.headers.items() if key.lower() == "content-type"), "")
        return ProbeResult(request, reply.status, reply.text, reply.seconds, content_type)

    def probe_all(self, api: Kubernetes, namespace: str, timeout: float = 10.0) -> Iterable[ProbeResult]:
        """Send every sample request once."""
        for request in self.requests:
            yield self.probe(api, namespace, request, timeout)


@dataclass(frozen=True, slots=True)
class Objectives:
    """The application's service level objectives."""

    success_ratio: float = 0.99
    p95_seconds: float = 1.0

    @classmethod
    def parse(cls, value: Any, source: str) -> Objectives:
        fields = _fields(value, {"success_ratio", "p95_seconds"}, f"{source}: Objectives")
        for name, number in fields.items():
            if not isinstance(number, int | float) or number <= 0:
                raise ApplicationError(f"{source}: Objectives: {name} must be a positive number")
        objectives = cls(**fields)
        if objectives.success_ratio > 1:
            raise ApplicationError(f"{source}: Objectives: success_ratio is at most 1")
        return objectives


def _fields(value: Any, allowed: set[str], place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ApplicationError(f"{place} must be an object")
    unknown = sorted(set(value) - allowed)
    if unknown:
        raise ApplicationError(f"{place} has no field {unknown[0]!r}; allowed are {', '.join(sorted(allowed))}")
    return dict(value)
