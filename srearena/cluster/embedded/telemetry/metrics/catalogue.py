"""Lists of series, labels and metrics for the API; and federation, which lists their samples."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.collectors.collector import Target
from srearena.cluster.embedded.telemetry.metrics.blocks import missing
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, value_of
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.cluster.embedded.telemetry.metrics.parameters import parse_target_selector, selectors
from srearena.cluster.embedded.telemetry.metrics.promql.engine import LOOKBACK
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery
from srearena.cluster.embedded.telemetry.metrics.rendering import json_float
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore, Series
from srearena.cluster.embedded.telemetry.query_api import Params, first

_FAMILY_PARTS = ("", "_bucket", "_sum", "_count")
_ABOUT_SCRAPES = ("up", "scrape_")
TEXT_FORMAT = {"content-type": "text/plain; version=0.0.4; charset=utf-8"}


@dataclass(frozen=True)
class Choice:
    """Series with samples in a window (milliseconds), chosen by selectors, or all."""

    matcher_sets: Sequence[Sequence[Matcher]]
    start: int
    end: int

    def _found(self, store: MetricStore) -> Iterator[Series]:
        for matchers in self.matcher_sets or [()]:
            for series in store.find(matchers):
                if any(_overlaps(block.first, block.last, self.start, self.end) for block, _ in series.places):
                    yield series

    def labels(self, store: MetricStore) -> list[Labels]:
        return sorted({series.labels for series in self._found(store)})

    def label_names(self, store: MetricStore) -> list[str]:
        return sorted({name for labels in self.labels(store) for name, _ in labels})

    def label_values(self, store: MetricStore, name: str) -> list[str]:
        return sorted({value_of(labels, name) for labels in self.labels(store)} - {""})


def _overlaps(first_at: int | None, last_at: int | None, start: int, end: int) -> bool:
    return first_at is not None and last_at is not None and first_at <= end and last_at >= start


def metadata(store: MetricStore, params: Params) -> dict[str, list[dict[str, str]]]:
    metric, bound = first(params, "metric"), _count(params)
    found = {name: [_description(entry)] for name, entry in store.metadata.items() if metric in ("", name)}
    return dict(list(found.items())[:bound]) if bound >= 0 else found


def _count(params: Params) -> int:
    limit = first(params, "limit")
    if limit and not re.fullmatch(r"-?\d+", limit, re.ASCII):
        raise BadQuery("limit must be a number")
    return int(limit) if limit else -1


def _description(entry: Any) -> dict[str, str]:
    return {"type": entry.kind, "help": entry.help, "unit": entry.unit}


def target_metadata(store: MetricStore, params: Params, targets: Iterable[Target]) -> list[dict[str, Any]]:
    """Return the metadata of the metrics that each target exposes."""
    metric, wanted = first(params, "metric"), first(params, "match_target")
    limit = _count(params)
    matchers = parse_target_selector(wanted)
    found: list[dict[str, Any]] = []
    for target in targets:
        if 0 <= limit <= len(found):
            break
        if not all(matcher.holds(target.labels.get(matcher.name, "")) for matcher in matchers):
            continue
        identity = [Matcher(name, "=", target.labels[name]) for name in ("job", "instance")]
        names = {value_of(series.labels, NAME) for series in store.find(identity)}
        for family, entry in store.metadata.items():
            if metric in ("", family) and any(f"{family}{part}" in names for part in _FAMILY_PARTS):
                if family.startswith(_ABOUT_SCRAPES):
                    continue  # of the server, not of the target
                named = {} if metric else {"metric": family}
                found.append({"target": dict(target.labels), **named, **_description(entry)})
    return found


def own_metrics(store: MetricStore, now: int) -> bytes:
    """Return the server's own metrics in the text format, as its target exposes them."""
    return target_page(store, now, {"job": "prometheus"}, ("job", "instance"))


def target_page(
    store: MetricStore,
    now: int,
    target: Mapping[str, str],
    target_labels: Collection[str],
    own: Mapping[str, Collection[str]] | None = None,
) -> bytes:
    """Return the metrics of a target as it exposed them at the last scrape, without the labels of the target.

    `own` names labels that series with one of some other labels have themselves.
    """
    families: dict[str, list[str]] = {}
    hidden = {NAME, *target_labels}
    matchers = [Matcher(name, "=", value) for name, value in target.items()]
    for frame in store.frames(matchers, now - LOOKBACK, now):
        for labels, value in zip(frame.series, frame.values[:, -1:], strict=True):
            name = value_of(labels, NAME)
            if name.startswith(_ABOUT_SCRAPES) or missing(value)[0]:
                continue
            names = {key for key, _ in labels}
            shown = {label for label, others in (own or {}).items() if not names.isdisjoint(others)}
            inner = ",".join(f"{key}={quoted(text)}" for key, text in labels if key not in hidden or key in shown)
            families.setdefault(name, []).append(f"{name}{{{inner}}} " if inner else f"{name} ")
            families[name][-1] += json_float(float(value[0]))
    lines: list[str] = []
    for name, samples in sorted(families.items()):
        if entry := store.metadata.get(name):
            lines += [f"# HELP {name} {entry.help}", f"# TYPE {name} {entry.kind}"]
        lines += samples
    return "".join(f"{line}\n" for line in lines).encode()


def federated(store: MetricStore, params: Params, now: int) -> bytes:
    """Return the latest samples in the text format, metric by metric."""
    lines: list[str] = []
    seen: set[Labels] = set()
    rows = []
    for selector in selectors(params, required=False):
        for frame in store.frames(selector.matchers, now - LOOKBACK, now):
            gone = missing(frame.values[:, -1:])[:, 0]
            for labels, value, stale in zip(frame.series, frame.values[:, -1].tolist(), gone, strict=True):
                if not stale and labels not in seen:
                    seen.add(labels)
                    rows.append((labels, value, int(frame.times[-1])))
    last = ""
    for labels, value, at in sorted(rows, key=lambda row: (value_of(row[0], NAME), row[0])):
        name = value_of(labels, NAME)
        if name != last:
            entry = store.metadata.get(name)
            lines.append(f"# TYPE {name} {'untyped' if entry is None else entry.kind}")
            last = name
        inner = ",".join(f"{key}={quoted(text)}" for key, text in labels if key != NAME)
        lines.append(f"{name}{{{inner}}} {json_float(value)} {at}")
    return "".join(f"{line}\n" for line in lines).encode()
