"""Answers of the server: command tags, and columns named as PostgreSQL names them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from srearena.cluster.embedded.programs.datastores.sql.engine import Rows
from srearena.cluster.embedded.programs.datastores.sql.statements import words_of


@dataclass(slots=True)
class Answer:
    tag: str
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    notice: str = ""
    copied: str = ""
    """What COPY ... TO STDOUT sends, as it is."""


def answer_of(first: str, statement: str, rows: Rows, booleans: frozenset[str]) -> Answer:
    words = words_of(statement, 3)
    tags: dict[str, Callable[[], str]] = {
        "SELECT": lambda: f"SELECT {len(rows.rows)}",
        "WITH": lambda: f"SELECT {len(rows.rows)}",
        "VALUES": lambda: f"SELECT {len(rows.rows)}",
        "TABLE": lambda: f"SELECT {len(rows.rows)}",
        "INSERT": lambda: f"INSERT 0 {rows.count}",
        "UPDATE": lambda: f"UPDATE {rows.count}",
        "DELETE": lambda: f"DELETE {rows.count}",
        "TRUNCATE": lambda: "TRUNCATE TABLE",
    }
    kind = next((word for word in words[1:] if word in ("TABLE", "INDEX", "VIEW")), "TABLE")
    tag = tags[first]() if first in tags else f"{first} {kind}"
    columns = [_title(name) for name in rows.columns]
    truths = {index for index, name in enumerate(columns) if name in booleans}
    shown = [
        tuple(
            ("t" if value else "f") if index in truths and value in (0, 1) else value for index, value in enumerate(row)
        )
        for row in rows.rows
    ]
    return Answer(tag, columns, shown)


def _title(name: str) -> str:
    """The name PostgreSQL would give a column that has none of its own."""
    cast = re.fullmatch(r'regclass\((?:\w+\.)?"?([A-Za-z_]\w*)"?\)', name)
    if cast is not None:
        return cast.group(1)
    found = re.fullmatch(r"(\w+)\s*\(.*\)", name, re.DOTALL)
    if found is not None:
        renamed = {"elapsed": "?column?", "ago": "?column?", "group_concat": "string_agg"}
        renamed |= {"left_": "left", "right_": "right"}
        return renamed.get(found.group(1).lower(), found.group(1).lower())
    return name if re.fullmatch(r"[A-Za-z_][\w$ ]*", name) else "?column?"
