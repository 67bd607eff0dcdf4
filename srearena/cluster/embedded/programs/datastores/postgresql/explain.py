"""EXPLAIN: the plan of a statement, from the keys and row counts of its tables."""

from __future__ import annotations

import re

from srearena.cluster.embedded.programs.datastores.postgresql.errors import SqlError
from srearena.cluster.embedded.programs.datastores.postgresql.server import Database
from srearena.cluster.embedded.programs.datastores.sql.statements import tables_of

EXPLAINABLE = ("SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE")
_HEAD = re.compile(r"EXPLAIN\s+(\([^)]*\)\s*)?((?:ANALYZE|VERBOSE)\s+)*(.*)$", re.IGNORECASE | re.DOTALL)


def parsed(statement: str) -> tuple[str, bool]:
    """Return the statement to explain, and whether it is to be run, too."""
    match = _HEAD.match(statement)
    inner = match.group(3).strip() if match is not None else ""
    word = inner.split(None, 1)[0] if inner else ""
    if match is None or word.upper() not in EXPLAINABLE:
        raise SqlError("42601", f'syntax error at or near "{word}"' if word else "syntax error at end of input")
    options = f"{match.group(1) or ''} {statement[: match.start(3)]}"
    return inner, re.search(r"\bANALYZE\b(?!\s+(?:off|false|0))", options, re.IGNORECASE) is not None


def plan(
    database: Database, statement: str, places: list[tuple[str, str]], rows: int | None, seconds: float
) -> list[str]:
    """Return the lines of a plan; `rows` are those that came out where the statement was run."""
    lines: list[str] = []
    condition = re.search(r"\bWHERE\s+(.*?)(?:\s+(?:GROUP|ORDER|LIMIT|RETURNING)\b.*)?$", statement, re.I | re.S)
    aggregates = re.search(r"\b(?:count|sum|avg|min|max)\s*\(", statement, re.IGNORECASE) is not None
    names = tables_of(statement)
    if not names:
        lines.append(f"Result  (cost=0.00..0.01 rows=1 width=4){_actual(rows, seconds)}")
    for depth, (schema, table) in enumerate(places):
        tables = database.tables
        place = "main" if schema == "public" else schema
        count = max(1, tables.count(place, table))
        columns = tables.columns(place, table)
        width = 32 * max(1, len(columns))
        pages = 1 + count * width // 8192
        cost = f"cost=0.00..{pages + count * 0.0125:.2f} rows={count} width={width}"
        keys = [(f"{table}_pkey", [c[0] for c in columns if c[4]])]
        keys += [(name, parts) for name, _, parts in tables.indexes(place, table)]
        used = next(
            (
                (name, parts[0])
                for name, parts in keys
                if parts and condition and re.search(rf"\b{parts[0]}\"?\s*=", condition.group(1))
            ),
            None,
        )
        scan = f"Seq Scan on {table}"
        if used is not None and count > 50:
            scan = f"Index Scan using {used[0]} on {table}"
            cost = f"cost=0.14..8.16 rows=1 width={width}"
        indent = "      " * depth + ("  ->  " if depth else "")
        if depth == 0 and aggregates:
            top = f"cost={pages + count * 0.0125:.2f}..{pages + count * 0.0125 + 0.01:.2f} rows=1 width=8"
            lines.append(f"Aggregate  ({top}){_actual(rows, seconds)}")
            indent = "  ->  "
        lines.append(f"{indent}{scan}  ({cost}){_actual(rows, seconds)}")
        if condition is not None and depth == 0:
            word = "Index Cond" if used is not None and count > 50 else "Filter"
            margin = " " * (len(indent) + 2)
            lines.append(f"{margin}{word}: ({' '.join(condition.group(1).split())})")
    if rows is not None:
        lines += [" Planning Time: 0.112 ms".strip(), f"Execution Time: {seconds * 1000:.3f} ms"]
    return lines


def _actual(rows: int | None, seconds: float) -> str:
    return "" if rows is None else f" (actual time=0.012..{seconds * 1000:.3f} rows={rows} loops=1)"
