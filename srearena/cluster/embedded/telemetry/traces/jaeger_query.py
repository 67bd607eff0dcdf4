"""Trace searches, parsed from request parameters as Jaeger's query service parses them."""

from __future__ import annotations

import heapq
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from srearena.cluster.embedded.durations import DurationError, parse_duration
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.telemetry.query_api import Params, first
from srearena.cluster.embedded.telemetry.traces.jaeger_json import as_text, process_tags, tags
from srearena.cluster.embedded.telemetry.traces.store import SpanSource, Trace
from srearena.cluster.embedded.traffic.spans import Span

DEFAULT_LIMIT = 100
DEFAULT_LOOKBACK = 48 * 3600.0
_INT64 = 1 << 63
_GO_NAMES = {dict: "object", list: "array", bool: "bool", int: "number", float: "number", str: "string"}


class BadQuery(ValueError):
    """The parameters are invalid; the text is Jaeger's."""


@dataclass(slots=True)
class TraceQuery:
    service: str
    operation: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    start: float = float("-inf")
    end: float = float("inf")
    min_duration: float = 0.0
    max_duration: float = 0.0
    """0: no bound."""
    limit: int = DEFAULT_LIMIT

    def find(self, store: SpanSource) -> list[Trace]:
        """Return the youngest traces with one span of the service that satisfies the whole query, youngest first."""
        found: list[tuple[float, int, Trace]] = []
        """A heap of at most `limit` traces, of which the oldest is first; of equal age, the one added first."""
        for number, (begun_by, trace) in enumerate(store.latest_first(self.start)):
            full = 0 < self.limit <= len(found)
            if full and found[0][0] >= begun_by:
                break  # no further trace is younger than these
            if trace.start <= self.end and self.service in trace.services and any(map(self._matches, trace.spans)):
                put = heapq.heappushpop if full else heapq.heappush
                put(found, (trace.start, -number, trace))
        return [trace for _, _, trace in sorted(found, reverse=True)]

    def _matches(self, span: Span) -> bool:
        if span.resource.service != self.service or (self.operation and span.name != self.operation):
            return False
        if not self.start <= span.start <= self.end or span.duration < self.min_duration:
            return False
        if self.max_duration and span.duration > self.max_duration:
            return False
        return not self.tags or self._is_tagged(span)

    def _is_tagged(self, span: Span) -> bool:
        span_tags = {(key, as_text(value)) for key, value in tags(span)}
        span_tags.update((key, as_text(value)) for key, value in process_tags(span))
        for event in span.events:
            span_tags.add(("event", event.name))
            span_tags.update((key, as_text(value)) for key, value in event.attributes)
        return all(tag in span_tags for tag in self.tags.items())


def read_query(params: Params, now: float) -> TraceQuery:
    service = first(params, "service")
    start = _moment(params, "start", now - DEFAULT_LOOKBACK)
    end = _moment(params, "end", now)
    query_tags = _tags(params)
    limit = read_integer(first(params, "limit")) if first(params, "limit") else DEFAULT_LIMIT
    shortest = _duration(params, "minDuration")
    longest = _duration(params, "maxDuration")
    if not service:
        raise BadQuery("parameter 'service' is required")
    if longest and shortest > longest:
        raise BadQuery("'maxDuration' should be greater than 'minDuration'")
    return TraceQuery(service, first(params, "operation"), query_tags, start, end, shortest, longest, limit)


def read_integer(text: str, name: str = "") -> int:
    """Parse an integer; some error messages name the parameter."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    complaint = ""
    if not digits.isascii() or not digits.isdigit():
        complaint = "invalid syntax"
    elif len(digits) > 19 or abs(int(text)) >= _INT64:
        complaint = "value out of range"
    if complaint:
        prefix = f"unable to parse param '{name}': " if name else ""
        raise BadQuery(f"{prefix}strconv.ParseInt: parsing {quoted(text)}: {complaint}")
    return int(text)


def read_trace_id(text: str) -> int:
    if len(text) > 32:
        raise BadQuery(f"TraceID cannot be longer than 32 hex characters: {text}")
    parts = (text[:-16], text[-16:]) if len(text) > 16 else (text,)
    for part in parts:
        if not part or part.strip("0123456789abcdefABCDEF"):
            raise BadQuery(f"strconv.ParseUint: parsing {quoted(part)}: invalid syntax")
    return int(text, 16)


def _moment(params: Params, name: str, default: float) -> float:
    text = first(params, name)
    return read_integer(text, name) / 1e6 if text else default


def _duration(params: Params, name: str) -> float:
    text = first(params, name)
    if not text:
        return 0.0
    try:
        return parse_duration(text)
    except DurationError as problem:
        raise BadQuery(f"unable to parse param '{name}': {problem}") from problem


def _tags(params: Params) -> dict[str, str]:
    query_tags: dict[str, str] = {}
    for pair in params.get("tag", ()):
        key, colon, value = pair.partition(":")
        if not colon:
            raise BadQuery(f"malformed 'tag' parameter, expecting key:value, received: {pair}")
        query_tags[key] = value
    for text in params.get("tags", ()):
        query_tags.update(_text_pairs(text))
    return query_tags


def _text_pairs(text: str) -> dict[str, str]:
    """Parse a JSON object of strings; the errors are Go's."""
    prefix = "malformed 'tags' parameter, cannot unmarshal JSON: "
    try:
        pairs = json.loads(text)
    except json.JSONDecodeError as problem:
        rest = text[problem.pos :].lstrip()
        message = (
            f"invalid character {rest[0]!r} looking for beginning of value" if rest else "unexpected end of JSON input"
        )
        raise BadQuery(prefix + message) from problem
    if pairs is None:
        return {}
    wrong, go_type = pairs, "map[string]string"
    if isinstance(pairs, dict):
        odd = [value for value in pairs.values() if value is not None and not isinstance(value, str)]
        if not odd:
            return {key: value or "" for key, value in pairs.items()}
        wrong, go_type = odd[0], "string"
    raise BadQuery(f"{prefix}json: cannot unmarshal {_GO_NAMES[type(wrong)]} into Go value of type {go_type}")
