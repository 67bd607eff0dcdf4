"""Base of programs that receive or show telemetry, and what their HTTP servers share."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from srearena.cluster.embedded.durations import format_duration, format_micro_time
from srearena.cluster.embedded.machine.exporter import Sample
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.http_wire import HttpHandler
from srearena.cluster.embedded.machine.networking.sockets import ANY_ADDRESS, GrpcHealth
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import namespace_of
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.serving import go_bind_error

if TYPE_CHECKING:
    from srearena.cluster.embedded.telemetry.pipeline import Telemetry

JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html; charset=utf-8"}
Answer = Callable[[HttpRequest], HttpResponse]


class TelemetryProgram(Program):
    """Base of such programs; each cluster registers subclasses that are bound to its own telemetry."""

    threads = 11
    telemetry: ClassVar[Telemetry]


class PortTaken(Exception):
    """A port is in use; the text is Go's."""


class Ports:
    """The sockets of one run of such a program."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.namespace = process.container.namespace

    def http(self, port: int, answer: Answer, address: str = ANY_ADDRESS) -> None:
        """Serve HTTP with a function that never waits."""

        async def serve(request: HttpRequest) -> HttpResponse:
            await self.process.spend(0.0005)
            return answer(request)

        self.serve(port, serve, address)

    def serve(self, port: int, handler: HttpHandler, address: str = ANY_ADDRESS) -> None:
        try:
            self.namespace.listen(self.process, port, http=handler, address=address)
        except OSError as error:
            raise _bind_failure("tcp", port, error) from error

    def grpc(self, port: int, address: str = ANY_ADDRESS) -> None:
        async def health(service: str) -> GrpcHealth:
            return GrpcHealth.SERVING

        try:
            self.namespace.listen(self.process, port, grpc_health=health, address=address)
        except OSError as error:
            raise _bind_failure("tcp", port, error) from error

    def udp(self, port: int) -> None:
        async def receive(data: bytes, peer: str) -> bytes | None:
            return None

        try:
            self.namespace.listen(self.process, port, protocol="UDP", datagram=receive)
        except OSError as error:
            raise _bind_failure("udp", port, error) from error


def _bind_failure(protocol: str, port: int, error: OSError) -> PortTaken:
    return PortTaken(go_bind_error(port, error, protocol))


def namespace_of_process(process: Process) -> str:
    return namespace_of(process.container.host.pod)


def json_body(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(status, json.dumps(value, separators=(",", ":")).encode(), dict(JSON))


def go_not_found() -> HttpResponse:
    return HttpResponse.text("404 page not found\n", 404)


def health_page(started: float, now: float) -> HttpResponse:
    """The health check of Jaeger's admin server and of the Collector's `health_check` extension."""
    uptime = format_duration(max(now - started, 0.0))
    up_since = format_micro_time(started)
    return json_body({"status": "Server available", "upSince": up_since, "uptime": uptime})


def exposition(kinds: Mapping[str, tuple[str, str]], samples: Iterable[Sample]) -> HttpResponse:
    """Samples in the text format of Prometheus; `kinds` has the type and the help of each name."""
    lines: list[str] = []
    described = ""
    for name, labels, value in samples:
        if name != described:
            kind, help_text = kinds[name]
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
            described = name
        pairs = ",".join(f"{key}={json.dumps(text)}" for key, text in sorted(labels.items()))
        lines.append(f"{name}{{{pairs}}} {_number(value)}" if pairs else f"{name} {_number(value)}")
    text = "\n".join(lines) + "\n"
    return HttpResponse.text(text, content_type="text/plain; version=0.0.4; charset=utf-8; escaping=underscores")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def zap_json(process: Process, level: str, caller: str, message: str, **fields: object) -> str:
    """A line as zap's production encoder writes it."""
    line = {"level": level, "ts": round(process.date, 7), "caller": caller, "msg": message, **fields}
    return json.dumps(line, separators=(",", ":")) + "\n"


def zap_console(process: Process, level: str, caller: str, message: str, fields: Mapping[str, object]) -> str:
    """A line as the Collector writes it: time, level, caller, message and fields, separated by tabs."""
    moment = format_micro_time(process.date)[:-4] + "Z"
    parts: Sequence[str] = (moment, level, caller, message, json.dumps(fields, separators=(", ", ": ")))
    return "\t".join(parts) + "\n"
