"""The query APIs over one cluster's telemetry, by the name of the program that each simulates.

A cluster is often started for its objects alone: a query language is loaded with the first query in it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from srearena.cluster.embedded.telemetry.pipeline import Telemetry
from srearena.cluster.embedded.telemetry.query_api import FollowableApi, Following, Params, QueryApi, Response

if TYPE_CHECKING:
    from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules


class _LazyApi:
    """An API that is created at its first request."""

    def __init__(self, make: Callable[[], QueryApi]) -> None:
        self._api = cache(make)

    def handle(self, method: str, path: str, params: Params) -> Response:
        return self._api().handle(method, path, params)

    def follow(self, path: str, params: Params) -> Following | None:
        api = self._api()
        return api.follow(path, params) if isinstance(api, FollowableApi) else None


def query_apis(telemetry: Telemetry, prometheus_version: int = 3) -> dict[str, QueryApi]:
    @cache
    def rules() -> Rules:
        from srearena.cluster.embedded.telemetry.alerts.evaluation import Rules

        return Rules(telemetry.metrics, version=prometheus_version)

    def prometheus() -> QueryApi:
        from srearena.cluster.embedded.telemetry.metrics.api import PrometheusApi

        return PrometheusApi(telemetry.metrics, telemetry.clock, rules(), telemetry.targets, prometheus_version)

    def alertmanager() -> QueryApi:
        from srearena.cluster.embedded.telemetry.alerts.alertmanager_api import AlertmanagerApi

        return AlertmanagerApi(rules(), telemetry.clock)

    def loki() -> QueryApi:
        from srearena.cluster.embedded.telemetry.logs.loki_api import LokiApi

        def page() -> bytes:
            from srearena.cluster.embedded.telemetry.metrics.catalogue import target_page

            now = round(telemetry.clock.now * 1000)
            return target_page(telemetry.metrics, now, {"job": "loki"}, ("job", "instance"))

        return LokiApi(telemetry.logs, telemetry.clock, page)

    def jaeger() -> QueryApi:
        from srearena.cluster.embedded.telemetry.traces.jaeger_api import JaegerApi

        return JaegerApi(telemetry.spans, telemetry.clock)

    return {make.__name__: _LazyApi(make) for make in (prometheus, alertmanager, loki, jaeger)}
