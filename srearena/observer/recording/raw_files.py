"""The files of the raw (v0.2) layout: tab-separated tables with the columns of OpenTelemetry's exporters.

Maps are written as in the first recordings, as the repr of a Python dict with text values; lists are JSON. Rows are
written immediately; times are UTC, in nanoseconds.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import orjson

from srearena.closeable import Closeable
from srearena.observer.errors import ObserverError

EVENTS, OBJECTS, LOGS, TRACES = "k8s_events_raw.tsv", "k8s_objects_raw.tsv", "otel_logs_raw.tsv", "otel_traces_raw.tsv"
LOG_COLUMNS = (
    "Timestamp TimestampTime TraceId SpanId TraceFlags SeverityText SeverityNumber ServiceName Body ResourceSchemaUrl "
    "ResourceAttributes ScopeSchemaUrl ScopeName ScopeVersion ScopeAttributes LogAttributes"
).split()
TRACE_COLUMNS = (
    "Timestamp TraceId SpanId ParentSpanId TraceState SpanName SpanKind ServiceName ResourceAttributes ScopeName "
    "ScopeVersion SpanAttributes Duration StatusCode StatusMessage Events.Timestamp Events.Name Events.Attributes "
    "Links.TraceId Links.SpanId Links.TraceState Links.Attributes"
).split()
METRIC_COLUMNS = {
    "pod": "metric_name timestamp value pod_name namespace tags".split(),
    "node": "metric_name timestamp value node_name namespace tags".split(),
    "service": "metric_name timestamp value service_name namespace bucket_le tags metric_type status_code".split(),
}


def nanoseconds(timestamp: int) -> str:
    """Format nanoseconds since the epoch for the tables."""
    seconds, fraction = divmod(timestamp, 1_000_000_000)
    return f"{_second(seconds)}.{fraction:09d}"


@lru_cache(maxsize=1024)  # rows are in order of time, many of one second
def _second(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def mapping(values: Mapping[str, Any]) -> str:
    return repr({key: value if isinstance(value, str) else str(value) for key, value in values.items()})


def listing(values: Sequence[Any]) -> str:
    return orjson.dumps(list(values)).decode()


def log_row(timestamp: int, body: str, resource: str, **columns: str) -> dict[str, str]:
    """A row of one of the three tables with the columns of logs; columns that are left out are empty.

    `resource` is a mapping as `mapping` writes it."""
    time = nanoseconds(timestamp)
    return {
        "Timestamp": time,
        "TimestampTime": time[:19],
        "TraceFlags": "0",
        "SeverityNumber": "0",
        "Body": body,
        "ResourceAttributes": resource,
        "ScopeAttributes": "{}",
        "LogAttributes": "{}",
        **columns,
    }


class _Table(Protocol):
    """What `csv.writer` returns; its type has no public name."""

    def writerow(self, row: Iterable[Any], /) -> Any: ...

    def writerows(self, rows: Iterable[Iterable[Any]], /) -> None: ...


class RawFiles(Closeable):
    """The tables of one snapshot, each opened with its first row."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._open = ExitStack()
        self._writers: dict[str, _Table] = {}

    def close(self) -> None:
        self._open.close()
        self._writers.clear()

    def add(self, name: str, columns: Sequence[str], row: Mapping[str, Any]) -> None:
        self.add_rows(name, columns, ([row.get(column, "") for column in columns],))

    def add_rows(self, name: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add rows whose cells are in the order of the columns."""
        writer = self._writers.get(name)
        if writer is None:
            writer = self._writers[name] = self._open_table(name, columns)
        writer.writerows(rows)

    def _open_table(self, name: str, columns: Sequence[str]) -> _Table:
        path = self.directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = self._open.enter_context(path.open("a", encoding="utf-8", newline=""))
        except OSError as problem:
            raise ObserverError(f"cannot write {path}: {problem.strerror or problem}") from problem
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        if file.tell() == 0:
            writer.writerow(columns)
        return writer

    def alerts(self, time: float, alerts: Sequence[Any], *, final: bool = False) -> None:
        """Write one capture of the firing alerts."""
        when = datetime.fromtimestamp(time, UTC)
        last = f"alerts_in_alerting_state_{when:%Y-%m-%dT%H%M%S.%f}Z"
        name = last if final else f"alerts_at_{when:%Y-%m-%dT%H-%M-%S.%f}"
        folder = self.directory / "alerts"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{name}.json").write_bytes(orjson.dumps(list(alerts), option=orjson.OPT_INDENT_2))
        except OSError as problem:
            raise ObserverError(f"cannot write {folder}: {problem.strerror or problem}") from problem
