"""Status of the server and of its targets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore

VERSION = "2.42.0"
"""The Prometheus version whose PromQL semantics this server has."""
BUILD = {
    "version": VERSION,
    "revision": "srearena",
    "branch": "HEAD",
    "buildUser": "srearena",
    "buildDate": "20230201-00:00:00",
    "goVersion": "go1.19.5",
}
FLAGS = {
    "query.lookback-delta": "5m",
    "query.max-samples": "20000000",
    "storage.tsdb.retention.time": "1d",
}
ALERTMANAGERS: dict[str, list[dict[str, str]]] = {"activeAlertmanagers": [], "droppedAlertmanagers": []}
INTERVAL = "15s"


def targets(found: Iterable[Target], state: str) -> dict[str, Any]:
    active = [_target(target) for target in found]
    return {
        "activeTargets": active if state in ("", "any", "active") else [],
        "droppedTargets": [],
    }


def _target(target: Target) -> dict[str, Any]:
    return {
        "discoveredLabels": dict(target.discovered),
        "labels": dict(target.labels),
        "scrapePool": target.job,
        "scrapeUrl": target.url,
        "globalUrl": target.url,
        "lastError": target.error,
        "lastScrape": format_micro_time(target.scraped_at) if target.scraped_at else "0001-01-01T00:00:00Z",
        "lastScrapeDuration": target.seconds,
        "health": target.health,
        "scrapeInterval": INTERVAL,
        "scrapeTimeout": "10s",
    }


def configuration(found: Iterable[Target]) -> str:
    jobs = sorted({target.job for target in found})
    lines = ["global:", f"  scrape_interval: {INTERVAL}", "  scrape_timeout: 10s", "  evaluation_interval: 15s"]
    if jobs:
        lines.append("scrape_configs:")
        lines += [f"- job_name: {job}" for job in jobs]
    return "\n".join(lines) + "\n"


def runtime(store: MetricStore, started: str) -> dict[str, Any]:
    days, rest = divmod(round(store.retention), 86400)
    return {
        "startTime": started,
        "CWD": "/prometheus",
        "reloadConfigSuccess": True,
        "lastConfigTime": started,
        "corruptionCount": 0,
        "goroutineCount": 1,
        "GOMAXPROCS": 1,
        "GOGC": "",
        "GODEBUG": "",
        "storageRetention": f"{days}d" if not rest else f"{round(store.retention)}s",
    }


def tsdb(store: MetricStore) -> dict[str, Any]:
    per_name = sorted(((store.series_count(NAME, name), name) for name in store.metric_names()), reverse=True)
    return {
        "headStats": {"numSeries": len(store), "numLabelPairs": store.pair_count, "chunkCount": 0},
        "seriesCountByMetricName": [{"name": name, "value": count} for count, name in per_name[:10]],
        "labelValueCountByLabelName": [
            {"name": name, "value": len(store.label_values(name))} for name in store.label_names()[:10]
        ],
    }
