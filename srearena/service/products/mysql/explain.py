"""EXPLAIN: how a statement reads its tables, from their keys and row counts."""

from __future__ import annotations

import re
from typing import Any

from srearena.cluster.program_models.sql import tables_of
from srearena.service.products.mysql.errors import MysqlError, syntax_error
from srearena.service.products.mysql.server import SYSTEM, MysqlServer, Session

_HEADS = (
    *("id", "select_type", "table", "partitions", "type", "possible_keys", "key", "key_len", "ref", "rows"),
    *("filtered", "Extra"),
)
_OPTIONS = re.compile(r"(?:EXPLAIN|DESCRIBE|DESC)\s+(ANALYZE\s+)?(?:FORMAT\s*=\s*(\w+)\s+)?(.*)$", re.I | re.S)
EXPLAINABLE = ("SELECT", "WITH", "TABLE", "INSERT", "UPDATE", "DELETE", "REPLACE")


def _access(server: MysqlServer, database: str, table: str, statement: str) -> tuple[str, str | None, int]:
    """Return type of access, used key and number of rows."""
    if database in SYSTEM:
        return "ALL", None, 1
    rows = max(1, server.tables.count(database, table))
    keys = [("PRIMARY", True, [c[0] for c in server.tables.columns(database, table) if c[4]])]
    keys += list(server.tables.indexes(database, table))
    for name, unique, columns in keys:
        if columns and re.search(rf"\b{re.escape(columns[0])}`?\s*(?:=|IN\s*\()", statement, re.IGNORECASE):
            return ("const", name, 1) if unique else ("ref", name, max(1, rows // 10))
    return "ALL", None, rows


def explain(server: MysqlServer, session: Session, statement: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Explain a statement; the caller has found out that it is none of a table's columns."""
    match = _OPTIONS.match(statement)
    inner = match.group(3).strip() if match is not None else ""
    first = inner.split(None, 1)[0].upper() if inner else ""
    if match is None or first not in EXPLAINABLE:
        raise syntax_error(statement, inner)
    form = "TREE" if match.group(1) else (match.group(2) or "TRADITIONAL").upper()
    rows: list[tuple[Any, ...]] = []
    where = re.search(r"\bWHERE\b", inner, re.IGNORECASE) is not None
    nested = len(re.findall(r"\bSELECT\b", inner, re.IGNORECASE)) > 1
    for number, name in enumerate(tables_of(inner), 1):
        database, _, table = name.rpartition(".")
        database = database or session.database
        if not database:
            raise MysqlError(1046, "3D000", "No database selected")
        if database not in SYSTEM and table not in server.tables.tables(database):
            raise MysqlError(1146, "42S02", f"Table '{database}.{table}' doesn't exist")
        access, key, count = _access(server, database, table, inner)
        kind = ("PRIMARY" if number == 1 else "SUBQUERY") if nested else "SIMPLE"
        kind = first if first in ("INSERT", "UPDATE", "DELETE", "REPLACE") else kind
        extra = "Using where" if where and key is None else None
        share = 10.0 if extra and count > 1 else 100.0
        length, ref = ("1022", "const") if key else (None, None)
        position = number if nested else 1
        rows.append((position, kind, table, None, access, key, key, length, ref, count, f"{share:.2f}", extra))
    if not rows:
        rows.append((1, "SIMPLE", *([None] * 9), "No tables used"))
    if form == "TREE":
        return ["EXPLAIN"], [(_tree(rows, measured=bool(match.group(1))),)]
    return list(_HEADS), rows


def _tree(rows: list[tuple[Any, ...]], *, measured: bool) -> str:
    lines: list[str] = []
    for depth, row in enumerate(rows):
        table, access, key, count, extra = row[2], row[4], row[6], row[9], row[11]
        if table is None:
            return "-> Rows fetched before execution  (cost=0..0 rows=1)\n"
        cost = f"  (cost={0.25 + count * 0.1:.2f} rows={count})"
        time = f" (actual time=0.02..{0.03 + count * 0.002:.3f} rows={count} loops=1)" if measured else ""
        if extra:
            lines.append(f"{'    ' * depth}-> Filter{cost}{time}")
        how = f"Single-row index lookup on {table} using {key}" if access == "const" else f"Table scan on {table}"
        how = f"Index lookup on {table} using {key}" if access == "ref" else how
        lines.append(f"{'    ' * (depth + bool(extra))}-> {how}{cost}{time}")
    return "\n".join(lines) + "\n"
