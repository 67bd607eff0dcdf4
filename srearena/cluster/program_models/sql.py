"""The SQL engine for program models of relational databases."""

from srearena.cluster.embedded.programs.datastores.sql import grids
from srearena.cluster.embedded.programs.datastores.sql.engine import Rows, TableError, Tables
from srearena.cluster.embedded.programs.datastores.sql.locks import LockTable, Request
from srearena.cluster.embedded.programs.datastores.sql.statements import (
    literal,
    masked,
    split,
    tables_of,
    unmasked,
    words_of,
)
from srearena.cluster.embedded.programs.datastores.statement_activity import (
    Activity,
    Digest,
    Running,
    derived_text,
    slow_seconds,
)

__all__ = [
    "Activity",
    "Digest",
    "LockTable",
    "Request",
    "Rows",
    "Running",
    "TableError",
    "Tables",
    "derived_text",
    "grids",
    "literal",
    "masked",
    "slow_seconds",
    "split",
    "tables_of",
    "unmasked",
    "words_of",
]
