"""A provisioning file for Grafana: the telemetry APIs of a cluster as data sources."""

from __future__ import annotations

from typing import Any

import yaml

from srearena.cluster.base import TelemetryEndpoints


def data_sources(name: str, endpoints: TelemetryEndpoints) -> str:
    """The data sources of a cluster, for `/etc/grafana/provisioning/datasources`."""
    urls = {
        "prometheus": endpoints.prometheus,
        "loki": endpoints.loki,
        "jaeger": endpoints.jaeger,
        "alertmanager": endpoints.alertmanager,
    }
    sources = [_source(name, kind, url, endpoints.token) for kind, url in urls.items() if url]
    return yaml.safe_dump({"apiVersion": 1, "datasources": sources}, sort_keys=False)


def _source(name: str, kind: str, url: str, token: str) -> dict[str, Any]:
    source: dict[str, Any] = {"name": f"{name} {kind}", "type": kind, "access": "proxy", "url": url, "jsonData": {}}
    if kind == "prometheus":
        source["jsonData"] |= {"timeInterval": "15s", "httpMethod": "GET"}
    if kind == "alertmanager":
        source["jsonData"]["implementation"] = "prometheus"
    if token:
        source["jsonData"]["httpHeaderName1"] = "Authorization"
        source["secureJsonData"] = {"httpHeaderValue1": f"Bearer {token}"}
    return source
