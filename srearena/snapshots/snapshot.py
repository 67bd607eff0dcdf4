"""One recording, opened: its tables as SQL relations, its records as typed rows.

Nothing is read before it is asked for, and never more than a batch at a time: DuckDB streams the sources into Parquet
and queries the Parquet with a memory limit, spilling to the cache directory. A `Snapshot` may be used from many
threads at once; each query has a cursor of its own. A source that changes is noticed at the next query.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from srearena.closing import Closing
from srearena.errors import InputError
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.files import load_document
from srearena.ground_truth.parsing import parse_ground_truth
from srearena.snapshots.attributes import parse_attributes
from srearena.snapshots.building import Builder, no_rows
from srearena.snapshots.cache import Cache, CachedTable, stamp
from srearena.snapshots.errors import DataError, MissingExtra, SnapshotError
from srearena.snapshots.layout import Layout, scan
from srearena.snapshots.records import Alert, Event, LogRecord, ObjectVersion, Sample, Span
from srearena.snapshots.series import SAMPLES_VIEW, no_series
from srearena.snapshots.tables import MACROS, SCHEMAS, literal

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "300MB"
_THREADS = min(4, os.cpu_count() or 1)
_WHILE_BUILDING, _WHILE_ASKING = "512MB", "16MB"  # one goes on for long, the other leaves a server idle
_BATCH = 1000
_RESCAN_AFTER = 2.0
_USED = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)\b", re.IGNORECASE)

Row = dict[str, Any]
_T = TypeVar("_T")


def _connect(spill: Path) -> duckdb.DuckDBPyConnection:
    try:
        import duckdb
    except ImportError as problem:
        raise MissingExtra("reading snapshots needs DuckDB: pip install 'srearena[tools]'") from problem
    connection = duckdb.connect(
        config={
            "memory_limit": MEMORY_LIMIT,
            "threads": _THREADS,
            "temp_directory": str(spill),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
    _flush_from(connection, _WHILE_ASKING)
    connection.execute("SET TimeZone = 'UTC'")
    for macro in MACROS:
        connection.execute(macro)
    return connection


def _flush_from(connection: duckdb.DuckDBPyConnection, size: str) -> None:
    """Give memory back to the system, instead of keeping it to be used again, when a task has used more than this."""
    for setting in ("allocator_flush_threshold", "allocator_bulk_deallocation_flush_threshold"):
        connection.execute(f"SET {setting} = '{size}'")


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


class Snapshot(Closing):
    """An opened recording; close it, or use it as a context."""

    def __init__(self, directory: Path, cache_directory: Path | None = None) -> None:
        self._directory = directory
        self._layout = scan(directory)
        self._scanned = monotonic()
        self.cache = Cache(self._layout.root, cache_directory)
        self._connection = _connect(self.cache.directory / "spill")
        self._ready: dict[str, tuple[object, CachedTable]] = {}
        self._lock = threading.RLock()
        self._derived: dict[Callable[[Snapshot], Any], tuple[object, Any]] = {}
        self._deriving = threading.RLock()

    def close(self) -> None:
        self._connection.close()

    @property
    def root(self) -> Path:
        return self._layout.root

    @property
    def layout(self) -> Layout:
        with self._lock:
            if monotonic() - self._scanned > _RESCAN_AFTER:
                self._layout, self._scanned = scan(self._directory), monotonic()
            return self._layout

    # -- tables ------------------------------------------------------------------------------------------------------

    def table(self, name: str) -> CachedTable | None:
        """Make a table queryable; `None` where the recording has no such table (it is then empty)."""
        sources = self.layout.sources(name)
        with self._lock:
            facts = stamp(sources)
            known = self._ready.get(name)
            if known is not None and known[0] == facts:
                return known[1] if sources else None
            cached = self._made(name, sources) if sources else None
            self._show(name, cached)
            self._ready[name] = (facts, cached or CachedTable(Path(), 0, ()))
            return cached

    def _made(self, name: str, sources: Sequence[Path]) -> CachedTable:
        with self._connection.cursor() as connection:
            _flush_from(connection, _WHILE_BUILDING)
            try:
                return self.cache.table(name, sources, lambda target: Builder(connection, name).build(sources, target))
            finally:
                _flush_from(connection, _WHILE_ASKING)

    def _show(self, name: str, cached: CachedTable | None) -> None:
        view = "series" if name == "metrics" else name
        # Rows of objects are large: a query finds the few it wants first, and fetches them by their place.
        place = ", file_row_number AS place" if name == "objects" else ""
        if cached is not None:
            files = cached.path / "*.parquet" if name == "metrics" else cached.path
            rows = f"SELECT * {place} FROM read_parquet({literal(str(files))})"
        else:
            rows = no_series() if name == "metrics" else no_rows(name)
        self._connection.execute(f"CREATE OR REPLACE VIEW {view} AS {rows}")
        if name == "metrics":
            self._connection.execute(SAMPLES_VIEW)

    # -- queries -----------------------------------------------------------------------------------------------------

    def _execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
        for name in {"metrics" if word == "series" else word for word in _USED.findall(sql)} & SCHEMAS.keys():
            self.table(name)
        import duckdb

        try:
            return self._connection.cursor().execute(sql, parameters)
        except duckdb.Error as problem:
            raise DataError(str(problem)) from problem

    def rows(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        """Run a query over the tables; times come back aware, in UTC."""
        return list(self.stream(sql, parameters))

    def stream(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Iterator[Row]:
        import duckdb

        cursor = self._execute(sql, parameters)
        names = [column[0] for column in cursor.description or ()]
        while True:
            try:
                batch = cursor.fetchmany(_BATCH)
            except duckdb.Error as problem:
                raise DataError(str(problem)) from problem
            if not batch:
                return
            for values in batch:
                yield dict(zip(names, map(_aware, values), strict=True))

    def arrays(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> dict[str, Any]:
        """Run a query over the tables; each column as one array of numbers, for those who count in millions."""
        import duckdb

        try:
            columns: dict[str, Any] = self._execute(sql, parameters).fetchnumpy()
        except duckdb.Error as problem:
            raise DataError(str(problem)) from problem
        return columns

    def derived(self, make: Callable[[Snapshot], _T], *tables: str) -> _T:
        """What `make` works out of these tables; kept, and worked out again only when they have changed."""
        facts = (*(self.table(name) for name in tables), self.layout.architecture)
        with self._deriving:
            known = self._derived.get(make)
            if known is None or known[0] != facts:
                known = self._derived[make] = (facts, make(self))
            result: _T = known[1]
            return result

    def count(self, table: str) -> int:
        cached = self.table(table)
        return cached.rows if cached else 0

    # -- records -----------------------------------------------------------------------------------------------------

    def alerts(self) -> Iterator[Alert]:
        for row in self.stream("SELECT * EXCLUDE (file) FROM alerts ORDER BY observed_at, alertname, entity"):
            row["labels"], row["annotations"] = parse_attributes(row["labels"]), parse_attributes(row["annotations"])
            yield Alert(**row)

    def events(self) -> Iterator[Event]:
        columns = "time, type, reason, message, count, kind, namespace, name, component"
        return (Event(**row) for row in self.stream(f"SELECT {columns} FROM events ORDER BY time"))

    def objects(self) -> Iterator[ObjectVersion]:
        """Every version of every object, in order; an object seen a hundred times unchanged is one version."""
        for row in self.stream(VERSIONS + " ORDER BY kind, namespace, name, first_seen"):
            body = parse_attributes(row.pop("body"))
            yield ObjectVersion(body=body, **row)

    def logs(self) -> Iterator[LogRecord]:
        columns = "time, service, severity, body, trace_id, namespace, pod, attributes"
        return self._with_map(f"SELECT {columns} FROM logs ORDER BY time", "attributes", LogRecord)

    def spans(self) -> Iterator[Span]:
        columns = "time, trace_id, span_id, parent_id, name, kind, service, duration_ns, status, status_message"
        return self._with_map(f"SELECT {columns}, attributes FROM spans ORDER BY time", "attributes", Span)

    def metrics(self) -> Iterator[Sample]:
        columns = "object_kind, object_name, metric, time, value, namespace, labels"
        return self._with_map(
            f"SELECT {columns} FROM metrics ORDER BY object_kind, object_name, metric, time", "labels", Sample
        )

    def _with_map(self, sql: str, column: str, record: Callable[..., _T]) -> Iterator[_T]:
        for row in self.stream(sql):
            row[column] = parse_attributes(row[column])
            yield record(**row)

    def answer_key(self) -> GroundTruth | None:
        """The ground truth beside the evidence, if any. For graders and checks; tools for agents never call this."""
        if not self.layout.answer_keys:
            return None
        path = self.layout.answer_keys[0]
        try:
            return parse_ground_truth(load_document(path), default_id=self.root.name, path=str(path))
        except InputError as problem:
            raise SnapshotError(str(problem)) from problem

    def architecture(self) -> dict[str, Any] | None:
        """The application's architecture file, if the recording carries one."""
        for path in self.layout.architecture:
            try:
                document = orjson.loads(path.read_bytes())
            except (OSError, orjson.JSONDecodeError) as problem:
                raise SnapshotError(f"{path.name} cannot be read: {problem}") from problem
            if isinstance(document, dict) and ("components" in document or "dependencies" in document):
                return document
        return None


# One row per run of observations between which neither spec, data, labels nor annotations changed.
VERSIONS = """
SELECT min(observed_at) AS first_seen, max(observed_at) AS last_seen, count(*) AS observations,
       kind, namespace, name, any_value(uid) AS uid, arg_max(body, observed_at) AS body
FROM (
  SELECT *, sum(changed) OVER (PARTITION BY kind, namespace, name ORDER BY observed_at, resource_version
                               ROWS UNBOUNDED PRECEDING) AS version
  FROM (SELECT *, CASE WHEN digest IS NOT DISTINCT FROM lag(digest) OVER
          (PARTITION BY kind, namespace, name ORDER BY observed_at, resource_version) THEN 0 ELSE 1 END AS changed
        FROM objects WHERE kind IS NOT NULL AND name IS NOT NULL)
) GROUP BY kind, namespace, name, version
"""


def open_snapshot(directory: Path | str, *, cache: Path | str | None = None) -> Snapshot:
    """Open the recording in a directory; its columns are kept in `cache`, or in the user's cache directory."""
    return Snapshot(Path(directory), Path(cache) if cache is not None else None)
