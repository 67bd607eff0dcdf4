"""The indices of one OpenSearch process: the log records that reached it, and what clients wrote into it.

Nothing of the logs is copied: a search reads the cluster's log store. Deleting the index of the logs forgets what came
before; the next record creates it again, as the exporter does in life.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from srearena.cluster.embedded.telemetry.observability.log_documents import Document, documents
from srearena.cluster.embedded.telemetry.observability.search_aggregations import aggregate
from srearena.cluster.embedded.telemetry.observability.search_query import (
    QueryCompiler,
    SearchError,
    values_of,
)
from srearena.cluster.embedded.telemetry.pipeline import Telemetry

LOGS = "otel-logs"
_MOST_HITS = 10_000
"""The default of `index.max_result_window` and of `track_total_hits`."""
_MOST_WRITTEN = 10_000
"""Chosen: documents that clients may write; bounds the memory of a cluster."""
Row = tuple[str, str, Document]
"""Index, identifier, document."""


class SearchIndices:
    def __init__(self, telemetry: Telemetry, namespace: str) -> None:
        self._telemetry = telemetry
        self._namespace = namespace
        self._since = telemetry.clock.now
        self._pushed_before = len(telemetry.receivers.pushed_logs.get(namespace, ()))
        self._written: dict[str, dict[str, Document]] = {}

    def names(self) -> list[str]:
        found = set(self._written)
        if next(self._logs(), None) is not None:
            found.add(LOGS)
        return sorted(found)

    def select(self, expression: str) -> list[str]:
        """The indices that a comma-separated list of names and patterns means; SearchError where a name has none."""
        known = self.names()
        selected: list[str] = []
        for part in expression.split(","):
            if part in ("_all", "*", ""):
                selected += known
            elif "*" in part:
                selected += [name for name in known if fnmatchcase(name, part)]
            elif part in known:
                selected.append(part)
            else:
                raise SearchError(
                    "index_not_found_exception",
                    f"no such index [{part}]",
                    404,
                    index=part,
                    **{"resource.id": part, "resource.type": "index_or_alias", "index_uuid": "_na_"},
                )
        return list(dict.fromkeys(selected))

    def create(self, name: str) -> None:
        if name in self.names():
            raise SearchError("resource_already_exists_exception", f"index [{name}] already exists", index=name)
        if name != name.lower() or name.startswith(("_", "-", "+")):
            raise SearchError("invalid_index_name_exception", f"Invalid index name [{name}], must be lowercase")
        self._written[name] = {}

    def delete(self, expression: str) -> None:
        for name in self.select(expression):
            self._written.pop(name, None)
            if name == LOGS:
                self._since = self._telemetry.clock.now
                self._pushed_before = len(self._telemetry.receivers.pushed_logs.get(self._namespace, ()))

    def write(self, name: str, identifier: str, document: Document) -> bool:
        """Store a document; whether it is new."""
        index = self._written.setdefault(name, {})
        is_new = identifier not in index
        if sum(map(len, self._written.values())) >= _MOST_WRITTEN and is_new:
            raise SearchError(
                "circuit_breaking_exception", "[parent] Data too large, data for [indices:data/write/bulk[s]]", 429
            )
        index[identifier] = document
        return is_new

    def get(self, name: str, identifier: str) -> Document | None:
        self.select(name)
        return next((document for _, found, document in self._rows([name]) if found == identifier), None)

    def count(self, indices: list[str], query: Any = None) -> int:
        test = self.compiler().compile(query) if query is not None else None
        return sum(1 for _, _, document in self._rows(indices) if test is None or test(document))

    def size(self, index: str) -> int:
        """Bytes of an index: of its documents, without what a real one adds and compresses."""
        return sum(len(str(document)) for _, _, document in self._rows([index]))

    def compiler(self) -> QueryCompiler:
        return QueryCompiler(self._telemetry.clock.now)

    def search(self, indices: list[str], request: dict[str, Any]) -> dict[str, Any]:
        """The part of a response that depends on the documents."""
        compiler = self.compiler()
        query = request.get("query")
        test = compiler.compile(query) if query is not None else lambda document: True
        rows = [row for row in self._rows(indices) if test(row[2])]
        start, size = _number(request, "from", 0), _number(request, "size", 10)
        if start + size > _MOST_HITS:
            raise SearchError(
                "illegal_argument_exception",
                f"Result window is too large, from + size must be less than or equal to: [{_MOST_HITS}] but was "
                f"[{start + size}]. See the scroll api for a more efficient way to request large data sets. This limit "
                "can be set by changing the [index.max_result_window] index level setting.",
            )
        keys = _sort_keys(request.get("sort"))
        for field, descending in reversed(keys):
            rows.sort(key=lambda row: _sortable(row[2], field), reverse=descending)
        total = len(rows)
        tracked = request.get("track_total_hits", _MOST_HITS)
        limit = total if tracked is True else _MOST_HITS if tracked is False else int(tracked)
        hits = [_hit(row, request.get("_source", True), keys) for row in rows[start : start + size]]
        found: dict[str, Any] = {
            "hits": {
                "total": {"value": min(total, limit), "relation": "eq" if total <= limit else "gte"},
                "max_score": None if keys or not hits else 1.0,
                "hits": hits,
            }
        }
        wanted = request.get("aggs") or request.get("aggregations")
        if wanted:
            found["aggregations"] = aggregate(compiler, wanted, [document for _, _, document in rows])
        return found

    def _rows(self, indices: list[str]) -> Iterator[Row]:
        for name in indices:
            if name == LOGS:
                for identifier, document in self._logs():
                    yield name, identifier, document
            for identifier, document in self._written.get(name, {}).items():
                yield name, identifier, document

    def _logs(self) -> Iterator[tuple[str, Document]]:
        telemetry = self._telemetry
        until = telemetry.clock.now + 1e-6
        for stream in telemetry.logs.streams():
            labels = stream.labels
            if labels.get("namespace") == self._namespace and labels.get("filename") in telemetry.shipper.exporters:
                yield from documents(stream, self._since, until)
        pushed = telemetry.receivers.pushed_logs.get(self._namespace, [])
        for number, document in enumerate(pushed[self._pushed_before :], start=self._pushed_before):
            yield f"pushed{number:08x}", document


def _number(request: dict[str, Any], name: str, default: int) -> int:
    try:
        value = int(request.get(name, default))
    except (TypeError, ValueError) as problem:
        raise SearchError("number_format_exception", f'For input string: "{request.get(name)}"') from problem
    if value < 0:
        raise SearchError("illegal_argument_exception", f"[{name}] parameter cannot be negative, found [{value}]")
    return value


def _sort_keys(sort: Any) -> list[tuple[str, bool]]:
    """Fields with whether they descend."""
    keys: list[tuple[str, bool]] = []
    for part in sort if isinstance(sort, list) else [sort] if sort else []:
        if isinstance(part, str):
            field, _, order = part.partition(":")
            keys.append((field, order == "desc"))
        else:
            for field, how in part.items():
                order = how.get("order", "asc") if isinstance(how, dict) else how
                keys.append((field, str(order).lower() == "desc"))
    return [key for key in keys if key[0] not in ("_doc", "_score")]


def _sortable(document: Document, field: str) -> tuple[int, float, str]:
    values = values_of(document, field)
    if not values:
        return 2, 0.0, ""
    value = values[0]
    return (0, float(value), "") if isinstance(value, int | float) else (1, 0.0, str(value))


def _hit(row: Row, source: Any, keys: list[tuple[str, bool]]) -> dict[str, Any]:
    index, identifier, document = row
    hit: dict[str, Any] = {"_index": index, "_id": identifier, "_score": None if keys else 1.0}
    if source is True:
        hit["_source"] = document
    elif source is not False:
        wanted = (
            source
            if isinstance(source, list)
            else (source.get("includes") or ["*"])
            if isinstance(source, dict)
            else [source]
        )
        hit["_source"] = {
            name: value
            for name, value in document.items()
            if any(fnmatchcase(name, str(shape).partition(".")[0]) for shape in wanted)
        }
    if keys:
        hit["sort"] = [next(iter(values_of(document, field)), None) for field, _ in keys]
    return hit
