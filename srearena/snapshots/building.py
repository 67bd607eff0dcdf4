"""Making columns: the files of one table, streamed by DuckDB into Parquet within a memory limit.

Every row is accounted for. A file of which the strict and fast reader refuses or loses a row is written again
well-formed first, and what was odd about it is told.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from srearena.snapshots.alert_files import read_alerts
from srearena.snapshots.delimited import extent_of, header_of, mend
from srearena.snapshots.errors import SnapshotError
from srearena.snapshots.series import batches, grouping, no_series
from srearena.snapshots.tables import SCHEMAS, identifier, literal, resource_table, selection

if TYPE_CHECKING:
    import duckdb

Groups = Mapping[tuple[str, ...], Sequence[Path]]

_USUAL_ROW = 1_000_000  # bytes of one row that DuckDB is always ready for
_BUFFER = 8_000_000  # that it reads at once; with smaller ones two threads in one file are hardly quicker than one
# A row group is held in memory while it is written, so tables with large rows have small groups.
_GROUP_ROWS = {"objects": 2048, "logs": 20_480, "spans": 20_480, "metrics": 2048}
_SAMPLED_ROWS = 20_000  # in which most resources are met
# Enormous rows need more than the usual limit, once, while their table is made.
_LAST_RESORT = ("1500MB", 1)


def relation(header: Sequence[str], paths: Sequence[Path], longest: int, named: bool = False) -> str:
    """Files with the same header, as DuckDB reads them: every cell as text; `named`, with the file's name as well."""
    files = "[" + ", ".join(literal(str(path)) for path in paths) + "]"
    columns = "{" + ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header) + "}"
    room = max(longest + 1024, _USUAL_ROW)
    return (
        f"read_csv({files}, delim=chr(9), header=true, quote='\"', escape='\"', columns={columns}, auto_detect=false, "
        f"strict_mode=true, filename={named}, max_line_size={room}, buffer_size={max(2 * room, _BUFFER)})"
    )


def no_rows(table: str) -> str:
    schema = {**SCHEMAS[table], **({"place": "BIGINT"} if table == "objects" else {})}
    columns = ", ".join(f"CAST(NULL AS {kind}) AS {identifier(name)}" for name, kind in schema.items())
    return f"SELECT {columns} WHERE false"


class Builder:
    """Writes one table; `connection` is this builder's alone."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, table: str) -> None:
        self._connection = connection
        self._table = table

    def build(self, sources: Sequence[Path], target: Path) -> tuple[int, list[str]]:
        """Fill `target` (a file, or for metrics a directory of files); the rows, and what was odd."""
        return self._alerts(sources, target) if self._table == "alerts" else self._delimited(sources, target)

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
            if header:
                groups.setdefault(header, []).append(path)
            else:
                oddities.append(f"{path.name}: empty")
        # Rows are counted while DuckDB reads: what it makes of the files is right when it finds as many.
        with ThreadPoolExecutor(1, thread_name_prefix="extent") as counting:
            files = [path for paths in groups.values() for path in paths]
            extents = {path: counting.submit(extent_of, path) for path in files}
            rows = self._attempt(groups, 0, target)
            if rows == sum(extent.result().rows for extent in extents.values()):
                return rows, oddities
            longest = max(extent.result().longest for extent in extents.values())
            if longest > _USUAL_ROW:
                rows = self._attempt(groups, longest, target)
                if rows == sum(extent.result().rows for extent in extents.values()):
                    return rows, oddities
        # Refused, or rows went missing: find the files at fault, write them well-formed, and read again.
        mended = target.with_suffix(".mended")
        mended.mkdir(exist_ok=True)
        try:
            for header, paths in groups.items():
                groups[header] = [self._well_formed(header, path, mended, oddities) for path in paths]
            longest = max(extent_of(path).longest for paths in groups.values() for path in paths)
            return self._write(groups, longest, target), oddities
        except duckdb.Error as problem:
            raise SnapshotError(
                f"cannot read {self._table} ({', '.join(path.name for path in sources[:3])}): "
                f"{str(problem).splitlines()[0]}"
            ) from problem
        finally:
            shutil.rmtree(mended, ignore_errors=True)

    def _attempt(self, groups: Groups, longest: int, target: Path) -> int:
        """Rows written, or -1 where DuckDB refuses the files as they are."""
        import duckdb

        try:
            return self._write(groups, longest, target)
        except duckdb.Error:
            return -1

    def _well_formed(self, header: tuple[str, ...], path: Path, place: Path, oddities: list[str]) -> Path:
        import duckdb

        extent = extent_of(path)
        source = relation(header, [path], extent.longest)
        touched = " + ".join(f"count({identifier(column)})" for column in header)
        try:
            row = self._connection.execute(f"SELECT count(*), {touched} FROM {source}").fetchone()
        except duckdb.Error:
            row = None
        if row is not None and row[0] == extent.rows:
            return path
        result = mend(path, place / path.name)
        oddities.extend(result.oddities)
        return result.path

    def _write(self, groups: Groups, longest: int, target: Path) -> int:
        if self._table == "metrics":
            return self._write_series(groups, longest, target)
        # How many rows a file has is not known beforehand: left to guess, DuckDB would keep the rows in memory and look
        # up each resource in them, instead of the other way round.
        self._connection.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        try:
            return self._copy(self._selections(groups, longest) or no_rows(self._table), target)
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
        """What resource attributes say, worked out once for most that there are: there are millions of rows and few
        resources. `None` where the table has none."""
        found = resource_table(self._table, list(header), source, _SAMPLED_ROWS)
        if found is None:
            return None
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {found}")
        return name

    def _write_series(self, groups: Groups, longest: int, target: Path) -> int:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        part = 0
        for header, paths in groups.items():
            for batch, rounds in batches(paths):
                source = relation(header, batch, longest, named=True)
                for number in range(rounds):
                    self._copy(grouping(list(header), source, number, rounds), target / f"{part:05d}.parquet")
                    part += 1
        if not part:
            self._copy(no_series(), target / "00000.parquet")
        files = literal(str(target / "*.parquet"))
        row = self._connection.execute(f"SELECT coalesce(sum(samples), 0) FROM read_parquet({files})").fetchone()
        return int(row[0]) if row else 0

    def _copy(self, select: str, target: Path) -> int:
        import duckdb

        group = _GROUP_ROWS.get(self._table, 20_480)
        copy = f"COPY ({select}) TO {literal(str(target))} (FORMAT parquet, COMPRESSION snappy, ROW_GROUP_SIZE {group})"
        try:
            try:
                done = self._connection.execute(copy).fetchone()
            except duckdb.OutOfMemoryException:
                usual = self._connection.execute(
                    "SELECT current_setting('memory_limit'), current_setting('threads')"
                ).fetchone()
                assert usual is not None
                self._limit(*_LAST_RESORT)
                try:
                    done = self._connection.execute(copy).fetchone()
                finally:
                    self._limit(*usual)
        except (duckdb.OutOfMemoryException, duckdb.IOException) as problem:
            words = str(problem).splitlines()[0]
            raise SnapshotError(f"cannot make columns of {self._table} in {target.parent}: {words}") from problem
        return int(done[0]) if done else 0

    def _limit(self, memory: str, threads: int) -> None:
        self._connection.execute(f"SET memory_limit = '{memory}'")
        self._connection.execute(f"SET threads = {threads}")
