"""Status of the server and of its targets."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from typing import Any

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.metrics.labels import NAME
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore
from srearena.cluster.embedded.telemetry.query_api import Params

_BUILDS = {
    2: {"version": "2.42.0", "buildDate": "20230201-00:00:00", "goVersion": "go1.19.5"},
    3: {"version": "3.15.0", "buildDate": "20261015-00:00:00", "goVersion": "go1.26.0"},
}
"""Per major version the one whose PromQL this server speaks."""
FEATURES = ("promql-experimental-functions", "promql-binop-fill-modifiers")
WAL_REPLAY = {"min": 0, "max": 0, "current": 0}
"""The log was replayed before the server answered anything."""
ALERTMANAGERS: dict[str, list[dict[str, str]]] = {
    "activeAlertmanagers": [{"url": "http://alertmanager:9093/api/v2/alerts"}],
    "droppedAlertmanagers": [],
}
INTERVAL = "15s"


def build(version: int) -> dict[str, str]:
    return {**_BUILDS[version], "revision": "unknown", "branch": "HEAD", "buildUser": "root@localhost"}


def flags(version: int) -> dict[str, str]:
    return {
        "enable-feature": ",".join(FEATURES) if version > 2 else "",
        "query.lookback-delta": "5m",
        "query.max-samples": "20000000",
        "storage.tsdb.retention.time": "1d",
        "web.cors.origin": ".*",
    }


def chosen_groups(groups: list[dict[str, Any]], params: Params) -> list[dict[str, Any]]:
    """Return the rule groups that the parameters ask for."""
    names, rules, files = (frozenset(params.get(f"{name}[]", ())) for name in ("rule_group", "rule_name", "file"))
    found = []
    for group in groups:
        if (names and group["name"] not in names) or (files and group["file"] not in files):
            continue
        if rules:
            group = {**group, "rules": [rule for rule in group["rules"] if rule["name"] in rules]}
            if not group["rules"]:
                continue
        found.append(group)
    return found


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


def runtime(store: MetricStore, started: str, now: str) -> dict[str, Any]:
    days, rest = divmod(round(store.retention), 86400)
    return {
        "startTime": started,
        "CWD": "/prometheus",
        "hostname": "prometheus-0",
        "serverTime": now,
        "reloadConfigSuccess": True,
        "lastConfigTime": started,
        "corruptionCount": 0,
        "goroutineCount": 1,
        "GOMAXPROCS": 1,
        "GOMEMLIMIT": 2**63 - 1,
        "GOGC": "",
        "GODEBUG": "",
        "storageRetention": f"{days}d" if not rest else f"{round(store.retention)}s",
    }


def tsdb(store: MetricStore) -> dict[str, Any]:
    per_name = sorted(((store.series_count(NAME, name), name) for name in store.metric_names()), reverse=True)
    by_label = {name: store.label_values(name) for name in store.label_names()}
    pairs = ((store.series_count(name, value), name, value) for name, values in by_label.items() for value in values)
    return {
        "headStats": {
            "numSeries": len(store),
            "numLabelPairs": store.pair_count,
            "chunkCount": len(store),
            "minTime": 0 if store.first is None else round(store.first * 1000),
            "maxTime": store.last or 0,
        },
        "seriesCountByMetricName": [{"name": name, "value": count} for count, name in per_name[:10]],
        "labelValueCountByLabelName": [
            {"name": name, "value": len(values)} for name, values in _largest(by_label, len)
        ],
        "memoryInBytesByLabelName": [
            {"name": name, "value": sum(map(len, values))}
            for name, values in _largest(by_label, lambda values: sum(map(len, values)))
        ],
        "seriesCountByLabelValuePair": [
            {"name": f"{name}={value}", "value": count} for count, name, value in heapq.nlargest(10, pairs)
        ],
    }


def _largest(values: dict[str, list[str]], size: Callable[[list[str]], int]) -> list[tuple[str, list[str]]]:
    return heapq.nlargest(10, values.items(), key=lambda entry: size(entry[1]))
