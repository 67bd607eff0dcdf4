"""Why a query has no answer."""

from __future__ import annotations

from srearena.errors import SreArenaError


class QueryError(SreArenaError):
    """The text is Prometheus' own; `kind` is the error type its HTTP API names."""

    kind = "execution"


class QueryTimeout(QueryError):
    """The query would take too long; it is refused before it begins to."""

    kind = "timeout"


class BadQuery(QueryError):
    """The query, or a parameter beside it, makes no sense."""

    kind = "bad_data"
