"""Export of metrics from Prometheus: raw samples, or the results of queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
            for piece in window.slices(SLICE_SECONDS):
                # A range selector returns raw samples of (start, end].
                milliseconds = round(piece.seconds * 1000)
                query = f'{{__name__="{metric}"}}[{milliseconds}ms]'
                data = self.data("/api/v1/query", {"query": query, "time": f"{piece.end:.3f}"})
                # Before version 3 it is [start, end]: the previous slice already has a sample at its start.
                yield from _rows(data["result"], metric, after=piece.start)

    def results(self, window: Window, query: str, step: float = DEFAULT_STEP, label: str = "") -> Iterator[Row]:
        for piece in window.slices(step * MAX_POINTS):
            # A range query includes both ends; the next slice begins at this one's end.
            end = piece.end if piece.end >= window.end else piece.end - step
            params = {"query": query, "start": f"{piece.start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
            data = self.data("/api/v1/query_range", params)
            yield from _rows(data["result"], label or query)


def _rows(result: list[Any], metric: str, after: float = float("-inf")) -> Iterator[Row]:
    for series in result:
        labels = {name: value for name, value in series["metric"].items() if name != "__name__"}
        for when, value in series["values"]:
            if when > after:
                yield {"timestamp": format_timestamp(when), "metric": metric, "labels": labels, "value": _number(value)}


def _number(text: str) -> float | str:
    """Numbers that JSON cannot represent are text, as DuckDB reads them."""
    value = float(text)
    return value if value - value == 0 else {"inf": "Infinity", "-inf": "-Infinity"}.get(str(value), "NaN")
