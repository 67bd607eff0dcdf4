"""Parsing Locust's statistics: the JSON of its web interface, or the table it prints to its log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOTAL = "Aggregated"
_ROW = re.compile(
    r"^(?P<method>[A-Z]*)\s+(?P<name>\S.*?)\s+(?P<requests>\d+)\s+(?P<failures>\d+)\([\d.]+%\)\s*\|"
    r"\s*(?P<average>[\d.]+)\s+(?P<least>[\d.]+)\s+(?P<most>[\d.]+)\s+(?P<median>[\d.]+)\s*\|\s*(?P<rate>[\d.]+)",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class LocustRow:
    """The statistics of requests of one name, or of all."""

    method: str
    name: str
    requests: int
    failures: int
    median: float
    """Seconds."""
    average: float
    rate: float
    """Current requests per second."""

    @property
    def success_ratio(self) -> float:
        return (self.requests - self.failures) / self.requests if self.requests else 0.0


@dataclass(frozen=True, slots=True)
class LocustResult:
    """The statistics of a run so far."""

    rows: tuple[LocustRow, ...]
    total: LocustRow
    users: int = 0
    percentiles: Mapping[float, float] | None = None
    """Percent to seconds, of recent requests; None where not reported."""
    errors: Mapping[str, int] | None = None
    """Occurrences by error text."""

    @property
    def throughput(self) -> float:
        return self.total.rate


def read_statistics(document: Mapping[str, Any]) -> LocustResult | None:
    """Parse `/stats/requests`; None where no request was sent yet."""
    rows = tuple(_row(entry) for entry in document.get("stats") or ())
    total = next((row for row in rows if row.name == TOTAL), None)
    if total is None:
        return None
    shares = re.compile(r"^response_time_percentile_(\d+(?:\.\d+)?)$|^(0?\.\d+)$")
    percentiles: dict[float, float] = {}
    current = document.get("current_response_time_percentiles") or {}
    for key, value in {**document, **current}.items():
        match = shares.match(key)
        if match is not None and isinstance(value, int | float):
            number = float(match[1] or match[2])
            percentiles[number * 100 if number <= 1 else number] = value / 1000
    errors = {str(entry.get("error")): int(entry.get("occurrences", 0)) for entry in document.get("errors") or ()}
    by_name = tuple(row for row in rows if row is not total)
    return LocustResult(by_name, total, int(document.get("user_count") or 0), percentiles or None, errors)


def _row(entry: Mapping[str, Any]) -> LocustRow:
    return LocustRow(
        method=str(entry.get("method") or ""),
        name=str(entry["name"]),
        requests=int(entry.get("num_requests") or 0),
        failures=int(entry.get("num_failures") or 0),
        median=float(entry.get("median_response_time") or 0) / 1000,
        average=float(entry.get("avg_response_time") or 0) / 1000,
        rate=float(entry.get("current_rps") or 0),
    )


def read_table(log: str) -> LocustResult | None:
    """Parse the last table in a log; None where there is none."""
    start = log.rfind("# reqs")
    if start < 0:
        return None
    rows = [
        LocustRow(
            method=match["method"],
            name=match["name"],
            requests=int(match["requests"]),
            failures=int(match["failures"]),
            median=float(match["median"]) / 1000,
            average=float(match["average"]) / 1000,
            rate=float(match["rate"]),
        )
        for match in _ROW.finditer(log, start)
    ]
    total = next((row for row in rows if row.name == TOTAL), None)
    if total is None:
        return None
    return LocustResult(tuple(row for row in rows if row is not total), total)
