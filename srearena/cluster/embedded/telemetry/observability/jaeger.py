"""Jaeger 1 as `all-in-one`: query, collector, agent and admin server in one process, with storage in memory.

It listens where the program does, whatever the pod declares: 14267 (TChannel) left in 1.9, and 9411 (Zipkin) needs
`COLLECTOR_ZIPKIN_HOST_PORT`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import ClassVar

from srearena.cluster.embedded.machine.exporter import Sample
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.serving import Flags, stop_signal
from srearena.cluster.embedded.telemetry.observability.jaeger_query import JaegerQuery
from srearena.cluster.embedded.telemetry.observability.otlp_http import OtlpHttp
from srearena.cluster.embedded.telemetry.observability.receivers import SpanReceiver
from srearena.cluster.embedded.telemetry.observability.telemetry_program import (
    Ports,
    PortTaken,
    TelemetryProgram,
    exposition,
    go_not_found,
    health_page,
    json_body,
    namespace_of_process,
    zap_json,
)

QUERY, QUERY_GRPC, ADMIN, COLLECTOR_HTTP, COLLECTOR_GRPC, SAMPLING = 16686, 16685, 14269, 14268, 14250, 5778
AGENT_UDP = (5775, 6831, 6832)
_SAMPLING_RATE = 0.001
"""The default of the static sampling strategy without a file of strategies."""
_METRICS = {
    "jaeger_collector_spans_received_total": ("counter", "received"),
    "jaeger_collector_spans_rejected_total": ("counter", "rejected"),
    "jaeger_collector_spans_saved_by_svc_total": ("counter", "saved-by-svc"),
    "process_cpu_seconds_total": ("counter", "Total user and system CPU time spent in seconds."),
    "process_resident_memory_bytes": ("gauge", "Resident memory size in bytes."),
    "process_start_time_seconds": ("gauge", "Start time of the process since unix epoch in seconds."),
}


class JaegerAllInOne(TelemetryProgram):
    entrypoint = ("/go/bin/all-in-one-linux",)
    cmd = ("--sampling.strategies-file=/etc/jaeger/sampling_strategies.json",)
    binaries = ("/go/bin/all-in-one-linux",)
    files: ClassVar[Mapping[str, str]] = {
        "/etc/jaeger/sampling_strategies.json": '{\n  "default_strategy": {\n    "type": "probabilistic",\n'
        '    "param": 1\n  }\n}\n'
    }
    base = "alpine"
    follows_tag = False
    user = "10001"
    idle_cpu = 0.001
    idle_memory = 32 * 1024 * 1024

    async def run(self, process: Process) -> int:
        return await _Run(self, process).run()


class _Run:
    def __init__(self, program: JaegerAllInOne, process: Process) -> None:
        self.process = process
        self.memory = program.idle_memory
        self.telemetry = program.telemetry
        self.started = process.date
        self.namespace = namespace_of_process(process)
        self.receiver = SpanReceiver(
            self.namespace, process.clock.now, collects=False, carried=process.container.namespace.carried
        )
        self.flags = Flags(process.argv[1:])

    async def run(self) -> int:
        process = self.process
        stop = stop_signal(process)
        process.set_memory(self.memory)
        telemetry = self.telemetry
        query = JaegerQuery(telemetry, process, self._setting("query.base-path", "/"))
        otlp = OtlpHttp(telemetry.receivers, self.receiver, telemetry.spans, ("traces",))
        await self._log("flags/service.go:119", "Mounting metrics handler on admin server", route="/metrics")
        await self._log("flags/admin.go:130", "Mounting health check on admin server", route="/")
        await self._log("flags/admin.go:144", "Starting admin HTTP server", **{"http-addr": f":{ADMIN}"})
        ports = Ports(process)
        try:
            ports.http(ADMIN, self._admin)
            ports.http(QUERY, query.answer)
            ports.http(COLLECTOR_HTTP, _collector)
            ports.http(SAMPLING, self._sampling)
            ports.grpc(QUERY_GRPC)
            ports.grpc(COLLECTOR_GRPC)
            if self._setting("collector.otlp.enabled", "true") == "true":
                ports.grpc(4317)
                ports.http(4318, otlp.answer)
            zipkin = self._setting("collector.zipkin.host-port", "").rpartition(":")[2]
            if zipkin.isdigit():
                ports.http(int(zipkin), _zipkin)
            for port in AGENT_UDP:
                ports.udp(port)
        except PortTaken as problem:
            await process.error(
                zap_json(process, "fatal", "all-in-one/main.go:170", "Failed to start", error=str(problem))
            )
            return 1
        telemetry.receivers.add(self.receiver)
        try:
            await self._log("app/server.go:256", "Starting HTTP server", port=QUERY, addr=f":{QUERY}")
            await self._log("app/server.go:275", "Starting GRPC server", port=QUERY_GRPC, addr=f":{QUERY_GRPC}")
            await self._log("healthcheck/handler.go:129", "Health Check state change", status="ready")
            await stop.wait()
        finally:
            telemetry.receivers.remove(self.receiver)
        await self._log("healthcheck/handler.go:129", "Health Check state change", status="unavailable")
        await self._log("flags/service.go:169", "Shutting down")
        await self._log("flags/service.go:177", "Shutdown complete")
        return 0

    def _setting(self, name: str, default: str) -> str:
        """A flag, or the environment variable that viper derives from its name."""
        variable = name.replace(".", "_").replace("-", "_").upper()
        return self.flags.get(name, self.process.env.get(variable, default))

    async def _log(self, caller: str, message: str, **fields: object) -> None:
        await self.process.error(zap_json(self.process, "info", caller, message, **fields))

    def _admin(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/":
            return health_page(self.started, self.process.date)
        if request.path == "/metrics":
            return exposition(_METRICS, self._metrics())
        return go_not_found()

    def _sampling(self, request: HttpRequest) -> HttpResponse:
        """Sampling strategies for clients: `/sampling` names the strategy, the legacy `/` numbers it."""
        if request.path not in ("/", "/sampling"):
            return go_not_found()
        if len(request.query.get("service", ())) != 1:
            return HttpResponse.text("'service' parameter must be provided once\n", 400)
        kind: str | int = "PROBABILISTIC" if request.path == "/sampling" else 0
        return json_body({"strategyType": kind, "probabilisticSampling": {"samplingRate": self._sampling_rate()}})

    def _sampling_rate(self) -> float:
        try:
            strategies = json.loads(self.process.files.read_text(self.flags.get("sampling.strategies-file")))
            return float(strategies["default_strategy"]["param"])
        except (OSError, ValueError, KeyError, TypeError):
            return _SAMPLING_RATE

    def _metrics(self) -> Iterator[Sample]:
        agent = any(int(port["containerPort"]) in AGENT_UDP for port in self.process.container.config.ports)
        # Clients that send to the agent over UDP reach the collector by the agent's gRPC, others by HTTP.
        way = {"format": "proto", "transport": "grpc"} if agent else {"format": "jaeger", "transport": "http"}
        accepted = sorted(self.receiver.accepted.items())
        for service, count in accepted:
            yield "jaeger_collector_spans_received_total", {"debug": "false", "svc": service, **way}, count
        for service, _ in accepted:
            yield "jaeger_collector_spans_rejected_total", {"debug": "false", "svc": service, **way}, 0
        for service, count in accepted:
            labels = {"debug": "false", "result": "ok", "svc": service}
            yield "jaeger_collector_spans_saved_by_svc_total", labels, count
        yield "process_cpu_seconds_total", {}, round(self.process.container.meter.cpu_seconds(), 2)
        yield "process_resident_memory_bytes", {}, self.process.memory
        yield "process_start_time_seconds", {}, round(self.started, 2)


def _collector(request: HttpRequest) -> HttpResponse:
    """Batches in Thrift over HTTP. What is no Thrift is refused; a batch of spans by hand is not modelled."""
    if request.path != "/api/traces":
        return go_not_found()
    if request.method != "POST":
        return HttpResponse(405)
    kind = request.header("Content-Type").partition(";")[0].strip()
    if kind not in ("application/x-thrift", "application/vnd.apache.thrift.binary"):
        return HttpResponse.text(f"Unsupported content type: {kind}\n", 400)
    return HttpResponse.text("Unable to process request body: EOF\n", 400)


def _zipkin(request: HttpRequest) -> HttpResponse:
    if request.path not in ("/api/v1/spans", "/api/v2/spans"):
        return go_not_found()
    return HttpResponse(405) if request.method != "POST" else HttpResponse.text("EOF\n", 400)
