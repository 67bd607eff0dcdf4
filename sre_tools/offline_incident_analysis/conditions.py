"""WHERE clauses put together from an agent's filters: values are always parameters, columns always from a list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import Timed, instant
from srearena.snapshots.errors import DataError


class Conditions:
    def __init__(self) -> None:
        self._clauses: list[str] = []
        self.values: list[Any] = []

    def add(self, clause: str, *values: Any) -> None:
        self._clauses.append(f"({clause})")
        self.values.extend(values)

    @staticmethod
    def within(arguments: Timed) -> tuple[datetime | None, datetime | None]:
        """The time range an agent asks for, checked; naive and in UTC."""
        start, end = instant(arguments.start_time, "start_time"), instant(arguments.end_time, "end_time")
        if start and end and start > end:
            raise ToolError(f"start_time {start} is after end_time {end}")
        return start, end

    def during(self, column: str, arguments: Timed) -> None:
        start, end = self.within(arguments)
        if start:
            self.add(f"{column} >= ?", start)
        if end:
            self.add(f"{column} <= ?", end)

    def equal(self, filters: Mapping[str, Any] | None, columns: Mapping[str, str]) -> None:
        """`{"reason": "BackOff"}` or `{"reason": ["BackOff", "Failed"]}`; text is compared without case."""
        for name, wanted in (filters or {}).items():
            column = columns.get(name)
            if column is None:
                raise ToolError(f"filters: there is no column {name!r}; there are {', '.join(columns)}")
            options = wanted if isinstance(wanted, list) else [wanted]
            marks = ", ".join("lower(?)" for _ in options)
            self.add(f"lower(CAST({column} AS VARCHAR)) IN ({marks})", *(str(option) for option in options))

    @property
    def where(self) -> str:
        return "WHERE " + " AND ".join(self._clauses) if self._clauses else ""


def checked_regex(call: Callable[[str, Sequence[Any]], Any], pattern: str, what: str) -> str:
    """A regular expression the database can run; it runs in time linear in the text, whatever it says."""
    if len(pattern) > 1000:
        raise ToolError(f"{what}: the pattern is too long")
    try:
        call("SELECT regexp_matches('', ?)", [pattern])
    except DataError as problem:
        raise ToolError(f"{what}: {pattern!r} is no regular expression (RE2 syntax; no look-around)") from problem
    return pattern


def group_columns(group_by: str | list[str] | None, columns: Mapping[str, str]) -> list[str]:
    names = [group_by] if isinstance(group_by, str) else list(group_by or [])
    for name in names:
        if name not in columns:
            raise ToolError(f"group_by: there is no column {name!r}; there are {', '.join(columns)}")
    return names
