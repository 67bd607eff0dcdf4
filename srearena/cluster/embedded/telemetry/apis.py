"""The query APIs over one cluster's telemetry, by the name of the program each stands for."""

from __future__ import annotations

from srearena.cluster.embedded.telemetry.answers import QueryApi
from srearena.cluster.embedded.telemetry.pipeline import Telemetry
from srearena.cluster.embedded.telemetry.traces.jaeger_api import JaegerApi


def query_apis(telemetry: Telemetry) -> dict[str, QueryApi]:
    return {"jaeger": JaegerApi(telemetry.spans, telemetry.clock)}
