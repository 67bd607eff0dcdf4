"""Writing tables to disk as Parquet, CSV or JSON lines.

Rows are streamed, so a large window needs little memory. A file is renamed to its name when it is complete.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson

from srearena.observer.errors import ObserverError

Format = Literal["parquet", "csv", "jsonl"]
FORMATS: tuple[Format, ...] = ("parquet", "csv", "jsonl")
Row = Mapping[str, Any]
Columns = Mapping[str, str]
"""Column names and DuckDB types."""
LABELS = "MAP(VARCHAR, VARCHAR)"


@dataclass(frozen=True, slots=True)
class Export:
    """A written table."""

    path: Path
    rows: int


def write(rows: Iterable[Row], columns: Columns, directory: Path, name: str, format: Format = "parquet") -> Export:
    """Write a table to `directory/name.format`."""
    if format not in FORMATS:
        raise ObserverError(f"{format!r} is not a format for telemetry: use one of {', '.join(FORMATS)}")
    if format == "parquet":
        _duckdb()
    path = directory / f"{name}.{format}"
    draft = directory / f".{name}.{format}.part"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        try:
            count = _WRITERS[format](rows, columns, draft)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as problem:
        raise ObserverError(f"cannot write {path}: {problem.strerror or problem}") from problem
    return Export(path, count)


def _json_lines(rows: Iterable[Row], columns: Columns, path: Path) -> int:
    with path.open("wb") as file:
        return _lines(rows, columns, file)


def _lines(rows: Iterable[Row], columns: Columns, file: BinaryIO) -> int:
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007 - the last number is the count
        file.write(orjson.dumps({name: row.get(name) for name in columns}) + b"\n")
    return count


def _csv(rows: Iterable[Row], columns: Columns, path: Path) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for count, row in enumerate(rows, 1):  # noqa: B007 - the last number is the count
            writer.writerow([_cell(row.get(name)) for name in columns])
    return count


def _cell(value: Any) -> Any:
    return orjson.dumps(value).decode() if isinstance(value, (dict, list)) else value


def _parquet(rows: Iterable[Row], columns: Columns, path: Path) -> int:
    duckdb = _duckdb()
    lines = path.with_suffix(".jsonl")
    types = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    try:
        count = _json_lines(rows, columns, lines)
        with duckdb.connect() as connection:
            source = f"read_json({_sql(lines)}, format = 'newline_delimited', columns = {{{types}}})"
            if not count:
                listed = ", ".join(f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns.items())
                source = f"(SELECT {listed} WHERE false)"
            connection.execute(f"COPY (SELECT * FROM {source}) TO {_sql(path)} (FORMAT parquet, COMPRESSION zstd)")
    finally:
        lines.unlink(missing_ok=True)
    return count


def _sql(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as problem:
        raise ObserverError(
            "Parquet needs DuckDB: `pip install 'srearena[tools]'`, or ask for csv or jsonl"
        ) from problem
    return duckdb


_WRITERS = {"parquet": _parquet, "csv": _csv, "jsonl": _json_lines}
