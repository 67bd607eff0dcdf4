"""One recording, opened: its tables as SQL relations, its records as typed rows.

Nothing is read before it is asked for, and never more than a batch at a time: DuckDB streams the sources into Parquet
and queries the Parquet with a memory limit, spilling to the cache directory. A `Snapshot` may be used from many
threads at once; each query has a cursor of its own. A source that changes is noticed at the next query.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TypeVar

import orjson

from srearena.snapshots.alert_files import read_alerts
from srearena.snapshots.answer_key import AnswerKey, read_answer_key
from srearena.snapshots.attributes import parse_attributes
from srearena.snapshots.cache import Cache, CachedTable, stamp
from srearena.snapshots.delimited import extent_of, header_of, mend
from srearena.snapshots.errors import DataError, MissingExtra, SnapshotError
from srearena.snapshots.layout import Layout, scan
from srearena.snapshots.records import Alert, Event, LogRecord, ObjectVersion, Sample, Span
from srearena.snapshots.tables import MACROS, SCHEMAS, identifier, literal, selection

if TYPE_CHECKING:
    import duckdb

MEMORY_LIMIT = "400MB"
_THREADS = 2
# Enormous rows need more than the usual limit, once, while their table is made.
_LAST_RESORT = ("1500MB", 1)
_MIN_BUFFER = 500_000  # bytes of one row that DuckDB is always ready for; its buffers, and its memory, grow with this
# A row group is held in memory while it is written, so tables with large rows have small groups.
_GROUP_ROWS = {"objects": 2048, "logs": 20_480, "spans": 20_480, "metrics": 102_400}
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
    connection.execute("SET TimeZone = 'UTC'")
    for macro in MACROS:
        connection.execute(macro)
    return connection


def _aware(value: Any) -> Any:
    return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


class Snapshot:
    """An opened recording; close it, or use it as a context."""

    def __init__(self, directory: Path, cache_directory: Path | None = None) -> None:
        self._directory = directory
        self._layout = scan(directory)
        self._scanned = monotonic()
        self.cache = Cache(self._layout.root, cache_directory)
        self._connection = _connect(self.cache.directory / "spill")
        self._ready: dict[str, tuple[object, CachedTable]] = {}
        self._lock = threading.RLock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
            if not sources:
                empty = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(c)}" for c, kind in SCHEMAS[name].items())
                self._connection.execute(f"CREATE OR REPLACE VIEW {name} AS SELECT {empty} WHERE false")
                self._ready[name] = (facts, CachedTable(Path(), 0, ()))
                return None
            builder = self._build_alerts if name == "alerts" else self._build_delimited
            cached = self.cache.table(name, sources, lambda target: builder(name, sources, target))
            self._connection.execute(
                f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet({literal(str(cached.path))})"
            )
            self._ready[name] = (facts, cached)
            return cached

    def _write(self, table: str, selects: Sequence[str], target: Path) -> int:
        import duckdb

        group = _GROUP_ROWS.get(table, 20_480)
        union = " UNION ALL ".join(selects)
        copy = f"COPY ({union}) TO {literal(str(target))} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE {group})"
        try:
            try:
                done = self._connection.cursor().execute(copy).fetchone()
            except duckdb.OutOfMemoryException:
                self._limit(*_LAST_RESORT)
                try:
                    done = self._connection.cursor().execute(copy).fetchone()
                finally:
                    self._limit(MEMORY_LIMIT, _THREADS)
        except (duckdb.OutOfMemoryException, duckdb.IOException) as problem:
            words = str(problem).splitlines()[0]
            raise SnapshotError(f"cannot make columns of {table} in {target.parent}: {words}") from problem
        return int(done[0]) if done else 0

    def _limit(self, memory: str, threads: int) -> None:
        self._connection.execute(f"SET memory_limit = '{memory}'")
        self._connection.execute(f"SET threads = {threads}")

    def _build_alerts(self, name: str, sources: Sequence[Path], target: Path) -> tuple[int, list[str]]:
        oddities: list[str] = []
        lines = target.with_suffix(".ndjson")
        try:
            with lines.open("wb") as out:
                for path in sources:
                    for row in read_alerts(path, oddities):
                        out.write(orjson.dumps(row) + b"\n")
            columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in SCHEMAS[name])
            source = f"read_json({literal(str(lines))}, format='newline_delimited', columns={{{columns}}})"
            picks = ", ".join(
                f"instant({c}) AS {c}" if kind == "TIMESTAMP" else f"TRY_CAST({c} AS {kind}) AS {c}"
                for c, kind in SCHEMAS[name].items()
            )
            return self._write(name, [f"SELECT {picks} FROM {source}"], target), oddities
        finally:
            lines.unlink(missing_ok=True)

    def _build_delimited(self, name: str, sources: Sequence[Path], target: Path) -> tuple[int, list[str]]:
        import duckdb

        oddities: list[str] = []
        groups: dict[tuple[str, ...], list[Path]] = {}
        for path in sources:
            header = tuple(header_of(path))
            if header:
                groups.setdefault(header, []).append(path)
            else:
                oddities.append(f"{path.name}: empty")
        if not groups:
            empty = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(c)}" for c, kind in SCHEMAS[name].items())
            return self._write(name, [f"SELECT {empty} WHERE false"], target), oddities
        extents = {path: extent_of(path) for paths in groups.values() for path in paths}
        longest = max(extent.longest for extent in extents.values())
        try:
            rows = self._write(name, [_select(name, h, paths, longest) for h, paths in groups.items()], target)
        except duckdb.Error:
            rows = -1
        if rows == sum(extent.rows for extent in extents.values()):
            return rows, oddities
        # Refused, or rows went missing: find the files at fault, write them well-formed, and read again.
        mended = target.with_suffix(".mended")
        mended.mkdir(exist_ok=True)
        try:
            for header, paths in groups.items():
                groups[header] = [self._well_formed(header, path, mended, oddities) for path in paths]
            longest = max(extent_of(path).longest for paths in groups.values() for path in paths)
            return self._write(
                name, [_select(name, h, paths, longest) for h, paths in groups.items()], target
            ), oddities
        except duckdb.Error as problem:
            raise SnapshotError(f"cannot read {name} of {self.root}: {str(problem).splitlines()[0]}") from problem
        finally:
            for path in mended.iterdir():
                path.unlink()
            mended.rmdir()

    def _well_formed(self, header: tuple[str, ...], path: Path, place: Path, oddities: list[str]) -> Path:
        import duckdb

        extent = extent_of(path)
        relation = _relation(header, [path], extent.longest)
        touched = " + ".join(f"count({identifier(column)})" for column in header)
        try:
            row = self._connection.cursor().execute(f"SELECT count(*), {touched} FROM {relation}").fetchone()
        except duckdb.Error:
            row = None
        if row is not None and row[0] == extent.rows:
            return path
        result = mend(path, place / path.name)
        oddities.extend(result.oddities)
        return result.path

    # -- queries -----------------------------------------------------------------------------------------------------

    def _execute(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any]) -> duckdb.DuckDBPyConnection:
        for name in set(_USED.findall(sql)) & SCHEMAS.keys():
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

    def answer_key(self) -> AnswerKey | None:
        """What the recording says the answer is. For graders and checks; tools for agents never call this."""
        keys = self.layout.answer_keys
        return read_answer_key(keys[0]) if keys else None

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


def _relation(header: Sequence[str], paths: Sequence[Path], longest: int) -> str:
    files = "[" + ", ".join(literal(str(path)) for path in paths) + "]"
    columns = "{" + ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header) + "}"
    room = max(longest + 1024, _MIN_BUFFER)
    return (
        f"read_csv({files}, delim=chr(9), header=true, quote='\"', escape='\"', columns={columns}, auto_detect=false, "
        f"strict_mode=true, filename=true, max_line_size={room}, buffer_size={2 * room})"
    )


def _select(table: str, header: Sequence[str], paths: Sequence[Path], longest: int) -> str:
    return selection(table, list(header), _relation(header, paths, longest))


def open_snapshot(directory: Path | str, *, cache: Path | str | None = None) -> Snapshot:
    """Open the recording in a directory; its columns are kept in `cache`, or in the user's cache directory."""
    return Snapshot(Path(directory), Path(cache) if cache is not None else None)
