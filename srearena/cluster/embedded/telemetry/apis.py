"""The query APIs over one cluster's telemetry, by the name of the program each stands for."""

from __future__ import annotations

from srearena.cluster.embedded.telemetry.alerts.alertmanager_api import AlertmanagerApi
from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules
from srearena.cluster.embedded.telemetry.answers import QueryApi
from srearena.cluster.embedded.telemetry.logs.loki_api import LokiApi
from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi
from srearena.cluster.embedded.telemetry.pipeline import Telemetry
from srearena.cluster.embedded.telemetry.traces.jaeger_api import JaegerApi


def query_apis(telemetry: Telemetry) -> dict[str, QueryApi]:
    rules = Rules(telemetry.metrics)
    return {
        "prometheus": PrometheusApi(telemetry.metrics, telemetry.clock, rules, telemetry.targets),
        "alertmanager": AlertmanagerApi(rules, telemetry.clock),
        "loki": LokiApi(telemetry.logs, telemetry.clock),
        "jaeger": JaegerApi(telemetry.spans, telemetry.clock),
    }
