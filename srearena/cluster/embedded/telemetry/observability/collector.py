"""The OpenTelemetry Collector, and Jaeger 2, which is a distribution of it.

What listens follows from the configuration file: the OTLP receiver, extensions and the program's own metrics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.machine.exporter import Sample
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.serving import Flags, stop_signal
from srearena.cluster.embedded.telemetry.observability.collector_config import (
    SIGNALS,
    CollectorConfig,
    InvalidConfig,
    endpoint,
    read_config,
)
from srearena.cluster.embedded.telemetry.observability.jaeger_query import JaegerQuery
from srearena.cluster.embedded.telemetry.observability.otlp_http import OtlpHttp
from srearena.cluster.embedded.telemetry.observability.receivers import SpanReceiver
from srearena.cluster.embedded.telemetry.observability.telemetry_program import (
    HTML,
    Ports,
    PortTaken,
    TelemetryProgram,
    exposition,
    go_not_found,
    health_page,
    json_body,
    namespace_of_process,
    zap_console,
)

_UNITS = {"traces": "spans", "metrics": "metric_points", "logs": "log_records"}
_METRICS: dict[str, tuple[str, str]] = {
    "otelcol_process_cpu_seconds_total": ("counter", "Total CPU user and system time in seconds"),
    "otelcol_process_memory_rss_bytes": ("gauge", "Total physical memory (resident set size)"),
    "otelcol_process_uptime_seconds_total": ("counter", "Uptime of the process"),
}
for _unit in _UNITS.values():
    _text = _unit.replace("_", " ")
    _METRICS |= {
        f"otelcol_receiver_accepted_{_unit}_total": (
            "counter",
            f"Number of {_text} successfully pushed into the pipeline.",
        ),
        f"otelcol_receiver_refused_{_unit}_total": (
            "counter",
            f"Number of {_text} that could not be pushed into the pipeline.",
        ),
        f"otelcol_exporter_sent_{_unit}_total": ("counter", f"Number of {_text} successfully sent to destination."),
        f"otelcol_exporter_send_failed_{_unit}_total": (
            "counter",
            f"Number of {_text} in failed attempts to send to destination.",
        ),
    }


class OpenTelemetryCollector(TelemetryProgram):
    entrypoint = ("/otelcol-contrib",)
    cmd: ClassVar[tuple[str, ...]] = ("--config", "/etc/otelcol-contrib/config.yaml")
    binaries = ("/otelcol-contrib",)
    base = "scratch"
    follows_tag = False
    user = "10001"
    idle_cpu = 0.001
    idle_memory = 32 * 1024 * 1024
    name: ClassVar[str] = "otelcol-contrib"
    forwards: ClassVar[bool] = True
    """Spans go on to a backend; Jaeger is one."""

    async def run(self, process: Process) -> int:
        path = Flags(process.argv[1:]).get("config")
        if not path:
            await process.error("Error: at least one config flag must be provided\n")
            return 1
        try:
            config = read_config(process.files, path, process.env)
        except InvalidConfig as problem:
            await process.error(f"Error: {problem}\n")
            return 1
        return await _Run(self, process, config).run()


class Jaeger2(OpenTelemetryCollector):
    entrypoint = ("/cmd/jaeger/jaeger-linux",)
    cmd = ()
    binaries = ("/cmd/jaeger/jaeger-linux",)
    base = "alpine"
    name = "jaeger"
    forwards = False


class _Run:
    def __init__(self, program: OpenTelemetryCollector, process: Process, config: CollectorConfig) -> None:
        self.program = program
        self.process = process
        self.config = config
        self.telemetry = program.telemetry
        self.started = process.date
        self.receiver = SpanReceiver(
            namespace_of_process(process), process.clock.now, program.forwards, process.container.namespace.carried
        )

    async def run(self) -> int:
        process = self.process
        stop = stop_signal(process)
        process.set_memory(self.program.idle_memory)
        await self._log("service@v/service.go:224", f"Starting {self.program.name}...", Version=self.program.version)
        await self._log("extensions/extensions.go:40", "Starting extensions...")
        try:
            self._listen(Ports(process))
        except PortTaken as problem:
            await process.error(f"Error: cannot start pipelines: failed to start receivers: {problem}\n")
            return 1
        self.telemetry.receivers.add(self.receiver)
        try:
            await self._log("service@v/service.go:247", "Everything is ready. Begin running and processing data.")
            await stop.wait()
        finally:
            self.telemetry.receivers.remove(self.receiver)
        await self._log("otelcol@v/collector.go:358", "Received signal from OS", signal="terminated")
        await self._log("service@v/service.go:284", "Starting shutdown...")
        await self._log("service@v/service.go:298", "Shutdown complete.")
        return 0

    async def _log(self, caller: str, message: str, **fields: object) -> None:
        resource = {"service.name": self.program.name, "service.version": self.program.version}
        line = zap_console(
            self.process,
            "info",
            caller.replace("@v/", f"@v{self.program.version}/"),
            message,
            {"resource": resource, **fields},
        )
        await self.process.error(line)

    def _listen(self, ports: Ports) -> None:
        config, telemetry = self.config, self.telemetry
        metrics = config.metrics_endpoint()
        if metrics is not None:
            ports.http(metrics.port, self._own_metrics, metrics.address)
        for name in config.extensions:
            options = config.component("extensions", name)
            match name.partition("/")[0]:
                case "health_check":
                    place = endpoint(options.get("endpoint", "localhost:13133"), 13133)
                    ports.http(place.port, self._health, place.address)
                case "healthcheckv2":
                    http = options.get("http") or {}
                    place = endpoint(http.get("endpoint", "localhost:13133"), 13133)
                    ports.http(place.port, self._health_v2, place.address)
                case "zpages":
                    place = endpoint(options.get("endpoint", "localhost:55679"), 55679)
                    ports.http(place.port, self._zpages, place.address)
                case "jaeger_query":
                    self._listen_for_queries(ports, options)
        for name, signals in config.signals_of("otlp").items():
            protocols = config.component("receivers", name).get("protocols") or {}
            otlp = OtlpHttp(telemetry.receivers, self.receiver, telemetry.spans, signals)
            if "grpc" in protocols:
                place = endpoint((protocols["grpc"] or {}).get("endpoint", "localhost:4317"), 4317)
                ports.grpc(place.port, place.address)
            if "http" in protocols:
                place = endpoint((protocols["http"] or {}).get("endpoint", "localhost:4318"), 4318)
                ports.http(place.port, otlp.answer, place.address)

    def _listen_for_queries(self, ports: Ports, options: Mapping[str, Any]) -> None:
        query = JaegerQuery(self.telemetry, self.process, str(options.get("base_path") or "/"))
        for protocol, default in (("http", 16686), ("grpc", 16685)):
            place = endpoint((options.get(protocol) or {}).get("endpoint", f"0.0.0.0:{default}"), default)
            if protocol == "http":
                ports.http(place.port, query.answer, place.address)
            else:
                ports.grpc(place.port, place.address)

    def _health(self, request: HttpRequest) -> HttpResponse:
        path = next(
            (
                str(self.config.component("extensions", name).get("path") or "/")
                for name in self.config.extensions
                if name.startswith("health_check")
            ),
            "/",
        )
        return health_page(self.started, self.process.date) if request.path == path else go_not_found()

    def _health_v2(self, request: HttpRequest) -> HttpResponse:
        if request.path != "/status":
            return go_not_found()
        since = format_micro_time(self.started)
        return json_body({"start_time": since, "healthy": True, "status": "StatusOK", "status_time": since})

    def _zpages(self, request: HttpRequest) -> HttpResponse:
        """The page of the service; the others show what only the process itself traces."""
        if request.path != "/debug/servicez":
            return go_not_found()
        rows = "".join(f"<tr><td>{name}</td></tr>" for name in self.config.pipelines)
        return HttpResponse(
            200,
            f"<!DOCTYPE html><title>Service {self.program.name}</title><h1>Service {self.program.name}</h1>"
            f"<p>StartTime: {format_micro_time(self.started)}</p><table>{rows}</table>".encode(),
            dict(HTML),
        )

    def _own_metrics(self, request: HttpRequest) -> HttpResponse:
        return exposition(_METRICS, self._metrics()) if request.path == "/metrics" else go_not_found()

    def _metrics(self) -> Iterator[Sample]:
        own = {
            "service_instance_id": str(self.process.container.host.pod["metadata"]["uid"]),
            "service_name": self.program.name,
            "service_version": self.program.version,
        }
        receiver = self.receiver
        yield "otelcol_process_cpu_seconds_total", own, round(self.process.container.meter.cpu_seconds(), 2)
        yield "otelcol_process_memory_rss_bytes", own, self.process.memory
        yield "otelcol_process_uptime_seconds_total", own, round(self.process.date - self.started, 3)
        listening = self.config.signals_of("otlp")
        for signal in SIGNALS:
            if not any(signal in signals for signals in listening.values()):
                continue
            unit = _UNITS[signal]
            name = next(name for name, signals in listening.items() if signal in signals)
            accepted = sum(receiver.accepted.values()) if signal == "traces" else receiver.records[signal]
            labels = {**own, "receiver": name, "transport": "grpc" if signal == "traces" else "http"}
            yield f"otelcol_receiver_accepted_{unit}_total", labels, accepted
            yield f"otelcol_receiver_refused_{unit}_total", labels, 0
            if signal == "traces":
                for exporter in self.config.exporters_of(signal):
                    to = {**own, "exporter": exporter}
                    sent = receiver.forwarded if self.program.forwards else accepted
                    yield f"otelcol_exporter_sent_{unit}_total", to, sent
                    yield f"otelcol_exporter_send_failed_{unit}_total", to, receiver.failed
