"""MySQL's errors (number, SQLSTATE, text), and the translation of SQLite's errors."""

from __future__ import annotations

from srearena.cluster.program_models.sql import TableError


class MysqlError(Exception):
    def __init__(self, number: int, state: str, message: str) -> None:
        super().__init__(message)
        self.number = number
        self.state = state
        self.message = message


def syntax_error(statement: str, near: str) -> MysqlError:
    found = statement[max(0, statement.find(near)) :][:80] if near else ""
    text = "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for "
    return MysqlError(1064, "42000", f"{text}the right syntax to use near '{found}' at line 1")


def translated(error: TableError, statement: str, database: str) -> MysqlError:
    name = error.name.strip('"`')
    if error.kind == "missing table":
        full = name if "." in name else f"{database}.{name}"
        return MysqlError(1146, "42S02", f"Table '{full}' doesn't exist")
    if error.kind == "missing column":
        return MysqlError(1054, "42S22", f"Unknown column '{name}' in 'field list'")
    if error.kind == "missing function":
        return MysqlError(1305, "42000", f"FUNCTION {database}.{name} does not exist")
    if error.kind == "exists":
        return MysqlError(1050, "42S01", f"Table '{name.rpartition('.')[2]}' already exists")
    if error.kind == "duplicate":
        return MysqlError(
            1062, "23000", f"Duplicate entry for key '{name.rpartition('.')[0].rpartition('.')[2]}.PRIMARY'"
        )
    if error.kind == "null":
        return MysqlError(1364, "HY000", f"Field '{name.rpartition('.')[2]}' doesn't have a default value")
    if error.kind == "schema":
        return MysqlError(1049, "42000", f"Unknown database '{name}'")
    if error.kind == "limit":
        text = "Query execution was interrupted, maximum statement execution time exceeded"
        return MysqlError(3024, "HY000", text)
    if error.kind == "syntax":
        return syntax_error(statement, name)
    if "values for" in error.text or "values were supplied" in error.text:
        return MysqlError(1136, "21S01", "Column count doesn't match value count at row 1")
    return syntax_error(statement, statement.split(None, 1)[-1])
