"""Jaeger's query API over a store of spans, as its user interface and clients use it.

The undocumented but universal `/api/...` responds in Jaeger's own JSON, `/api/v3/...` in OTLP.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import orjson

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.durations import DurationError, TimeError, parse_duration, parse_time
from srearena.cluster.embedded.telemetry.query_api import (
    Params,
    Response,
    first,
    json_response,
    not_found,
    text_response,
)
from srearena.cluster.embedded.telemetry.traces import otlp
from srearena.cluster.embedded.telemetry.traces.jaeger_json import trace_id_text, trace_json
from srearena.cluster.embedded.telemetry.traces.jaeger_query import (
    BadQuery,
    TraceQuery,
    read_integer,
    read_query,
    read_trace_id,
)
from srearena.cluster.embedded.telemetry.traces.store import SpanSource, Trace, began_within

_DAY = 24 * 3600.0
_V3_LIMIT = 100
_MOST_DOCUMENTS = 8_000_000  # bytes of JSON that are kept: some thousand traces; chosen


class JaegerApi:
    def __init__(self, store: SpanSource, clock: Clock) -> None:
        self.store = store
        self._clock = clock
        self._documents: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._documents_size = 0

    def _document(self, trace: Trace) -> orjson.Fragment:
        """The JSON of a trace. Clients that read everything ask for a trace once for each of its services."""
        key = trace.trace_id, len(trace.spans)  # spans are appended to a trace, never changed
        document = self._documents.get(key)
        if document is None:
            document = self._documents[key] = orjson.dumps(trace_json(trace))
            self._documents_size += len(document)
            while self._documents_size > _MOST_DOCUMENTS:
                self._documents_size -= len(self._documents.popitem(last=False)[1])
        return orjson.Fragment(document)

    def handle(self, method: str, path: str, params: Params) -> Response:
        if method not in ("GET", "HEAD"):
            return text_response("", 405)
        match path.strip("/").split("/"):
            case ["api", "services"]:
                return _structured(self._services())
            case ["api", "services", service, "operations"]:
                return _structured(sorted({name for name, _ in self._operations(unquote(service))}) or None)
            case ["api", "v3", *rest]:
                return self._v3(rest, params)
            case ["api", *rest]:
                try:
                    return self._query(rest, params)
                except BadQuery as problem:
                    return _error(400, str(problem))
            case [""] | ["status"]:
                return text_response("")
            case _:
                return not_found()

    def _query(self, rest: list[str], params: Params) -> Response:
        match rest:
            case ["operations"]:
                return self._kinds_of_operations(params)
            case ["traces"]:
                return self._search(params)
            case ["traces", trace_id]:
                trace = self.store.get(read_trace_id(trace_id))
                return (
                    _error(404, "trace not found") if trace is None else _structured([self._document(trace)], total=0)
                )
            case ["dependencies"]:
                return self._dependencies(params)
            case _:
                return not_found()

    def _search(self, params: Params) -> Response:
        identifiers = params.get("traceID", ())
        if not identifiers:
            found = read_query(params, self._clock.now).find(self.store)
            return _structured([self._document(trace) for trace in found], total=0)
        traces, missing = [], []
        for text in identifiers:
            try:
                trace_id = read_trace_id(text)
            except BadQuery as problem:
                raise BadQuery(f"cannot parse traceID param: {problem}") from problem
            trace = self.store.get(trace_id)
            if trace is None:
                missing.append({"msg": "trace not found", "traceID": trace_id_text(trace_id)})
            else:
                traces.append(self._document(trace))
        return _structured(traces, errors=missing or None, total=0)

    def _services(self) -> list[str]:
        return sorted({service for _, trace in self.store.latest_first() for service in trace.services})

    def _operations(self, service: str) -> set[tuple[str, str]]:
        return {(span.name, span.kind) for span in self.store.all_spans() if span.resource.service == service}

    def _kinds_of_operations(self, params: Params) -> Response:
        service, kind = first(params, "service"), first(params, "spanKind")
        if not service:
            raise BadQuery("parameter 'service' is required")
        found = sorted(pair for pair in self._operations(service) if not kind or pair[1] == kind)
        return _structured([{"name": name, "spanKind": span_kind} for name, span_kind in found])

    def _dependencies(self, params: Params) -> Response:
        end = self._clock.now
        if text := first(params, "endTs"):
            end = read_integer(text, "endTs") / 1000
        lookback = _DAY
        if text := first(params, "lookback"):
            lookback = read_integer(text, "lookback") / 1000
        calls: Counter[tuple[str, str]] = Counter()
        for trace in began_within(self.store, end - lookback, end):
            calls.update(_calls(trace))
        links = [
            {"parent": parent, "child": child, "callCount": count} for (parent, child), count in sorted(calls.items())
        ]
        return _structured(links, total=0)

    # The third API

    def _v3(self, rest: list[str], params: Params) -> Response:
        try:
            match rest:
                case ["services"]:
                    return json_response({"services": self._services()})
                case ["operations"]:
                    pairs = sorted(self._operations(first(params, "service")))
                    return json_response({"operations": [{"name": name, "spanKind": kind} for name, kind in pairs]})
                case ["traces"]:
                    found = self._v3_query(params).find(self.store)
                    return json_response({"result": otlp.export(span for trace in found for span in trace.spans)})
                case ["traces", trace_id]:
                    return self._v3_trace(trace_id)
                case _:
                    return not_found()
        except BadQuery as problem:
            return _v3_error(400, str(problem))

    def _v3_trace(self, trace_id: str) -> Response:
        try:
            trace = self.store.get(read_trace_id(trace_id))
        except BadQuery as problem:
            raise BadQuery(f"malformed parameter trace_id: {problem}") from problem
        if trace is None:
            return _v3_error(404, "trace not found")
        return json_response({"result": otlp.export(trace.spans)})

    def _v3_query(self, params: Params) -> TraceQuery:
        def value(name: str) -> str:
            return first(params, f"query.{name}")

        def read(name: str, parse: Any, default: float) -> float:
            try:
                return float(parse(value(name))) if value(name) else default
            except (TimeError, DurationError) as problem:
                message = str(problem).replace("05Z07:00", "05.999999999Z07:00")
                raise BadQuery(f"malformed parameter query.{name}: {message}") from problem

        if not value("start_time_min") or not value("start_time_max"):
            raise BadQuery("query.start_time_min and query.start_time_max are required")
        limit = value("num_traces") or value("search_depth")
        return TraceQuery(
            value("service_name"),
            value("operation_name"),
            {},
            read("start_time_min", parse_time, 0.0),
            read("start_time_max", parse_time, 0.0),
            read("duration_min", parse_duration, 0.0),
            read("duration_max", parse_duration, 0.0),
            read_integer(limit) if limit else _V3_LIMIT,
        )


def _calls(trace: Trace) -> Iterable[tuple[str, str]]:
    """Return calls between services: every span whose parent was recorded by another service."""
    services = {span.span_id: span.resource.service for span in trace.spans}
    for span in trace.spans:
        parent = services.get(span.parent_id)
        if parent is not None and parent != span.resource.service:
            yield parent, span.resource.service
        for linked_trace, linked_span in span.links:
            origin = services.get(linked_span) if linked_trace == trace.trace_id else None
            if origin is not None and origin != span.resource.service:
                yield origin, span.resource.service


def _structured(data: list[Any] | None, *, errors: list[Any] | None = None, total: int | None = None) -> Response:
    count = len(data or ()) if total is None else total
    return json_response({"data": data, "total": count, "limit": 0, "offset": 0, "errors": errors})


def _v3_error(status: int, message: str) -> Response:
    return json_response({"error": {"httpCode": status, "message": message}}, status)


def _error(status: int, message: str) -> Response:
    body = {"data": None, "total": 0, "limit": 0, "offset": 0, "errors": [{"code": status, "msg": message}]}
    return json_response(body, status)
