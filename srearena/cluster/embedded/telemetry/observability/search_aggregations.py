"""Aggregations of a search, nested as deep as asked: by terms, by time, by a filter, and counts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from srearena.cluster.embedded.durations import format_micro_time, parse_time
from srearena.cluster.embedded.telemetry.observability.search_query import (
    Document,
    QueryCompiler,
    SearchError,
    values_of,
)

_INTERVAL = re.compile(r"(\d*)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_CALENDAR = {"second": "1s", "minute": "1m", "hour": "1h", "day": "1d"}
_MOST_BUCKETS = 65_535


def aggregate(compiler: QueryCompiler, definitions: Mapping[str, Any], documents: Sequence[Document]) -> dict[str, Any]:
    return {name: _one(compiler, name, body, documents) for name, body in definitions.items()}


def _one(compiler: QueryCompiler, name: str, body: Any, documents: Sequence[Document]) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise SearchError("parsing_exception", f"Expected [START_OBJECT] under [{name}]")
    inner = body.get("aggs") or body.get("aggregations") or {}
    kinds = [key for key in body if key not in ("aggs", "aggregations", "meta")]
    if len(kinds) != 1:
        raise SearchError("parsing_exception", f"Missing definition for aggregation [{name}]")
    kind, options = kinds[0], body[kinds[0]]
    match kind:
        case "terms":
            return _terms(compiler, options, inner, documents)
        case "date_histogram":
            return _date_histogram(compiler, options, inner, documents)
        case "filter":
            test = compiler.compile(options)
            return _bucket(compiler, inner, [document for document in documents if test(document)])
        case "value_count":
            return {"value": sum(len(values_of(document, options["field"])) for document in documents)}
        case "cardinality":
            found = {str(value) for document in documents for value in values_of(document, options["field"])}
            return {"value": len(found)}
    raise SearchError("parsing_exception", f"Unknown aggregation type [{kind}]")


def _bucket(compiler: QueryCompiler, inner: Mapping[str, Any], documents: Sequence[Document]) -> dict[str, Any]:
    return {"doc_count": len(documents), **aggregate(compiler, inner, documents)}


def _terms(
    compiler: QueryCompiler, options: Mapping[str, Any], inner: Mapping[str, Any], documents: Sequence[Document]
) -> dict[str, Any]:
    field = str(options.get("field", ""))
    groups: dict[Any, list[Document]] = {}
    for document in documents:
        values = values_of(document, field)
        if values and isinstance(values[0], str) and not field.endswith(".keyword"):
            raise SearchError(
                "illegal_argument_exception",
                "Text fields are not optimised for operations that require per-document field data like aggregations "
                "and sorting, so these operations are disabled by default. Please use a keyword field instead. "
                f"Alternatively, set fielddata=true on [{field}] in order to load field data by uninverting the "
                "inverted index. Note that this can use significant memory.",
            )
        for value in values:
            groups.setdefault(value, []).append(document)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), str(item[0])))
    size = int(options.get("size", 10))
    return {
        "doc_count_error_upper_bound": 0,
        "sum_other_doc_count": sum(len(group) for _, group in ordered[size:]),
        "buckets": [{"key": key, **_bucket(compiler, inner, group)} for key, group in ordered[:size]],
    }


def _date_histogram(
    compiler: QueryCompiler, options: Mapping[str, Any], inner: Mapping[str, Any], documents: Sequence[Document]
) -> dict[str, Any]:
    text = str(options.get("fixed_interval") or options.get("calendar_interval") or "")
    found = _INTERVAL.fullmatch(_CALENDAR.get(text, text))
    if found is None:
        raise SearchError("illegal_argument_exception", "Invalid interval specified, must be non-null and non-empty")
    width = int(found[1] or 1) * _SECONDS[found[2]]
    groups: dict[int, list[Document]] = {}
    for document in documents:
        for value in values_of(document, str(options.get("field", ""))):
            groups.setdefault(int(parse_time(str(value)) // width), []).append(document)
    if not groups:
        return {"buckets": []}
    numbers = range(min(groups), max(groups) + 1) if not options.get("min_doc_count") else sorted(groups)
    if len(numbers) > _MOST_BUCKETS:
        raise SearchError(
            "too_many_buckets_exception",
            f"Trying to create too many buckets. Must be less than or equal to: [{_MOST_BUCKETS}]",
            503,
        )
    return {
        "buckets": [
            {
                "key_as_string": format_micro_time(number * width),
                "key": round(number * width * 1000),
                **_bucket(compiler, inner, groups.get(number, [])),
            }
            for number in numbers
        ]
    }
