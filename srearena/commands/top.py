"""`srearena top`: services, rates, errors, latency and pods of a running cluster, redrawn every few seconds."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import click

from srearena.backends import backend_options, chosen_config
from srearena.cluster import registry
from srearena.cluster.base import ClusterError, TelemetryEndpoints
from srearena.cluster.launcher import telemetry_of
from srearena.conductor.episode.environment import telemetry_in_use
from srearena.config import Config
from srearena.observer.source import Source
from srearena.option_types import POSITIVE
from srearena.service.telemetry import golden_signals

_WINDOW = "1m"
_BY = "namespace, service_name"
_QUERIES = {
    "rate": golden_signals.requests(golden_signals.SERVED, _BY, _WINDOW),
    "errors": golden_signals.errors(golden_signals.SERVED, _BY, _WINDOW),
    "p95": golden_signals.latency(golden_signals.SERVED, _BY, _WINDOW),
}
_PODS = {
    "running": 'sum by (namespace) (kube_pod_status_phase{phase="Running"})',
    "not ready": 'sum by (namespace) (kube_pod_status_ready{condition="false"})',
    "restarts": "sum by (namespace) (increase(kube_pod_container_status_restarts_total[10m]))",
}


@dataclass(slots=True)
class Row:
    namespace: str
    service: str
    rate: float = 0.0
    errors: float = 0.0
    p95: float | None = None
    """Milliseconds."""


@click.command()
@click.argument("name", default="")
@click.option("--every", type=POSITIVE, default=2.0, show_default=True, help="Seconds between updates.")
@click.option("--once", is_flag=True, help="Print once and exit.")
@click.option("--json", "as_json", is_flag=True, help="Print once, as JSON.")
@backend_options
def command(name: str, every: float, once: bool, as_json: bool, **where: Any) -> None:
    """Show the services of a running cluster: requests, errors, latency, pods, alerts."""
    with (
        _telemetry(name, chosen_config(**where)) as endpoints,
        Source("Prometheus", endpoints.prometheus, endpoints.token) as source,
    ):
        if as_json:
            rows, pods, alerts = query(source)
            click.echo(json.dumps({"services": [asdict(row) for row in rows], "pods": pods, "alerts": alerts}))
            return
        live = sys.stdout.isatty() and not once
        try:
            while True:
                text = "\n".join(format_lines(*query(source)))
                click.echo(f"\x1b[H\x1b[J{text}" if live else text)
                if not live:
                    return
                time.sleep(max(0.2, every))  # noqa: TID251 - updates for a person are in real time
        except KeyboardInterrupt:
            click.echo()


@contextmanager
def _telemetry(name: str, config: Config) -> Iterator[TelemetryEndpoints]:
    if config.embedded:
        yield telemetry_of(registry.directory_of(_select(name)))
        return
    if name:
        raise ClusterError(f"{name!r} names an embedded cluster: a real one is selected by --context and --kubeconfig")
    with telemetry_in_use(config) as endpoints:
        yield endpoints


def _select(name: str) -> str:
    entries = [entry.name for entry in registry.all_running()]
    if name in entries:
        return name
    if not name and len(entries) == 1:
        return entries[0]
    if not entries:
        raise ClusterError("no cluster is running: start one, for example with `srearena up hotel_reservation`")
    if not name:
        raise ClusterError(f"several clusters are running; name one of {', '.join(entries)}")
    raise ClusterError(f"no cluster named {name!r} is running (running: {', '.join(entries)})")


def query(source: Source) -> tuple[list[Row], dict[str, dict[str, float]], list[Any]]:
    """Query services, pods by namespace, and firing alerts."""
    rows: dict[tuple[str, str], Row] = {}
    for field, query in _QUERIES.items():
        for labels, value in _values(source, query):
            key = (labels.get("namespace", ""), labels.get("service_name", ""))
            row = rows.setdefault(key, Row(*key))
            setattr(row, field, value)
    pods: dict[str, dict[str, float]] = {}
    for field, query in _PODS.items():
        for labels, value in _values(source, query):
            pods.setdefault(labels.get("namespace", ""), {})[field] = value
    firing = source.data("/api/v1/alerts", {})["alerts"]
    alerts = [alert for alert in firing if alert.get("state") == "firing"]
    return sorted(rows.values(), key=lambda row: (row.namespace, -row.rate)), pods, alerts


def _values(source: Source, query: str) -> list[tuple[dict[str, str], float]]:
    data = source.data("/api/v1/query", {"query": query})
    values = [(entry["metric"], float(entry["value"][1])) for entry in data["result"]]
    return [(labels, value) for labels, value in values if value == value]  # without NaN


def format_lines(rows: list[Row], pods: dict[str, dict[str, float]], alerts: list[Any]) -> list[str]:
    lines = [f"{'NAMESPACE':<28}{'SERVICE':<28}{'REQ/S':>9}{'ERRORS':>9}{'P95':>11}"]
    for row in rows:
        share = row.errors / row.rate if row.rate > 0 else 0.0
        p95 = "-" if row.p95 is None else f"{row.p95:.1f} ms"
        line = f"{row.namespace[:27]:<28}{row.service[:27]:<28}{row.rate:>9.2f}{share:>8.1%} {p95:>10}"
        lines.append(click.style(line, fg="red") if share > 0.01 else line)
    if not rows:
        lines.append("no requests in the last minute")
    lines.append("")
    for namespace, counts in sorted(pods.items()):
        words = ", ".join(f"{counts[field]:.0f} {field}" for field in _PODS if counts.get(field))
        if words:
            lines.append(f"{namespace}: {words}")
    lines += [
        click.style(f"ALERT {alert['labels'].get('alertname')} {_format_labels(alert['labels'])}", fg="red")
        for alert in alerts[:20]
    ]
    return lines


def _format_labels(labels: dict[str, str]) -> str:
    shown = {key: value for key, value in labels.items() if key not in ("alertname", "severity")}
    return " ".join(f"{key}={value}" for key, value in sorted(shown.items()))
