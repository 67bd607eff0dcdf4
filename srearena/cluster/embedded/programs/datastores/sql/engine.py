"""Tables: SQLite in memory behind the SQL of other servers.

One `Tables` is one database of a server; its schemas are attached databases. SQLite parses and computes; who may, who
waits and what it is called are the servers' affair. No statement sees the wall clock or chance: the functions for both
are replaced by the simulation's. What SQLite cannot run comes back as `TableError`, sorted by kind.
"""

from __future__ import annotations

import re
import sqlite3
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

MAX_SCHEMAS = 10
MAX_STEPS = 3_000_000
"""Instructions of SQLite's machine a statement may take; more is called off."""
MAX_ROWS = 20_000
_PATTERNS = (
    ("missing table", re.compile(r"no such table: (?:main\.)?(.+)")),
    ("missing column", re.compile(r"no such column: (.+)")),
    ("missing column", re.compile(r"table \S+ has no column named (.+)")),
    ("missing function", re.compile(r"no such function: (.+)")),
    ("exists", re.compile(r"(?:table|index|view) \"?([^\s\"]+)\"? already exists")),
    ("duplicate", re.compile(r"UNIQUE constraint failed: (.+)")),
    ("null", re.compile(r"NOT NULL constraint failed: (.+)")),
    ("reference", re.compile(r"FOREIGN KEY constraint failed")),
    ("syntax", re.compile(r"near \"(.*)\": syntax error")),
    ("syntax", re.compile(r"(incomplete input)")),
    ("schema", re.compile(r"unknown database \"?([^\"]+)\"?")),
)


class TableError(Exception):
    def __init__(self, kind: str, name: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.name = name
        self.text = text


@dataclass(slots=True)
class Rows:
    """What a statement came to: columns and rows for a query, a count for a change."""

    columns: list[str] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    count: int = 0


class Tables:
    def __init__(self, random: Random, now: Callable[[], str]) -> None:
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA foreign_keys = OFF")
        self.schemas: list[str] = ["main"]
        self._steps = 0
        self._functions: dict[tuple[str, int], Callable[..., Any]] = {}
        self.function("random", 0, lambda: random.random())
        for name in ("now", "clock_timestamp", "current_timestamp_", "sysdate"):
            self.function(name, 0, now)

    def close(self) -> None:
        self._connection.close()

    def __del__(self) -> None:
        self.close()

    def function(self, name: str, arguments: int, body: Callable[..., Any]) -> None:
        key = (name, arguments)
        self._functions[key] = body
        tables = weakref.ref(self)

        # SQLite keeps its functions out of the garbage collector's sight: what they lead to, the whole cluster, would
        # never be freed.
        def call(*values: Any) -> Any:
            found = tables()
            return found._functions[key](*values) if found is not None else None

        self._connection.create_function(name, arguments, call)

    # --- schemas -----------------------------------------------------------------------------------------------

    def add_schema(self, name: str) -> None:
        if name not in self.schemas:
            if len(self.schemas) > MAX_SCHEMAS:
                raise TableError("limit", name, "too many schemas")
            try:
                self._connection.execute("ATTACH ':memory:' AS " + quoted(name))
            except sqlite3.Error as error:
                raise _sorted(error) from None
            self.schemas.append(name)

    def drop_schema(self, name: str) -> None:
        if name in self.schemas:
            try:
                self._connection.execute("DETACH " + quoted(name))
            except sqlite3.Error as error:
                raise _sorted(error) from None
            self.schemas.remove(name)

    def tables(self, schema: str) -> list[str]:
        if schema not in self.schemas:
            return []
        query = f"SELECT name FROM {quoted(schema)}.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        return [str(row[0]) for row in self._connection.execute(f"{query} ORDER BY name")]

    def columns(self, schema: str, table: str) -> list[tuple[str, str, bool, Any, bool]]:
        """(name, declared type, not null, default, part of the key) of each column."""
        found = self._connection.execute(f"PRAGMA {quoted(schema)}.table_info({quoted(table)})").fetchall()
        return [(str(row[1]), str(row[2]), bool(row[3]), row[4], bool(row[5])) for row in found]

    def indexes(self, schema: str, table: str) -> list[tuple[str, bool, list[str]]]:
        """(name, unique, columns) of each index that was created."""
        found: list[tuple[str, bool, list[str]]] = []
        rows = self._connection.execute(f"PRAGMA {quoted(schema)}.index_list({quoted(table)})").fetchall()
        for _, name, unique, origin, _ in rows:
            if origin == "c":
                parts = self._connection.execute(f"PRAGMA {quoted(schema)}.index_info({quoted(name)})").fetchall()
                found.append((str(name), bool(unique), [str(part[2]) for part in parts]))
        return found

    def count(self, schema: str, table: str) -> int:
        if table not in self.tables(schema):
            return 0
        [(number,)] = self._connection.execute(f"SELECT count(*) FROM {quoted(schema)}.{quoted(table)}").fetchall()
        return int(number)

    def saved(self, schema: str) -> bytes:
        """All of a schema, to `restore` it from; nothing for one that never held a table."""
        try:
            return self._connection.serialize(name=schema)
        except sqlite3.OperationalError:
            return b""

    def restore(self, schema: str, data: bytes) -> None:
        if schema not in self.schemas:
            self.add_schema(schema)
        if data:
            self._connection.deserialize(data, name=schema)
            return
        for table in self.tables(schema):
            self._connection.execute(f"DROP TABLE {quoted(schema)}.{quoted(table)}")

    # --- statements --------------------------------------------------------------------------------------------

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> Rows:
        self._steps = 0
        self._connection.set_progress_handler(self._tick, 10_000)
        try:
            cursor = self._connection.execute(statement, parameters)
            rows = cursor.fetchmany(MAX_ROWS)
            columns = [str(column[0]) for column in cursor.description or ()]
            cursor.close()
        except sqlite3.Error as error:
            raise _sorted(error) from None
        finally:
            self._connection.set_progress_handler(None, 0)
        return Rows(columns, rows, len(rows) if columns else max(0, cursor.rowcount))

    def _tick(self) -> int:
        self._steps += 10_000
        return 1 if self._steps > MAX_STEPS else 0

    def fill(self, schema: str, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Make a table hold exactly these rows (for catalogues that are computed)."""
        place = f"{quoted(schema)}.{quoted(table)}"
        names = ", ".join(quoted(column) for column in columns)
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS {place} ({names})")
        self._connection.execute(f"DELETE FROM {place}")
        marks = ", ".join("?" * len(columns))
        self._connection.executemany(f"INSERT INTO {place} VALUES ({marks})", rows)

    def insert(self, schema: str, table: str, records: Sequence[Mapping[str, Any]]) -> bool:
        """Add records to a table; whether it had to be made for them, with the columns of the first."""
        self.add_schema(schema)
        columns = list(records[0]) if records else ["id"]
        place = f"{quoted(schema)}.{quoted(table)}"
        names = ", ".join(quoted(column) for column in columns)
        new = table not in self.tables(schema)
        if new:
            self.execute(f"CREATE TABLE {place} ({names})")
        marks = ", ".join("?" * len(columns))
        for record in records:
            self.execute(f"INSERT INTO {place} ({names}) VALUES ({marks})", [record.get(c) for c in columns])
        return new

    def delete(self, schema: str, table: str, column: str, value: Any) -> None:
        """Remove the records of a table with this value in a column."""
        self.execute(f"DELETE FROM {quoted(schema)}.{quoted(table)} WHERE {quoted(column)} = ?", [value])


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sorted(error: sqlite3.Error) -> TableError:
    text = str(error)
    if text == "interrupted":
        return TableError("limit", "", "statement takes too much work")
    for kind, pattern in _PATTERNS:
        found = pattern.search(text)
        if found is not None:
            return TableError(kind, found.group(1) if found.groups() else "", text)
    return TableError("other", "", text)
