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

__all__ = [
    "LockTable",
    "Request",
    "Rows",
    "TableError",
    "Tables",
    "grids",
    "literal",
    "masked",
    "split",
    "tables_of",
    "unmasked",
    "words_of",
]
