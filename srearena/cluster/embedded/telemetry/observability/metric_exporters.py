"""Exporters that users deploy in the cluster: node-exporter and kube-state-metrics.

They expose what the cluster's own exporters reported at the last scrape.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import dig
from srearena.cluster.embedded.programs.serving import Flags, stop_signal
from srearena.cluster.embedded.telemetry.observability.telemetry_program import (
    HTML,
    Ports,
    PortTaken,
    TelemetryProgram,
    go_not_found,
)

_TEXT = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"}


class MetricExporter(TelemetryProgram, ABC):
    """An exporter whose metrics the cluster's telemetry has under a job of its own."""

    base = "scratch"
    follows_tag = False
    idle_cpu = 0.0005
    idle_memory = 24 * 1024 * 1024
    title: ClassVar[str] = ""
    port: ClassVar[int] = 0
    port_flag: ClassVar[str] = ""
    target_labels: ClassVar[tuple[str, ...]] = ("job", "instance")
    health_paths: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def target(self, process: Process) -> Mapping[str, str]:
        """The labels of the scraped target whose metrics it exposes."""

    async def run(self, process: Process) -> int:
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        store, clock = self.telemetry.metrics, self.telemetry.clock
        port = Flags(process.argv[1:]).port(self.port_flag, self.port)

        def answer(request: HttpRequest) -> HttpResponse:
            if request.path == "/metrics":
                # Loads the query language, which most clusters never need.
                from srearena.cluster.embedded.telemetry.metrics.catalogue import target_page

                page = target_page(store, round(clock.now * 1000), self.target(process), self.target_labels)
                return HttpResponse(200, page, dict(_TEXT))
            if request.path in self.health_paths:
                return HttpResponse.text("OK")
            if request.path == "/":
                head, body = f"<head><title>{self.title}</title></head>", f"<body><h1>{self.title}</h1></body>"
                return HttpResponse(200, f"<html>{head}{body}</html>\n".encode(), dict(HTML))
            return go_not_found()

        try:
            Ports(process).http(port, answer)
        except PortTaken as problem:
            await process.error(f'level=ERROR msg="{problem}"\n')
            return 1
        await process.error(f'level=INFO msg="Listening on" address=[::]:{port}\n')
        await stop.wait()
        return 0


class NodeExporter(MetricExporter):
    entrypoint = ("/bin/node_exporter",)
    binaries = ("/bin/node_exporter",)
    base = "busybox"
    user = "65534"
    title = "Node Exporter"
    port = 9100
    port_flag = "web.listen-address"
    target_labels = ("job", "instance", "namespace", "container", "endpoint", "service", "pod")

    def target(self, process: Process) -> Mapping[str, str]:
        node = dig(process.container.host.pod, "spec", "nodeName", default="")
        return {"job": "node-exporter", "instance": str(node)}


class KubeStateMetrics(MetricExporter):
    entrypoint = ("/kube-state-metrics",)
    binaries = ("/kube-state-metrics",)
    user = "65534"
    title = "Kube-State-Metrics Metrics Server"
    health_paths = ("/healthz", "/livez")
    port = 8080
    port_flag = "port"

    def target(self, process: Process) -> Mapping[str, str]:
        return {"job": "kube-state-metrics"}
