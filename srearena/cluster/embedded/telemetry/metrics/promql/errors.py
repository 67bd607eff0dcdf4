"""Errors of queries."""

from __future__ import annotations

from srearena.errors import SreArenaError


class QueryError(SreArenaError):
    """The text is Prometheus' own; `kind` is the error type its HTTP API names."""

    kind = "execution"


class QueryTimeout(QueryError):
    """The query would take too long; it is rejected before evaluation."""

    kind = "timeout"


class BadQuery(QueryError):
    """The query or one of its parameters is invalid."""

    kind = "bad_data"
