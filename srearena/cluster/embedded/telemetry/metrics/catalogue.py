"""Lists of series, labels and metrics for the API; and federation, which lists their samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.metrics.blocks import missing
from srearena.cluster.embedded.telemetry.metrics.labels import NAME, Labels, value_of
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher
from srearena.cluster.embedded.telemetry.metrics.parameters import alternatives, selectors
from srearena.cluster.embedded.telemetry.metrics.promql.engine import LOOKBACK
from srearena.cluster.embedded.telemetry.metrics.promql.errors import BadQuery
from srearena.cluster.embedded.telemetry.metrics.rendering import json_float
from srearena.cluster.embedded.telemetry.metrics.store import MetricStore, Series
from srearena.cluster.embedded.telemetry.query_api import Params, first

LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)
TEXT_FORMAT = {"content-type": "text/plain; version=0.0.4; charset=utf-8"}


@dataclass(frozen=True)
class Choice:
    """Series with samples in a window (milliseconds), chosen by selectors, or all."""

    alternatives: Sequence[Sequence[Matcher]]
    start: int
    end: int

    def _found(self, store: MetricStore) -> Iterator[Series]:
        for matchers in self.alternatives or [()]:
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
    metric, limit = first(params, "metric"), first(params, "limit")
    if limit and not re.fullmatch(r"-?\d+", limit, re.ASCII):
        raise BadQuery("limit must be a number")
    found = {name: [_description(entry)] for name, entry in store.metadata.items() if metric in ("", name)}
    bound = int(limit) if limit else -1
    return dict(list(found.items())[:bound]) if bound >= 0 else found


def _description(entry: Any) -> dict[str, str]:
    return {"type": entry.kind, "help": entry.help, "unit": entry.unit}


def federated(store: MetricStore, params: Params, now: int) -> bytes:
    """Return the latest samples in the text format, metric by metric."""
    lines: list[str] = []
    seen: set[Labels] = set()
    rows = []
    for matchers in alternatives(selectors(params, required=False)):
        for frame in store.frames(matchers, now - LOOKBACK, now):
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
