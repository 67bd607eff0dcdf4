"""Why a query has no answer."""

from __future__ import annotations

from srearena.errors import SreArenaError


class QueryError(SreArenaError):
    """The text is Prometheus' own; `kind` is the error type its HTTP API names."""

    kind = "execution"


class BadQuery(QueryError):
    """The query, or a parameter beside it, makes no sense."""

    kind = "bad_data"
