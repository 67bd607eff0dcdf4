"""Loki's HTTP API over the log store: its paths, parameters, defaults, limits, responses and errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import orjson

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.durations import TimeError, parse_time
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.logs.discovery import (
    detected_fields,
    detected_labels,
    field_values,
    patterns,
)
from srearena.cluster.embedded.telemetry.logs.logql.amounts import number, prometheus_duration
from srearena.cluster.embedded.telemetry.logs.logql.engine import Entries, Read, evaluate, find_lines, select
from srearena.cluster.embedded.telemetry.logs.logql.errors import QueryError
from srearena.cluster.embedded.telemetry.logs.logql.parser import parse, parse_selector
from srearena.cluster.embedded.telemetry.logs.logql.printing import formatted
from srearena.cluster.embedded.telemetry.logs.logql.syntax import LogQuery, VectorAggregation
from srearena.cluster.embedded.telemetry.logs.logql.vectors import Series
from srearena.cluster.embedded.telemetry.logs.store import LogStore, LogStream, nanos
from srearena.cluster.embedded.telemetry.logs.volume import volumes, volumes_over_time
from srearena.cluster.embedded.telemetry.metrics.rendering import go_float
from srearena.cluster.embedded.telemetry.query_api import (
    Params,
    Response,
    first,
    json_response,
    not_found,
    text_response,
)

DEFAULT_LIMIT = 100
MAX_LIMIT = 5000
MAX_FIELDS = 1000
MAX_POINTS = 11_000
DEFAULT_WINDOW = 3600.0
LABELS_WINDOW = 6 * 3600.0
_SECOND = 10**9
_MILLISECOND = 10**6
_DIGITS = re.compile(r"[+-]?\d+", re.ASCII)
_BUILD = {
    "version": "3.5.0",
    "revision": "8e0eba6",
    "branch": "HEAD",
    "buildUser": "root@buildkitsandbox",
    "buildDate": "2025-05-01T00:00:00Z",
    "goVersion": "",
}

_SERVICES = (
    "analytics",
    "compactor",
    "distributor",
    "ingester",
    "querier",
    "query-frontend",
    "ring",
    "server",
    "store",
)
"""Of a Loki in one process, as `/services` lists them."""


class LokiApi:
    def __init__(self, store: LogStore, clock: Clock, metrics_page: Callable[[], bytes] = bytes) -> None:
        self._store = store
        self._clock = clock
        self._metrics_page = metrics_page

    def handle(self, method: str, path: str, params: Params) -> Response:
        if method not in ("GET", "HEAD", "POST"):
            return text_response("", 405)
        try:
            return self._route(path.rstrip("/"), params)
        except QueryError as problem:
            return text_response(str(problem), 400)

    def _route(self, path: str, params: Params) -> Response:
        match path.removeprefix("/").split("/"):
            case ["ready"]:
                return text_response("ready\n")
            case ["metrics"]:
                return 200, {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}, self._metrics_page()
            case ["services"]:
                return text_response("".join(f"{name} => Running\n" for name in _SERVICES))
            case ["loki", "api", "v1", "query_range"]:
                return self._query_range(params)
            case ["loki", "api", "v1", "query"]:
                return self._query(params)
            case ["loki", "api", "v1", "labels" | "label"]:
                return self._labels(params)
            case ["loki", "api", "v1", "label", name, "values"]:
                return self._label_values(name, params)
            case ["loki", "api", "v1", "series"]:
                return self._series(params)
            case ["loki", "api", "v1", "index", "stats"]:
                return self._stats(params)
            case ["loki", "api", "v1", "index", "volume"]:
                return self._volume(params)
            case ["loki", "api", "v1", "index", "volume_range"]:
                return self._volume_range(params)
            case ["loki", "api", "v1", "detected_labels"]:
                return self._detected_labels(params)
            case ["loki", "api", "v1", "detected_fields"]:
                return self._detected_fields(params)
            case ["loki", "api", "v1", "detected_field", name, "values"]:
                return self._detected_values(name, params)
            case ["loki", "api", "v1", "patterns"]:
                return self._patterns(params)
            case ["loki", "api", "v1", "format_query"]:
                return _format_query(params)
            case ["loki", "api", "v1", "tail"]:
                return text_response("Bad Request\nwebsocket: the client is not using the websocket protocol\n", 400)
            case ["loki", "api", "v1", "rules", *_] | ["api", "prom", "rules", *_]:
                return text_response("no rule groups found\n", 404)
            case ["prometheus", "api", "v1", "rules" | "alerts" as kind]:
                name = "groups" if kind == "rules" else "alerts"
                return _loki_json({"status": "success", "data": {name: []}, "errorType": "", "error": ""})
            case ["loki", "api", "v1", "status", "buildinfo"]:
                return _loki_json(_BUILD)
            case _:
                return not_found()

    # Queries

    def _query_range(self, params: Params) -> Response:
        start, end = self._window(params, DEFAULT_WINDOW)
        if end < start:
            raise QueryError("end timestamp must not be before or equal to start time")
        step = _step(params, start, end)
        limit = _limit(params)
        backward = _is_backward(params)
        query = parse(first(params, "query"))
        read = Read()
        if isinstance(query, LogQuery):
            found = find_lines(self._store, query, start, end, limit, backward=backward, read=read)
            return _answer("streams", _streams(found), read, sum(len(entries.lines) for entries in found))
        if (end - start) // step > MAX_POINTS:
            raise QueryError(_too_many_points())
        steps = range(start, end + 1, step)
        result = evaluate(self._store, query, steps, read)
        if isinstance(result, float):
            points = [[_seconds(moment), go_float(result)] for moment in steps]
            return _answer("matrix", [{"metric": {}, "values": points}], read, 1)
        ordered = sorted(result, key=lambda series: series.key)
        return _answer("matrix", [_matrix(series, steps) for series in ordered], read, len(ordered))

    def _query(self, params: Params) -> Response:
        moment = _moment(params, "time", nanos(self._clock.now))
        _limit(params)
        query = parse(first(params, "query"))
        if isinstance(query, LogQuery):
            raise QueryError(
                "log queries are not supported as an instant query type, please change your query to a range query type"
            )
        read = Read()
        result = evaluate(self._store, query, (moment,), read)
        if isinstance(result, float):
            return _answer("scalar", [_seconds(moment), go_float(result)], read, 1)
        if not (isinstance(query, VectorAggregation) and query.operation.startswith("sort")):
            result = sorted(result, key=lambda series: series.key)
        vector = [
            {"metric": dict(series.labels), "value": [_seconds(moment), go_float(float(series.values[0]))]}
            for series in result
            if series.present[0]
        ]
        return _answer("vector", vector, read, len(vector))

    # Labels, series and statistics

    def _labels(self, params: Params) -> Response:
        names = {name for stream in self._within(params, _matched(params, "query")) for name in stream.labels}
        return _listing(sorted(names))

    def _label_values(self, name: str, params: Params) -> Response:
        streams = self._within(params, _matched(params, "query"))
        return _listing(sorted({stream.labels[name] for stream in streams if name in stream.labels}))

    def _series(self, params: Params) -> Response:
        selectors = _matched(params, "match[]", "match")
        found = {tuple(stream.labels.items()): stream.labels for stream in self._within(params, selectors)}
        return _loki_json({"status": "success", "data": [found[key] for key in sorted(found)]})

    def _stats(self, params: Params) -> Response:
        start, end = self._window(params, DEFAULT_WINDOW)
        streams = chunks = entries = size = 0
        for stream in select(self._store, parse_selector(first(params, "query"))):
            low, high = stream.window(start, end)
            if high > low:
                streams, chunks, entries = streams + 1, chunks + 1, entries + high - low
                size += sum(map(len, stream.lines[low:high]))
        return _loki_json({"streams": streams, "chunks": chunks, "bytes": size, "entries": entries})

    def _volume(self, params: Params) -> Response:
        start, end = self._window(params, DEFAULT_WINDOW)
        matchers = parse_selector(first(params, "query", "{}"))
        targets = [name for name in first(params, "targetLabels").split(",") if name]
        found = volumes(select(self._store, matchers), matchers, targets, start, end, _limit(params))
        vector = [{"metric": labels, "value": [_seconds(end), str(size)]} for labels, size in found]
        return _answer("vector", vector, Read(), len(vector))

    def _volume_range(self, params: Params) -> Response:
        start, end = self._window(params, DEFAULT_WINDOW)
        matchers = parse_selector(first(params, "query", "{}"))
        targets = [name for name in first(params, "targetLabels").split(",") if name]
        steps = range(start, end, _step(params, start, end))
        if len(steps) > MAX_POINTS:
            raise QueryError(_too_many_points())
        found = volumes_over_time(select(self._store, matchers), matchers, targets, steps, _limit(params))
        matrix = [
            {"metric": labels, "values": [[_seconds(moment), str(size)] for moment, size in sizes]}
            for labels, sizes in found
        ]
        return _answer("matrix", matrix, Read(), len(matrix))

    # What occurs in lines

    def _detected_labels(self, params: Params) -> Response:
        return _loki_json({"detectedLabels": detected_labels(self._within(params, _matched(params, "query")))})

    def _sampled_lines(self, params: Params) -> tuple[list[Entries], int]:
        """Return lines to find fields in, and how many results are wanted."""
        start, end = self._window(params, DEFAULT_WINDOW)
        query = parse(first(params, "query"))
        if not isinstance(query, LogQuery):
            raise QueryError("only log selector is supported")
        lines = _count(params, "line_limit", DEFAULT_LIMIT)
        return find_lines(self._store, query, start, end, lines, backward=True), _count(params, "limit", MAX_FIELDS)

    def _detected_fields(self, params: Params) -> Response:
        found, limit = self._sampled_lines(params)
        return _loki_json({"fields": detected_fields(found, limit), "limit": limit})

    def _detected_values(self, name: str, params: Params) -> Response:
        found, limit = self._sampled_lines(params)
        return _loki_json({"values": field_values(found, name, limit), "limit": limit})

    def _patterns(self, params: Params) -> Response:
        start, end = self._window(params, DEFAULT_WINDOW)
        step = max(_step(params, start, end), 10 * _SECOND)
        streams = select(self._store, parse_selector(first(params, "query")))
        return _loki_json({"status": "success", "data": patterns(streams, start, end, step)})

    # Tailing

    def follow(self, path: str, params: Params) -> Tail | None:
        """Follow a log query: what a WebSocket at /loki/api/v1/tail sends."""
        if path.rstrip("/") not in ("/loki/api/v1/tail", "/api/prom/tail"):
            return None
        try:
            query = parse(first(params, "query"))
            start, _ = self._window(params, DEFAULT_WINDOW)
            return Tail(self._store, self._clock, query, start, _limit(params)) if isinstance(query, LogQuery) else None
        except QueryError:
            return None

    def _within(self, params: Params, selectors: Sequence[Any]) -> Iterable[LogStream]:
        start, end = self._window(params, LABELS_WINDOW)
        for stream in self._store.streams():
            low, high = stream.window(start, end)
            if high > low and (
                not selectors
                or any(all(m.holds(stream.labels.get(m.name, "")) for m in selector) for selector in selectors)
            ):
                yield stream

    def _window(self, params: Params, width: float) -> tuple[int, int]:
        end = _moment(params, "end", nanos(self._clock.now) + 1)
        if since := first(params, "since"):
            seconds = prometheus_duration(since)
            if seconds is None:
                raise QueryError(f"could not parse 'since' parameter: not a valid duration string: {quoted(since)}")
            width = seconds
        return _moment(params, "start", end - round(width * _SECOND)), end


class Tail:
    """The lines of a query in the order of their times, as they are written."""

    def __init__(self, store: LogStore, clock: Clock, query: LogQuery, start: int, limit: int) -> None:
        self._store, self._clock, self._query = store, clock, query
        self._next, self._limit = start, limit

    def message(self) -> bytes | None:
        """Return the lines since the last message; nothing where there are none."""
        end = nanos(self._clock.now) + 1
        found = find_lines(self._store, self._query, self._next, end, self._limit, backward=False)
        if not found:
            return None
        self._next = max(entries.lines[-1][0] for entries in found) + 1
        return orjson.dumps({"streams": _streams(found), "dropped_entries": None})


# Parameters


def _count(params: Params, name: str, default: int) -> int:
    text = first(params, name)
    if not text:
        return default
    if not _DIGITS.fullmatch(text) or not 0 < int(text) <= MAX_LIMIT:
        raise QueryError(f"{name} must be a positive value")
    return int(text)


def _too_many_points() -> str:
    return (
        f"exceeded maximum resolution of {MAX_POINTS:,} points per time series. "
        "Try increasing the value of the step parameter"
    )


def _moment(params: Params, name: str, default: int) -> int:
    """Seconds with a fraction, nanoseconds, or RFC 3339."""
    text = first(params, name)
    if not text:
        return default
    if "." in text and (seconds := number(text)) is not None:
        return round(seconds * 1e6) * 1000
    if _DIGITS.fullmatch(text) and len(text) <= 20:
        value = int(text)
        return value * _SECOND if len(text) <= 10 else value
    try:
        return nanos(parse_time(text))
    except TimeError as problem:
        # A value that is no time is parsed as a number last, so the error message is about a number.
        prefix = "" if name == "time" else f"could not parse '{name}' parameter: "
        raise QueryError(f"{prefix}strconv.ParseInt: parsing {quoted(text)}: invalid syntax") from problem


def _step(params: Params, start: int, end: int) -> int:
    text = first(params, "step")
    if not text:
        return max((end - start) // (250 * _SECOND), 1) * _SECOND
    seconds = number(text)
    if seconds is None:
        seconds = prometheus_duration(text)
    if seconds is None or seconds != seconds:
        raise QueryError(f"cannot parse {quoted(text)} to a valid duration")
    if seconds <= 0:
        raise QueryError("zero or negative query resolution step widths are not accepted. Try a positive integer")
    return max(round(seconds * 1000), 1) * _MILLISECOND


def _limit(params: Params) -> int:
    text = first(params, "limit")
    if not text:
        return DEFAULT_LIMIT
    if not _DIGITS.fullmatch(text) or len(text) > 18:
        raise QueryError(f"strconv.Atoi: parsing {quoted(text)}: invalid syntax")
    limit = int(text)
    if limit <= 0:
        raise QueryError("limit must be a positive value")
    if limit > MAX_LIMIT:
        raise QueryError(
            f"max entries limit per query exceeded, limit > max_entries_limit_per_query ({limit} > {MAX_LIMIT})"
        )
    return limit


def _is_backward(params: Params) -> bool:
    text = first(params, "direction", "backward")
    if text.upper() not in ("FORWARD", "BACKWARD"):
        raise QueryError(f"invalid direction '{text}'")
    return text.upper() == "BACKWARD"


def _matched(params: Params, *names: str) -> list[Any]:
    return [parse_selector(text) for name in names for text in params.get(name, ()) if text]


# Responses


def _format_query(params: Params) -> Response:
    try:
        return _loki_json({"status": "success", "data": formatted(parse(first(params, "query")))})
    except QueryError as problem:
        return json_response({"status": "invalid-query", "error": str(problem)}, 400)


def _seconds(moment: int) -> float | int:
    millis = moment // _MILLISECOND
    return millis // 1000 if millis % 1000 == 0 else millis / 1000


def _streams(found: Sequence[Entries]) -> list[Any]:
    return [
        {
            "stream": dict(entries.labels),
            "values": [[str(moment), text.decode("utf-8", "replace")] for moment, text in entries.lines],
        }
        for entries in found
    ]


def _matrix(series: Series, steps: range) -> Any:
    points = [
        [_seconds(moment), go_float(value)]
        for moment, value, present in zip(steps, series.values.tolist(), series.present.tolist(), strict=True)
        if present
    ]
    return {"metric": dict(series.labels), "values": points}


def _listing(data: list[Any]) -> Response:
    """Loki leaves an empty list out."""
    return _loki_json({"status": "success", "data": data} if data else {"status": "success"})


def _answer(kind: str, result: Any, read: Read, returned: int) -> Response:
    summary = {
        "bytesProcessedPerSecond": 0,
        "linesProcessedPerSecond": 0,
        "totalBytesProcessed": read.bytes,
        "totalLinesProcessed": read.lines,
        "execTime": 0,
        "queueTime": 0,
        "subqueries": 0,
        "totalEntriesReturned": returned,
    }
    data = {"resultType": kind, "result": result, "stats": {"summary": summary}}
    return _loki_json({"status": "success", "data": data})


def _loki_json(body: Any) -> Response:
    status, _, encoded = json_response(body)
    return status, {"content-type": "application/json; charset=UTF-8"}, encoded
