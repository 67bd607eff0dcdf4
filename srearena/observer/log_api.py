"""Export of log lines from Loki, in the order in which they were written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from srearena.observer.source import Source
from srearena.observer.tables import LABELS, Export, Format, Row, write
from srearena.observer.window import Window, format_timestamp

COLUMNS = {"timestamp": "TIMESTAMP", "timestamp_ns": "BIGINT", "labels": LABELS, "line": "VARCHAR"}
EVERYTHING = '{job=~".+"}'
PAGE = 5000
"""Loki's default for max_entries_limit_per_query."""


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
        return write(self.lines(window, query), COLUMNS, Path(directory), name, format)

    def lines(self, window: Window, query: str = EVERYTHING) -> Iterator[Row]:
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
            entries = _entries(self.data("/loki/api/v1/query_range", params))
            fresh = [entry for entry in entries if entry[0] > start or (entry[1], entry[2]) not in seen]
            for when, _, line, labels in fresh:
                yield {"timestamp": format_timestamp(when / 1e9), "timestamp_ns": when, "labels": labels, "line": line}
            if len(entries) < self._page:
                return
            last = entries[-1][0]
            if not fresh or last == start:
                # More lines of one timestamp than fit on a page: the API offers no way to read the others.
                start, seen = last + 1, set()
                continue
            seen = {(entry[1], entry[2]) for entry in entries if entry[0] == last}
            start = last


def _entries(data: Any) -> list[tuple[int, str, str, dict[str, str]]]:
    """(timestamp, labels as text, line, labels), oldest first."""
    entries: list[tuple[int, str, str, dict[str, str]]] = []
    for stream in data["result"]:
        labels = stream.get("stream") or {}
        text = repr(sorted(labels.items()))
        entries.extend((int(when), text, line, labels) for when, line, *_ in stream["values"])
    entries.sort(key=lambda entry: entry[:2])
    return entries
