"""Export of log lines from Loki, in the order in which they were written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from srearena.observer.source import Source
from srearena.observer.tables import LABELS, Export, Format, Row, write
from srearena.observer.window import Window, format_timestamp

COLUMNS = {"timestamp": "TIMESTAMP", "timestamp_ns": "BIGINT", "labels": LABELS, "line": "VARCHAR"}
EVERYTHING = '{job=~".+"}'
PAGE = 5000
"""Loki's default for max_entries_limit_per_query."""


class Line(NamedTuple):
    """A log line; its stream's name is equal for lines with the same labels."""

    timestamp_ns: int
    stream: str
    text: str
    labels: dict[str, str]


class LogApi(Source):
    """A client of Loki's query API."""

    def __init__(self, url: str, token: str = "", *, page: int = PAGE) -> None:
        super().__init__("Loki", url, token)
        self._page = page

    def export(
        self,
        window: Window,
        directory: Path,
        format: Format = "parquet",
        *,
        query: str = EVERYTHING,
        name: str = "logs",
    ) -> Export:
        """Write the lines that a LogQL log query returns."""
        return write(self.rows(window, query), COLUMNS, Path(directory), name, format)

    def rows(self, window: Window, query: str = EVERYTHING) -> Iterator[Row]:
        """Read the lines of a window as rows of a table."""
        for line in self.lines(window, query):
            yield {
                "timestamp": format_timestamp(line.timestamp_ns / 1e9),
                "timestamp_ns": line.timestamp_ns,
                "labels": line.labels,
                "line": line.text,
            }

    def lines(self, window: Window, query: str = EVERYTHING) -> Iterator[Line]:
        """Read the lines of a window page by page."""
        start, end = round(window.start * 1e6) * 1000, round(window.end * 1e6) * 1000
        seen: set[tuple[str, str]] = set()
        """Lines of the last timestamp of the previous page, with which the next page begins."""
        while start < end:
            params = {
                "query": query,
                "start": str(start),
                "end": str(end),
                "limit": str(self._page),
                "direction": "forward",
            }
            page = _lines(self.data("/loki/api/v1/query_range", params))
            fresh = [line for line in page if line.timestamp_ns > start or (line.stream, line.text) not in seen]
            yield from fresh
            if len(page) < self._page:
                return
            last = page[-1].timestamp_ns
            if not fresh or last == start:
                # More lines of one timestamp than fit on a page: the API offers no way to read the others.
                start, seen = last + 1, set()
                continue
            seen = {(line.stream, line.text) for line in page if line.timestamp_ns == last}
            start = last


def _lines(data: Any) -> list[Line]:
    """The lines of a response, oldest first."""
    lines: list[Line] = []
    for stream in data["result"]:
        labels = stream.get("stream") or {}
        name = repr(sorted(labels.items()))
        lines.extend(Line(int(when), name, text, labels) for when, text, *_ in stream["values"])
    lines.sort(key=lambda line: line[:2])
    return lines
