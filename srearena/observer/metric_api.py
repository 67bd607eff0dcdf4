"""Export of metrics from Prometheus: raw samples, or the results of queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srearena.observer.source import Source
from srearena.observer.tables import LABELS, Export, Format, Row, write
from srearena.observer.window import Window, format_timestamp

COLUMNS = {"timestamp": "TIMESTAMP", "metric": "VARCHAR", "labels": LABELS, "value": "DOUBLE"}
SLICE_SECONDS = 3600.0
MAX_POINTS = 10_000
"""Below Prometheus' limit of 11,000 points per series."""
DEFAULT_STEP = 15.0


@dataclass(frozen=True, slots=True)
class RawSeries:
    """Samples of one series as they were scraped: times in seconds since the epoch, and values."""

    metric: str
    labels: dict[str, str]
    points: list[tuple[float, float | str]]


class MetricApi(Source):
    """A client of Prometheus' query API."""

    def __init__(self, url: str, token: str = "") -> None:
        super().__init__("Prometheus", url, token)

    def names(self, window: Window) -> list[str]:
        """The metrics that have samples in a window."""
        params = {"start": f"{window.start:.3f}", "end": f"{window.end:.3f}"}
        return list(self.data("/api/v1/label/__name__/values", params) or ())

    def export(
        self,
        window: Window,
        directory: Path,
        format: Format = "parquet",
        *,
        names: Sequence[str] | None = None,
        name: str = "metrics",
    ) -> Export:
        """Write the raw samples of these metrics (of all by default)."""
        return write(self.samples(window, names), COLUMNS, Path(directory), name, format)

    def export_queries(
        self,
        window: Window,
        queries: Mapping[str, str],
        directory: Path,
        format: Format = "parquet",
        *,
        step: float = DEFAULT_STEP,
        name: str = "queries",
    ) -> Export:
        """Write the results of PromQL queries; in the table, `metric` is the query's name."""
        rows = (row for label, query in queries.items() for row in self.results(window, query, step, label))
        return write(rows, COLUMNS, Path(directory), name, format)

    def samples(self, window: Window, names: Sequence[str] | None = None) -> Iterator[Row]:
        for metric in self.names(window) if names is None else names:
            for series in self.series(window, f'{{__name__="{metric}"}}'):
                for when, value in series.points:
                    row = {"timestamp": format_timestamp(when), "metric": metric, "labels": series.labels}
                    yield {**row, "value": value}

    def series(self, window: Window, selector: str) -> Iterator[RawSeries]:
        """The raw samples of the series that a selector matches; of a long window, in several pieces."""
        for piece in window.slices(SLICE_SECONDS):
            # A range selector returns raw samples of (start, end].
            query = f"{selector}[{round(piece.seconds * 1000)}ms]"
            data = self.data("/api/v1/query", {"query": query, "time": f"{piece.end:.3f}"})
            for series in data["result"]:
                labels = {name: value for name, value in series["metric"].items() if name != "__name__"}
                # Before version 3 it is [start, end]: the previous slice already has a sample at its start.
                points = [(when, _number(value)) for when, value in series["values"] if when > piece.start]
                yield RawSeries(series["metric"].get("__name__", ""), labels, points)

    def label_values(self, window: Window, label: str, selector: str) -> list[str]:
        """The values of a label in the series that a selector matches."""
        params = {"start": f"{window.start:.3f}", "end": f"{window.end:.3f}", "match[]": selector}
        return list(self.data(f"/api/v1/label/{label}/values", params) or ())

    def results(self, window: Window, query: str, step: float = DEFAULT_STEP, label: str = "") -> Iterator[Row]:
        for piece in window.slices(step * MAX_POINTS):
            # A range query includes both ends; the next slice begins at this one's end.
            end = piece.end if piece.end >= window.end else piece.end - step
            params = {"query": query, "start": f"{piece.start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
            data = self.data("/api/v1/query_range", params)
            yield from _rows(data["result"], label or query)


def _rows(result: list[Any], metric: str) -> Iterator[Row]:
    for series in result:
        labels = {name: value for name, value in series["metric"].items() if name != "__name__"}
        for when, value in series["values"]:
            yield {"timestamp": format_timestamp(when), "metric": metric, "labels": labels, "value": _number(value)}


def _number(text: str) -> float | str:
    """Numbers that JSON cannot represent are text, as DuckDB reads them."""
    value = float(text)
    return value if value - value == 0 else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
