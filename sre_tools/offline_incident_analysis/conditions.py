"""WHERE clauses from an agent's filters: values are always parameters, columns always from a fixed list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.arguments import TimeRangeArguments, parse_time
from srearena.snapshots.errors import DataError


class Conditions:
    def __init__(self) -> None:
        self._clauses: list[str] = []
        self.values: list[Any] = []

    def add(self, clause: str, *values: Any) -> None:
        self._clauses.append(f"({clause})")
        self.values.extend(values)

    @staticmethod
    def time_range(arguments: TimeRangeArguments) -> tuple[datetime | None, datetime | None]:
        """The checked time range of the arguments; naive and in UTC."""
        start, end = parse_time(arguments.start_time, "start_time"), parse_time(arguments.end_time, "end_time")
        if start and end and start > end:
            raise ToolError(f"start_time {start} is after end_time {end}")
        return start, end

    def add_time_range(self, column: str, arguments: TimeRangeArguments) -> None:
        start, end = self.time_range(arguments)
        if start:
            self.add(f"{column} >= ?", start)
        if end:
            self.add(f"{column} <= ?", end)

    def add_filters(self, filters: Mapping[str, Any] | None, columns: Mapping[str, str]) -> None:
        """Add filters such as `{"reason": "BackOff"}` or `{"reason": ["BackOff", "Failed"]}`; case is ignored."""
        for name, value in (filters or {}).items():
            column = columns.get(name)
            if column is None:
                raise ToolError(f"filters: there is no column {name!r}; there are {', '.join(columns)}")
            options = value if isinstance(value, list) else [value]
            marks = ", ".join("lower(?)" for _ in options)
            self.add(f"lower(CAST({column} AS VARCHAR)) IN ({marks})", *(str(option) for option in options))

    @property
    def where(self) -> str:
        return "WHERE " + " AND ".join(self._clauses) if self._clauses else ""


def checked_regex(query: Callable[[str, Sequence[Any]], Any], pattern: str, what: str) -> str:
    """The pattern, if it is valid RE2, which runs in time linear in the text."""
    if len(pattern) > 1000:
        raise ToolError(f"{what}: the pattern is too long")
    try:
        query("SELECT regexp_matches('', ?)", [pattern])
    except DataError as problem:
        raise ToolError(f"{what}: {pattern!r} is no regular expression (RE2 syntax; no look-around)") from problem
    return pattern


def group_columns(group_by: str | list[str] | None, columns: Mapping[str, str]) -> list[str]:
    names = [group_by] if isinstance(group_by, str) else list(group_by or [])
    for name in names:
        if name not in columns:
            raise ToolError(f"group_by: there is no column {name!r}; there are {', '.join(columns)}")
    return names
