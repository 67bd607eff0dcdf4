"""Adds the observability programs to a cluster, bound to its telemetry."""

from __future__ import annotations

from srearena.cluster.embedded.programs.registry import Programs
from srearena.cluster.embedded.telemetry.observability.collector import Jaeger2, OpenTelemetryCollector
from srearena.cluster.embedded.telemetry.observability.grafana import Grafana
from srearena.cluster.embedded.telemetry.observability.jaeger import JaegerAllInOne
from srearena.cluster.embedded.telemetry.observability.metric_exporters import KubeStateMetrics, NodeExporter
from srearena.cluster.embedded.telemetry.observability.opensearch import OpenSearch
from srearena.cluster.embedded.telemetry.observability.telemetry_program import TelemetryProgram
from srearena.cluster.embedded.telemetry.pipeline import Telemetry

_IMAGES: dict[type[TelemetryProgram], tuple[str, ...]] = {
    Grafana: ("grafana/grafana",),
    JaegerAllInOne: ("jaegertracing/all-in-one",),
    Jaeger2: ("jaegertracing/jaeger",),
    OpenTelemetryCollector: ("otel/opentelemetry-collector-contrib",),
    NodeExporter: ("prom/node-exporter", "prometheus/node-exporter"),
    KubeStateMetrics: ("kube-state-metrics/kube-state-metrics", "kube-state-metrics"),
    OpenSearch: ("opensearchproject/opensearch",),
}


def register_observability(programs: Programs, telemetry: Telemetry) -> None:
    for kind, images in _IMAGES.items():
        programs.register(type(kind.__name__, (kind,), {"telemetry": telemetry}), *images)
