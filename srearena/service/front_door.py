"""Where an application is entered, and what a visitor may expect: the measure that oracles take.

Both come from the application's metadata, so that the agent is told the same promises its work is judged by.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from srearena.service.errors import ApplicationError, Unreachable
from srearena.service.kubernetes import Kubernetes


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One request that a healthy application answers, and how."""

    path: str
    method: str = "GET"
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    contains: str = ""
    """A text that the answer holds."""

    def fits(self, status: int, text: str) -> bool:
        return status == self.status and self.contains in text

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Visit:
    """What came of a request."""

    request: SampleRequest
    status: int
    """0 where there was no HTTP answer at all."""
    text: str
    seconds: float = 0.0
    """How long the visitor waited, on the cluster's time."""

    @property
    def ok(self) -> bool:
        return self.request.fits(self.status, self.text)


@dataclass(frozen=True, slots=True)
class FrontDoor:
    service: str
    port: int
    protocol: str = "HTTP"
    requests: tuple[SampleRequest, ...] = ()
    namespace: str = ""
    """Where the service is, if not in the application's own namespace."""

    @classmethod
    def parse(cls, value: Any, source: str) -> FrontDoor:
        allowed = {"service", "port", "protocol", "namespace", "requests"}
        fields = _fields(value, allowed, f"{source}: Front Door")
        if not isinstance(fields.get("service"), str) or not isinstance(fields.get("port"), int):
            raise ApplicationError(f"{source}: Front Door needs a service (text) and a port (a number)")
        wanted = set(SampleRequest.__dataclass_fields__)
        requests = []
        for number, entry in enumerate(fields.pop("requests", ())):
            request = _fields(entry, wanted, f"{source}: Front Door, request {number + 1}")
            if not str(request.get("path", "")).startswith("/"):
                raise ApplicationError(f"{source}: Front Door, request {number + 1} needs a path that starts with /")
            requests.append(SampleRequest(**request))
        return cls(requests=tuple(requests), **fields)

    def visit(self, api: Kubernetes, namespace: str, request: SampleRequest, timeout: float = 10.0) -> Visit:
        """Send one request through the API server to the Service, as a user's would arrive there."""
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
            return Visit(request, 0, str(problem))
        return Visit(request, reply.status, reply.text, reply.seconds)

    def visits(self, api: Kubernetes, namespace: str, timeout: float = 10.0) -> Iterable[Visit]:
        """Every sample request once."""
        for request in self.requests:
            yield self.visit(api, namespace, request, timeout)


@dataclass(frozen=True, slots=True)
class Objectives:
    """What the application promises to its users."""

    success_ratio: float = 0.99
    p95_seconds: float = 1.0

    @classmethod
    def parse(cls, value: Any, source: str) -> Objectives:
        fields = _fields(value, {"success_ratio", "p95_seconds"}, f"{source}: Objectives")
        for name, number in fields.items():
            if not isinstance(number, int | float) or number <= 0:
                raise ApplicationError(f"{source}: Objectives: {name} must be a positive number")
        found = cls(**fields)
        if found.success_ratio > 1:
            raise ApplicationError(f"{source}: Objectives: success_ratio is at most 1")
        return found


def _fields(value: Any, allowed: set[str], place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ApplicationError(f"{place} must be an object")
    strange = sorted(set(value) - allowed)
    if strange:
        raise ApplicationError(f"{place} has no field {strange[0]!r}; it knows {', '.join(sorted(allowed))}")
    return dict(value)
