"""Conversion of a table's source files to Parquet, streamed by DuckDB within a memory limit.

Every row is accounted for. If DuckDB's strict reader rejects a file or loses a row, the file is repaired first and the
problem is reported.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from srearena.snapshots.alert_files import read_alerts
from srearena.snapshots.delimited import bodies_to_json, extent_of, header_of, repair
from srearena.snapshots.errors import SnapshotError
from srearena.snapshots.series import batches, empty_series, series_selection
from srearena.snapshots.tables import SCHEMAS, column_expressions, identifier, literal, resource_table, selection

if TYPE_CHECKING:
    import duckdb

Groups = Mapping[tuple[str, ...], Sequence[Path]]

_MOST_COLUMNS = 1000  # chosen: known tables have up to 30
_DEFAULT_ROW_BYTES = 1_000_000  # maximum bytes of a row in the first attempt; rows are rarely longer
_BUFFER = 8_000_000  # bytes; measured: with smaller buffers two threads on one file are hardly faster than one
# Rows per Parquet row group. A group is held in memory while it is written, so large rows need small groups.
_ROW_GROUP_SIZES = {"objects": 2048, "logs": 20_480, "spans": 20_480, "metrics": 2048}
# Rows whose body was not JSON; it may be the repr of a Python dict, which DuckDB cannot parse.
_WITHOUT_BODY = {
    "events": "reason IS NULL AND kind IS NULL AND name IS NULL",
    "objects": "uid IS NULL AND NOT coalesce(json_valid(body), true)",
}
_SAMPLED_ROWS = 20_000  # rows searched for distinct resources; most resources appear among them
# Memory limit and threads for tables with rows of many megabytes, which do not fit in the default limit.
_LARGE_ROW_LIMITS = ("1500MB", 1)


def relation(header: Sequence[str], paths: Sequence[Path], longest: int, named: bool = False) -> str:
    """The `read_csv` call for files with the same header: every cell is text; `named` adds the file name."""
    files = "[" + ", ".join(literal(str(path)) for path in paths) + "]"
    columns = "{" + ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header) + "}"
    room = max(longest + 1024, _DEFAULT_ROW_BYTES)
    return (
        f"read_csv({files}, delim=chr(9), header=true, quote='\"', escape='\"', columns={columns}, auto_detect=false, "
        f"strict_mode=true, filename={named}, max_line_size={room}, buffer_size={max(2 * room, _BUFFER)})"
    )


def empty_table(table: str) -> str:
    """The SELECT of a table without rows."""
    schema = {**SCHEMAS[table], **({"position": "BIGINT"} if table == "objects" else {})}
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(name)}" for name, kind in schema.items())
    return f"SELECT {columns} WHERE false"


class Builder:
    """Builds one table on a DuckDB connection of its own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        self._connection = connection
        self._table = table

    def build(self, sources: Sequence[Path], target: Path) -> tuple[int, list[str]]:
        """Write `target` (a file, for metrics a directory); returns the number of rows and the oddities found."""
        if self._table == "alerts":
            return self._alerts(sources, target)
        rows, oddities = self._delimited(sources, target)
        if self._table in _WITHOUT_BODY and self._has_rows(target, _WITHOUT_BODY[self._table]):
            folder = target.with_suffix(".converted")
            folder.mkdir(exist_ok=True)
            try:
                if sum(bodies_to_json(path, folder / path.name) for path in sources):
                    return self._delimited([folder / path.name for path in sources], target)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        return rows, oddities

    def _has_rows(self, target: Path, condition: str) -> bool:
        query = f"SELECT 1 FROM read_parquet({literal(str(target))}) WHERE {condition} LIMIT 1"
        return self._connection.execute(query).fetchone() is not None

    def _alerts(self, sources: Sequence[Path], target: Path) -> tuple[int, list[str]]:
        oddities: list[str] = []
        lines = target.with_suffix(".ndjson")
        try:
            with lines.open("wb") as out:
                for path in sources:
                    for row in read_alerts(path, oddities):
                        out.write(orjson.dumps(row) + b"\n")
            schema = SCHEMAS[self._table]
            columns = ", ".join(f"{literal(column)}: 'VARCHAR'" for column in schema)
            source = f"read_json({literal(str(lines))}, format='newline_delimited', columns={{{columns}}})"
            picks = ", ".join(
                f"instant({c}) AS {c}" if kind == "TIMESTAMP" else f"TRY_CAST({c} AS {kind}) AS {c}"
                for c, kind in schema.items()
            )
            return self._copy(f"SELECT {picks} FROM {source}", target), oddities
        finally:
            lines.unlink(missing_ok=True)

    def _delimited(self, sources: Sequence[Path], target: Path) -> tuple[int, list[str]]:
        import duckdb

        oddities: list[str] = []
        groups: dict[tuple[str, ...], list[Path]] = {}
        for path in sources:
            header = tuple(header_of(path))
            if not header:
                oddities.append(f"{path.name}: empty")
            elif len(header) > _MOST_COLUMNS:
                oddities.append(f"{path.name}: not read, it has {len(header)} columns")
            elif column_expressions(self._table, list(header)) == column_expressions(self._table, []):
                oddities.append(f"{path.name}: not read, it has no column of {self._table}")
            else:
                groups.setdefault(header, []).append(path)
        # Count the rows independently while DuckDB reads; its result is accepted if both counts agree.
        with ThreadPoolExecutor(1, thread_name_prefix="extent") as counting:
            files = [path for paths in groups.values() for path in paths]
            extents = {path: counting.submit(extent_of, path) for path in files}
            rows = self._try_write(groups, 0, target)
            if rows == sum(extent.result().rows for extent in extents.values()):
                return rows, oddities
            longest = max((extent.result().longest for extent in extents.values()), default=0)
            if longest > _DEFAULT_ROW_BYTES:
                rows = self._try_write(groups, longest, target)
                if rows == sum(extent.result().rows for extent in extents.values()):
                    return rows, oddities
        # DuckDB rejected a file or lost rows: repair the files at fault and read again.
        repaired = target.with_suffix(".repaired")
        repaired.mkdir(exist_ok=True)
        try:
            for header, paths in groups.items():
                groups[header] = [self._well_formed(header, path, repaired, oddities) for path in paths]
            longest = max((extent_of(path).longest for paths in groups.values() for path in paths), default=0)
            return self._write(groups, longest, target), oddities
        except duckdb.Error as problem:
            raise SnapshotError(
                f"cannot read {self._table} ({', '.join(path.name for path in sources[:3])}): "
                f"{str(problem).splitlines()[0]}"
            ) from problem
        finally:
            shutil.rmtree(repaired, ignore_errors=True)

    def _try_write(self, groups: Groups, longest: int, target: Path) -> int:
        """Rows written, or -1 if DuckDB rejects the files."""
        import duckdb

        try:
            return self._write(groups, longest, target)
        except duckdb.Error:
            return -1

    def _well_formed(self, header: tuple[str, ...], path: Path, folder: Path, oddities: list[str]) -> Path:
        """The file itself, or a repaired copy in `folder` if DuckDB does not read every row of it."""
        import duckdb

        extent = extent_of(path)
        source = relation(header, [path], extent.longest)
        non_null = " + ".join(f"count({identifier(column)})" for column in header)
        try:
            row = self._connection.execute(f"SELECT count(*), {non_null} FROM {source}").fetchone()
        except duckdb.Error:
            row = None
        if row is not None and row[0] == extent.rows:
            return path
        result = repair(path, folder / path.name)
        oddities.extend(result.oddities)
        return result.path

    def _write(self, groups: Groups, longest: int, target: Path) -> int:
        if self._table == "metrics":
            return self._write_series(groups, longest, target)
        # DuckDB cannot estimate the rows of a file and would put the rows, not the resources, into the hash table.
        self._connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        try:
            return self._copy(self._selections(groups, longest) or empty_table(self._table), target)
        finally:
            self._connection.execute("RESET disabled_optimizers")

    def _selections(self, groups: Groups, longest: int) -> str:
        selects = []
        for number, (header, paths) in enumerate(groups.items()):
            source = relation(header, paths, longest)
            resources = self._resources(header, source, f"resources_{number}")
            selects.append(selection(self._table, list(header), source, resources))
        return " UNION ALL ".join(selects)

    def _resources(self, header: Sequence[str], source: str, name: str) -> str | None:
        """Create a table of the parsed resource attributes, since few resources repeat in millions of rows.

        Returns its name, or `None` if the source has no resource attributes."""
        select = resource_table(self._table, list(header), source, _SAMPLED_ROWS)
        if select is None:
            return None
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {select}")
        return name

    def _write_series(self, groups: Groups, longest: int, target: Path) -> int:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        part = 0
        for header, paths in groups.items():
            for batch, rounds in batches(paths):
                source = relation(header, batch, longest, named=True)
                for number in range(rounds):
                    self._copy(series_selection(list(header), source, number, rounds), target / f"{part:05d}.parquet")
                    part += 1
        if not part:
            self._copy(empty_series(), target / "00000.parquet")
        files = literal(str(target / "*.parquet"))
        row = self._connection.execute(f"SELECT coalesce(sum(samples), 0) FROM read_parquet({files})").fetchone()
        return int(row[0]) if row else 0

    def _copy(self, select: str, target: Path) -> int:
        import duckdb

        group = _ROW_GROUP_SIZES.get(self._table, 20_480)
        copy = f"COPY ({select}) TO {literal(str(target))} (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {group})"
        try:
            try:
                row = self._connection.execute(copy).fetchone()
            except duckdb.OutOfMemoryException:
                limits = self._connection.execute(
                    "SELECT current_setting('memory_limit'), current_setting('threads')"
                ).fetchone()
                assert limits is not None
                self._set_limits(*_LARGE_ROW_LIMITS)
                try:
                    row = self._connection.execute(copy).fetchone()
                finally:
                    self._set_limits(*limits)
        except (duckdb.OutOfMemoryException, duckdb.IOException) as problem:
            message = str(problem).splitlines()[0]
            raise SnapshotError(f"cannot build columns of {self._table} in {target.parent}: {message}") from problem
        return int(row[0]) if row else 0

    def _set_limits(self, memory: str, threads: int) -> None:
        self._connection.execute(f"SET memory_limit = '{memory}'")
        self._connection.execute(f"SET threads = {threads}")
