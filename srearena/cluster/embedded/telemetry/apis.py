"""The query APIs over one cluster's telemetry, by the name of the program each stands for.

A cluster is often started for its objects alone: a query language is loaded when the first question comes in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from srearena.cluster.embedded.telemetry.answers import Answer, Params, QueryApi
from srearena.cluster.embedded.telemetry.pipeline import Telemetry

if TYPE_CHECKING:
    from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules


class _Later:
    """An API that is made when it is first asked."""

    def __init__(self, make: Callable[[], QueryApi]) -> None:
        self._made = cache(make)

    def handle(self, method: str, path: str, params: Params) -> Answer:
        return self._made().handle(method, path, params)


def query_apis(telemetry: Telemetry) -> dict[str, QueryApi]:
    @cache
    def rules() -> Rules:
        from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules

        return Rules(telemetry.metrics)

    def prometheus() -> QueryApi:
        from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi

        return PrometheusApi(telemetry.metrics, telemetry.clock, rules(), telemetry.targets)

    def alertmanager() -> QueryApi:
        from srearena.cluster.embedded.telemetry.alerts.alertmanager_api import AlertmanagerApi

        return AlertmanagerApi(rules(), telemetry.clock)

    def loki() -> QueryApi:
        from srearena.cluster.embedded.telemetry.logs.loki_api import LokiApi

        return LokiApi(telemetry.logs, telemetry.clock)

    def jaeger() -> QueryApi:
        from srearena.cluster.embedded.telemetry.traces.jaeger_api import JaegerApi

        return JaegerApi(telemetry.spans, telemetry.clock)

    return {make.__name__: _Later(make) for make in (prometheus, alertmanager, loki, jaeger)}
