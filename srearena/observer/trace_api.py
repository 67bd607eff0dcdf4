"""Export of spans from Jaeger, one row each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import orjson

from srearena.observer.source import Source
from srearena.observer.tables import LABELS, Export, Format, Row, write
from srearena.observer.window import Window, format_timestamp

COLUMNS = {
    "timestamp": "TIMESTAMP",
    "trace_id": "VARCHAR",
    "span_id": "VARCHAR",
    "parent_span_id": "VARCHAR",
    "service": "VARCHAR",
    "operation": "VARCHAR",
    "kind": "VARCHAR",
    "duration_us": "BIGINT",
    "status": "VARCHAR",
    "status_message": "VARCHAR",
    "tags": LABELS,
    "resource": LABELS,
    "events": "JSON",
}
PAGE = 1500
"""The largest limit that Jaeger's user interface offers."""
_SHORTEST_WINDOW = 0.001
_TRACES = "/api/traces"
_HEAD = b'{"data":['
_DOCUMENT = re.compile(rb'\{"traceID":"(\w+)","spans":(?:\[|null)')


class TraceApi(Source):
    """A client of Jaeger's query API."""

    def __init__(self, url: str, token: str = "", *, page: int = PAGE) -> None:
        super().__init__("Jaeger", url, token)
        self._page = page

    def services(self) -> list[str]:
        return list(self.data("/api/services", {}) or ())

    def operations(self, service: str) -> list[str]:
        return list(self.data(f"/api/services/{quote(service, safe='')}/operations", {}) or ())

    def export(
        self,
        window: Window,
        directory: Path,
        format: Format = "parquet",
        *,
        service: str = "",
        name: str = "traces",
    ) -> Export:
        """Write the spans of every trace that a service (any, by default) took part in."""
        rows = (row for trace in self.traces(window, service) for row in span_rows(trace))
        return write(rows, COLUMNS, Path(directory), name, format)

    def traces(self, window: Window, service: str = "") -> Iterator[Any]:
        """Read each trace once, in Jaeger's format."""
        seen: set[str] = set()
        for name in [service] if service else self.services():
            yield from self._traces_of(name, window, seen)

    def _traces_of(self, service: str, window: Window, seen: set[str]) -> Iterator[Any]:
        """Read the traces of a service that were not read before.

        Jaeger has no paging: a window with too many traces is split in two."""
        params = {
            "service": service,
            "start": str(round(window.start * 1e6)),
            "end": str(round(window.end * 1e6)),
            "limit": str(self._page),
        }
        body = self.body(_TRACES, params)
        documents = _documents(body)
        if documents is None:
            documents = [(trace["traceID"], orjson.dumps(trace)) for trace in self.data_of(_TRACES, body) or ()]
        if len(documents) >= self._page and window.seconds > _SHORTEST_WINDOW:
            for half in window.halves():
                yield from self._traces_of(service, half, seen)
            return
        for trace_id, document in documents:
            if trace_id not in seen:
                seen.add(trace_id)
                yield self.decoded(_TRACES, document)


def _documents(body: bytes) -> list[tuple[str, bytes]] | None:
    """The traces of a response by id, not decoded; `None` if the response is not written as Jaeger writes it.

    Every service that takes part in a trace returns all of it, and decoding is most of the work. The text at which the
    traces are separated cannot occur within a string, where quotes are escaped, and nothing in a trace has spans.
    """
    places = [(match.start(), match[1].decode()) for match in _DOCUMENT.finditer(body)]
    end = body.rfind(b'],"total":')
    if not body.startswith(_HEAD + b"{") or not places or places[0][0] != len(_HEAD) or end < places[-1][0]:
        return None
    edges = [*(place - 1 for place, _ in places[1:]), end]
    if any(body[edge - 1 : edge + 1] != b"}," for edge in edges[:-1]):
        return None
    return [(trace_id, body[place:edge]) for (place, trace_id), edge in zip(places, edges, strict=True)]


def span_rows(trace: Any) -> Iterator[Row]:
    resources = {
        name: {tag["key"]: _text(tag["value"]) for tag in process.get("tags") or ()}
        for name, process in trace["processes"].items()
    }
    for span in sorted(trace["spans"], key=lambda span: (span["startTime"], span["spanID"])):
        tags = {tag["key"]: _text(tag["value"]) for tag in span["tags"]}
        parents = [ref["spanID"] for ref in span["references"] if ref["refType"] == "CHILD_OF"]
        yield {
            "timestamp": format_timestamp(span["startTime"] / 1e6),
            "trace_id": span["traceID"],
            "span_id": span["spanID"],
            "parent_span_id": parents[0] if parents else "",
            "service": trace["processes"][span["processID"]]["serviceName"],
            "operation": span["operationName"],
            "kind": tags.pop("span.kind", ""),
            "duration_us": span["duration"],
            "status": tags.pop("otel.status_code", "") or ("ERROR" if tags.get("error") == "true" else "UNSET"),
            "status_message": tags.pop("otel.status_description", ""),
            "tags": tags,
            "resource": resources[span["processID"]],
            "events": [_event(log) for log in span.get("logs") or ()],
        }


def _event(log: Any) -> dict[str, Any]:
    fields = {field["key"]: field["value"] for field in log["fields"]}
    return {"timestamp": format_timestamp(log["timestamp"] / 1e6), **fields}


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
