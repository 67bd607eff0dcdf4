"""PostgreSQL's errors: a SQLSTATE, a message, and what SQLite's complaints are called here."""

from __future__ import annotations

from srearena.cluster.embedded.programs.datastores.sql.engine import TableError


class SqlError(Exception):
    def __init__(self, state: str, message: str, *, severity: str = "ERROR", hint: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.state = state
        self.message = message
        self.severity = severity
        self.hint = hint
        self.detail = detail

    @property
    def text(self) -> str:
        """As psql prints it."""
        extra = f"\nDETAIL:  {self.detail}" if self.detail else ""
        extra += f"\nHINT:  {self.hint}" if self.hint else ""
        return f"{self.severity}:  {self.message}{extra}"


def translated(error: TableError, statement: str) -> SqlError:
    name = error.name.strip('"')
    if error.kind == "missing table" and statement.lstrip()[:4].upper() == "DROP":
        return SqlError("42P01", f'table "{name.rpartition(".")[2]}" does not exist')
    if error.kind == "missing table":
        return SqlError("42P01", f'relation "{name}" does not exist' + _line(statement, name))
    if error.kind == "missing column":
        shown = name if "." in name else f'"{name}"'
        return SqlError("42703", f"column {shown} does not exist" + _line(statement, name))
    if error.kind == "missing function":
        hint = "No function matches the given name and argument types. You might need to add explicit type casts."
        return SqlError("42883", f"function {name}() does not exist", hint=hint)
    if error.kind == "exists":
        return SqlError("42P07", f'relation "{name}" already exists')
    if error.kind == "duplicate":
        table, _, column = name.split(", ")[0].rpartition(".")
        key = f"{table.rpartition('.')[2]}_pkey"
        return SqlError(
            "23505", f'duplicate key value violates unique constraint "{key}"', detail=f"Key ({column}) already exists."
        )
    if error.kind == "null":
        table, _, column = name.rpartition(".")
        return SqlError("23502", f'null value in column "{column}" of relation "{table}" violates not-null constraint')
    if error.kind == "syntax":
        if name == "incomplete input":
            return SqlError("42601", "syntax error at end of input")
        return SqlError("42601", f'syntax error at or near "{name}"' + _line(statement, name))
    if error.kind == "schema":
        return SqlError("3F000", f'schema "{name}" does not exist')
    if error.kind == "limit":
        return SqlError("57014", "canceling statement due to statement timeout")
    word = next(iter(statement.split()[1:2]), statement.strip())
    return SqlError("42601", f'syntax error at or near "{word}"' + _line(statement, word))


def _line(statement: str, name: str) -> str:
    """The line psql points at."""
    for number, line in enumerate(statement.splitlines(), 1):
        position = line.lower().find(name.lower())
        if position >= 0:
            head = f"LINE {number}: "
            return f"\n{head}{line}\n{' ' * (len(head) + position)}^"
    return ""
