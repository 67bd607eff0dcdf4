"""Argument types that the tools share, and the parser of the times in them."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import Field

from sre_tools.errors import ToolError
from sre_tools.offline_incident_analysis.replies import DEFAULT_TOKENS, MAX_TOKENS, MIN_TOKENS
from sre_tools.registry import ToolArguments


class Arguments(ToolArguments):
    """Arguments of every tool."""

    cursor: str | None = Field(None, description="`next_cursor` of the reply before, with the same other arguments")
    max_tokens: int = Field(
        DEFAULT_TOKENS, ge=MIN_TOKENS, le=MAX_TOKENS, description="about how long the reply may be, in tokens"
    )


class TimeRangeArguments(Arguments):
    start_time: str | None = Field(None, description="ISO 8601, inclusive; without a zone it is UTC")
    end_time: str | None = Field(None, description="ISO 8601, inclusive; without a zone it is UTC")


class PagedArguments(TimeRangeArguments):
    limit: int | None = Field(None, ge=0, description="rows per reply; 0 for all that fit")
    offset: int = Field(0, ge=0, description="rows to skip")


def parse_time(text: str | None, what: str) -> datetime | None:
    """Parse a time argument; naive and in UTC, like the times in the tables."""
    if not text:
        return None
    try:
        value = datetime.fromisoformat(text.strip())
    except ValueError as problem:
        raise ToolError(f"{what}: {text!r} is no time; write it as 2025-06-01T10:00:00Z") from problem
    return value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
