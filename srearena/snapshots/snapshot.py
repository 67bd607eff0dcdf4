"""An opened recording: its tables as SQL relations, its records as typed rows.

Tables are read on first use, files of metrics when a question first needs them. DuckDB streams the sources into Parquet
and queries the Parquet files within a memory limit, spilling to the cache directory. A `Snapshot` is thread-safe; each
query has its own cursor. Changed sources are detected at the next query.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from srearena.closeable import Closeable
from srearena.errors import InputError
from srearena.ground_truth import GroundTruth
from srearena.ground_truth.files import load_document
from srearena.ground_truth.parsing import parse_ground_truth
from srearena.snapshots.attributes import parse_attributes
from srearena.snapshots.building import Builder, empty_table
from srearena.snapshots.cache import Cache, CachedTable, file_stamps
from srearena.snapshots.delimited import edges_of
from srearena.snapshots.errors import DataError, MissingExtra, SnapshotError
from srearena.snapshots.layout import Layout, metric_object, scan
from srearena.snapshots.parts import Parts
from srearena.snapshots.records import Alert, Event, LogRecord, ObjectVersion, Sample, Span
from srearena.snapshots.series import SAMPLES_VIEW, batches, empty_series
from srearena.snapshots.tables import MACROS, SCHEMAS, literal

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "300MB"  # chosen: what needs more spills to disk
_THREADS = min(4, os.cpu_count() or 1)
# Freed memory that DuckDB keeps: much while building, which allocates again; little for queries, since servers idle.
_BUILD_FLUSH, _QUERY_FLUSH = "512MB", "16MB"
_BATCH = 1000  # rows fetched at once
_RESCAN_AFTER = 2.0  # seconds between scans of the directory
_BACKGROUND_BYTES = 32_000_000  # chosen: converted in a fraction of a second, so that close() and questions wait little
_SOME_SERIES = "some_series"
_TABLE_NAMES = re.compile(r"\b(?:FROM|JOIN)\s+(\w+)\b", re.IGNORECASE)

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
    _set_flush_threshold(connection, _QUERY_FLUSH)
    connection.execute("SET TimeZone = 'UTC'")
    for macro in MACROS:
        connection.execute(macro)
    return connection


def _set_flush_threshold(connection: duckdb.DuckDBPyConnection, size: str) -> None:
    """Set how much freed memory DuckDB keeps before it returns memory to the system."""
    for setting in ("allocator_flush_threshold", "allocator_bulk_deallocation_flush_threshold"):
        connection.execute(f"SET {setting} = '{size}'")


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


class Snapshot(Closeable):
    """An opened recording; close it, or use it as a context manager."""

    def __init__(self, directory: Path, cache_directory: Path | None = None) -> None:
        self._directory = directory
        self._layout = scan(directory)
        self._scanned = monotonic()
        self.cache = Cache(self._layout.root, cache_directory)
        self._connection = _connect(self.cache.directory / "spill")
        self._tables: dict[str, tuple[object, CachedTable]] = {}
        self._lock = threading.RLock()
        self._derived: dict[Callable[[Snapshot], Any], tuple[object, Any]] = {}
        self._derived_lock = threading.RLock()
        self._parts: tuple[object, Parts] | None = None
        self._background: threading.Thread | None = None
        self._closing = threading.Event()

    def close(self) -> None:
        self._closing.set()
        if self._background is not None:
            self._background.join()
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

    def rescan(self) -> None:
        """Look for files again at the next use."""
        with self._lock:
            self._scanned = float("-inf")

    @property
    def observed_since(self) -> datetime | None:
        """When the observation began, where that is not the time of the first data: objects created since are new."""
        return None

    # -- tables ------------------------------------------------------------------------------------------------------

    def table(self, name: str) -> CachedTable | None:
        """Make a table queryable; `None` if the recording has no such table, which is then empty."""
        sources = self.layout.sources(name)
        with self._lock:
            stamps = file_stamps(sources)
            entry = self._tables.get(name)
            if entry is not None and entry[0] == stamps:
                return entry[1] if sources else None
            cached = self._build_table(name, sources) if sources else None
            self._create_view(name, cached)
            self._tables[name] = (stamps, cached or CachedTable(Path(), 0, ()))
            return cached

    def _build_table(self, name: str, sources: Sequence[Path]) -> CachedTable:
        if name == "metrics":
            parts = self._metric_parts(sources)
            parts.add(sources, self._convert_metrics)
            return parts.table()
        with self._building() as connection:
            return self.cache.table(name, sources, lambda target: Builder(connection, name).build(sources, target))

    def _metric_parts(self, sources: Sequence[Path]) -> Parts:
        stamps = file_stamps(sources)
        if self._parts is None or self._parts[0] != stamps:
            self._parts = (stamps, Parts(self.cache, "metrics", sources))
        return self._parts[1]

    @contextmanager
    def _building(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with self._connection.cursor() as connection:
            _set_flush_threshold(connection, _BUILD_FLUSH)
            try:
                yield connection
            finally:
                _set_flush_threshold(connection, _QUERY_FLUSH)

    def _convert_metrics(self, files: Sequence[Path], target: Path) -> tuple[int, list[str]]:
        with self._building() as connection:
            return Builder(connection, "metrics").build(files, target)

    def _create_view(self, name: str, cached: CachedTable | None) -> None:
        if name == "metrics":
            self._create_series_view("series", Parts.files_in(cached.path) if cached else [])
            self._connection.execute(SAMPLES_VIEW)
            return
        # Bodies of objects are large: a query selects the rows first and fetches their bodies by position.
        position = ", file_row_number AS position" if name == "objects" else ""
        rows = empty_table(name)
        if cached is not None:
            rows = f"SELECT * {position} FROM read_parquet({literal(str(cached.path))})"
        self._connection.execute(f"CREATE OR REPLACE VIEW {name} AS {rows}")

    def _create_series_view(self, view: str, files: Sequence[Path]) -> None:
        paths = ", ".join(literal(str(path)) for path in files)
        rows = f"SELECT * FROM read_parquet([{paths}])" if files else empty_series()
        self._connection.execute(f"CREATE OR REPLACE VIEW {view} AS {rows}")

    # -- metrics of some objects -------------------------------------------------------------------------------------

    def measured_objects(self) -> list[tuple[str, str]]:
        """Kind and name of every object with metrics, by the names of the files."""
        return sorted({found for path in self.layout.metrics if (found := metric_object(path))})

    def metric_times(self) -> tuple[datetime, datetime] | None:
        """The first and the last time of metrics by the first and last rows of the files; `None` if they have none.

        Rows are in order of time, or one series after another."""
        edges = [text for path in self.layout.metrics for text in edges_of(path, ("timestamp", "time"))]
        row = self.rows("SELECT min(t) AS first, max(t) AS last FROM (SELECT instant(unnest(?)) AS t)", [edges])[0]
        return None if row["first"] is None else (row["first"], row["last"])

    def series_of(self, objects: Collection[tuple[str, str]]) -> str:
        """A relation like `series` with at least the series of these objects.

        Only their files are converted for it; the others are in the background."""
        sources = self.layout.metrics
        requested_files = [path for path in sources if metric_object(path) in objects]
        with self._lock:
            entry = self._tables.get("metrics")
            if entry is not None and entry[0] == file_stamps(sources):
                return "series"
            parts = self._metric_parts(sources)
            if not parts.missing(sources):
                self.table("metrics")
                return "series"
            parts.add(requested_files, self._convert_metrics)
            self._create_series_view(_SOME_SERIES, parts.files)
            if self._background is None and not self._closing.is_set():
                # Not a daemon: a thread inside DuckDB must not outlive the interpreter.
                self._background = threading.Thread(target=self._convert_rest, args=(parts, sources), daemon=False)
                self._background.start()
        return _SOME_SERIES

    def _convert_rest(self, parts: Parts, sources: Sequence[Path]) -> None:
        import duckdb

        try:
            for files, _ in batches(parts.missing(sources), _BACKGROUND_BYTES):
                if self._closing.is_set() or not threading.main_thread().is_alive():
                    return
                parts.add(files, self._convert_metrics)
        except (SnapshotError, OSError, duckdb.Error):  # a live system's files may change meanwhile
            return  # the question that needs the file reports what is wrong with it

    # -- queries -----------------------------------------------------------------------------------------------------

    def _execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
        for name in {"metrics" if word == "series" else word for word in _TABLE_NAMES.findall(sql)} & SCHEMAS.keys():
            self.table(name)
        import duckdb

        try:
            return self._connection.cursor().execute(sql, parameters)
        except duckdb.Error as problem:
            raise DataError(str(problem)) from problem

    def rows(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        """Run a query over the tables; times are aware and in UTC."""
        return list(self.stream(sql, parameters))

    def stream(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> Iterator[Row]:
        """Run a query and yield its rows, fetched in batches."""
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
        """Run a query over the tables and return each column as an array, for millions of rows."""
        import duckdb

        try:
            columns: dict[str, Any] = self._execute(sql, parameters).fetchnumpy()
        except duckdb.Error as problem:
            raise DataError(str(problem)) from problem
        return columns

    def derived(self, make: Callable[[Snapshot], _T], *tables: str) -> _T:
        """The result of `make`, cached until one of these tables changes."""
        versions = (*(self.table(name) for name in tables), self.layout.architecture)
        with self._derived_lock:
            entry = self._derived.get(make)
            if entry is None or entry[0] != versions:
                entry = self._derived[make] = (versions, make(self))
            result: _T = entry[1]
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
        """Every version of every object, in order; repeated observations without a change are one version."""
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
        """The ground truth of the recording, for graders and checks; tools for agents must not call this."""
        if not self.layout.answer_keys:
            return None
        path = self.layout.answer_keys[0]
        try:
            return parse_ground_truth(load_document(path), default_id=self.root.name, path=str(path))
        except InputError as problem:
            raise SnapshotError(f"{path.name} cannot be read: {' '.join(str(problem).split())}") from problem

    def architecture(self) -> dict[str, Any] | None:
        """The application's architecture file, if the recording has one."""
        for path in self.layout.architecture:
            try:
                document = orjson.loads(path.read_bytes())
            except (OSError, orjson.JSONDecodeError) as problem:
                raise SnapshotError(f"{path.name} cannot be read: {problem}") from problem
            if isinstance(document, dict) and ("components" in document or "dependencies" in document):
                return document
        return None


# One row per sequence of observations between which neither spec, data, labels nor annotations changed.
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
    """Open the recording in a directory; Parquet files are stored in `cache`, or in the user's cache directory."""
    return Snapshot(Path(directory), Path(cache) if cache is not None else None)
