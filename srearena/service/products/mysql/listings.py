"""SHOW, DESCRIBE, information_schema, and the information functions."""

from __future__ import annotations

import re
from typing import Any

from srearena.regular_expressions import PatternError, literal, pattern
from srearena.service.products.mysql.errors import MysqlError, not_supported
from srearena.service.products.mysql.server import SYSTEM, MysqlServer, Session

Listing = tuple[list[str], list[tuple[Any, ...]]]
_PROCESS = ["Id", "User", "Host", "db", "Command", "Time", "State", "Info"]
_TYPES = {"INTEGER": "int", "INT": "int", "TEXT": "text"}


def visible(server: MysqlServer, session: Session) -> list[str]:
    account = session.account
    own = [name for name in server.databases if account is not None and account.may("SELECT", name, "*")]
    system = SYSTEM if account is not None and account.superuser else SYSTEM[:1]
    return sorted({*own, *system, "performance_schema"})


def process_rows(server: MysqlServer, session: Session, *, full: bool = False) -> list[tuple[Any, ...]]:
    now = server.process.clock.now
    rows: list[tuple[Any, ...]] = []
    for other in server.sessions.values():
        if other.user != session.user and not (session.account and session.account.superuser):
            continue
        state = other.state or ("init" if other is session else "")
        database, _, table = other.target.partition("(")[0].rpartition(".")
        place = f"{database or other.database}.{table}"
        if other.target and any(o is not other for o in server.locks.waits(place, "AccessShareLock")):
            state = "Waiting for table metadata lock"
        host = other.host if other.host == "localhost" else f"{other.host}:{40000 + other.number}"
        info = (other.query if full else other.query[:100]) or None
        name = other.database or None
        rows.append((other.number, other.user, host, name, other.command, int(now - other.since), state, info))
    return rows


def status_rows(server: MysqlServer) -> list[tuple[str, str]]:
    running = sum(session.command == "Query" for session in server.sessions.values())
    return sorted(
        {
            "Connections": str(server.connected),
            "Max_used_connections": str(server.most),
            "Questions": str(server.questions),
            "Threads_connected": str(len(server.sessions)),
            "Threads_running": str(max(1, running)),
            "Uptime": str(int(server.process.clock.now - server.process.started_at)),
        }.items()
    )


def _like(rows: list[tuple[Any, ...]], statement: str) -> list[tuple[Any, ...]]:
    found = re.search(r"\bLIKE\s+['\"]([^'\"]*)['\"]", statement, re.IGNORECASE)
    exact = re.search(r"\bWHERE\s+Variable_name\s*=\s*['\"]([^'\"]*)['\"]", statement, re.IGNORECASE)
    if found is None and exact is None:
        return rows
    text = found.group(1) if found is not None else exact.group(1) if exact is not None else ""
    like = "".join(".*" if c == "%" else "." if c == "_" and found else literal(c) for c in text)
    try:
        expression = pattern(rf"(?i)\A{like}\z")
    except PatternError:  # longer than any name
        return []
    return [row for row in rows if expression.matches(str(row[0]))]


def _titled(name: str, statement: str) -> str:
    found = re.search(r"\bLIKE\s+['\"]([^'\"]*)['\"]", statement, re.IGNORECASE)
    return name if found is None else f"{name} ({found.group(1)})"


def show(server: MysqlServer, session: Session, statement: str) -> Listing:
    text = " ".join(statement.split())
    upper = text.upper()
    if upper.startswith(("SHOW DATABASES", "SHOW SCHEMAS")):
        return [_titled("Database", text)], _like([(name,) for name in visible(server, session)], text)
    if re.match(r"SHOW (FULL )?TABLES", upper):
        named = re.search(r"\b(?:FROM|IN) `?([\w-]+)`?", text, re.IGNORECASE)
        database = named.group(1) if named is not None else session.database
        if not database:
            raise MysqlError(1046, "3D000", "No database selected")
        if database not in (*server.databases, *SYSTEM):
            raise MysqlError(1049, "42000", f"Unknown database '{database}'")
        return [_titled(f"Tables_in_{database}", text)], _like(
            [(name,) for name in server.tables.tables(database)], text
        )
    if re.match(r"SHOW (FULL )?PROCESSLIST", upper):
        return list(_PROCESS), process_rows(server, session, full="FULL" in upper)
    if re.match(r"SHOW (GLOBAL |SESSION )?VARIABLES", upper):
        values = {**server.variables, **({} if "GLOBAL" in upper else session.variables)}
        return ["Variable_name", "Value"], _like(sorted(values.items()), text)
    if re.match(r"SHOW (GLOBAL |SESSION )?STATUS", upper):
        return ["Variable_name", "Value"], _like(list(status_rows(server)), text)
    if upper.startswith("SHOW GRANTS"):
        return _grants(server, session, text)
    if re.match(r"SHOW (FULL )?(COLUMNS|FIELDS) (FROM|IN)", upper):
        return columns(server, session, text.split()[-1].strip("`"))
    if upper.startswith("SHOW CREATE TABLE"):
        table = text.split()[-1].replace("`", "")
        database, _, name = table.rpartition(".")
        rows = server.tables.columns(database or session.database, name)
        body = ",\n".join(f"  `{c[0]}` {c[1].lower() or 'text'}{' NOT NULL' if c[2] else ''}" for c in rows)
        return ["Table", "Create Table"], [(name, f"CREATE TABLE `{name}` (\n{body}\n) ENGINE=InnoDB")]
    if upper.startswith(("SHOW WARNINGS", "SHOW ERRORS")):
        return ["Level", "Code", "Message"], []
    if upper.startswith(("SHOW SLAVE STATUS", "SHOW REPLICA STATUS")):
        return ["Slave_IO_State"], []
    if upper.startswith("SHOW ENGINES"):
        return ["Engine", "Support"], [("InnoDB", "DEFAULT")]
    raise not_supported(" ".join(upper.split()[:2]))


def _grants(server: MysqlServer, session: Session, text: str) -> Listing:
    named = re.search(r"FOR ['\"`]?([\w-]+)['\"`]?(?:@['\"`]?([\w.%-]+)['\"`]?)?", text, re.IGNORECASE)
    account = session.account
    if named is not None and named.group(1).upper() != "CURRENT_USER":
        host = named.group(2) or "%"
        account = next((a for a in server.accounts if (a.name, a.host) == (named.group(1), host)), None)
        if account is None:
            raise MysqlError(
                1141, "42000", f"There is no such grant defined for user '{named.group(1)}' on host '{host}'"
            )
    if account is None:
        raise MysqlError(1141, "42000", "There is no such grant defined")
    who = f"`{account.name}`@`{account.host}`"
    rows: list[tuple[Any, ...]] = [(f"GRANT USAGE ON *.* TO {who}",)] if "*.*" not in account.granted else []
    for place, privileges in account.granted.items():
        names = "ALL PRIVILEGES" if "ALL" in privileges else ", ".join(sorted(privileges))
        database, _, table = place.partition(".")
        shown = place if database == "*" else f"`{database}`.{table if table == '*' else f'`{table}`'}"
        if names:
            rows.append((f"GRANT {names} ON {shown} TO {who}",))
    return [f"Grants for {account.name}@{account.host}"], rows


def columns(server: MysqlServer, session: Session, table: str) -> Listing:
    database, _, name = table.rpartition(".")
    place = database or session.database
    if name not in server.tables.tables(place):
        raise MysqlError(1146, "42S02", f"Table '{place}.{name}' doesn't exist")
    rows: list[tuple[Any, ...]] = []
    for column, kind, needed, default, key in server.tables.columns(place, name):
        shown = _TYPES.get(kind.upper(), kind.lower())
        rows.append((column, shown, "NO" if needed or key else "YES", "PRI" if key else "", default, ""))
    return ["Field", "Type", "Null", "Key", "Default", "Extra"], rows


def refresh(server: MysqlServer, session: Session) -> None:
    """Fill information_schema and mysql.user for a statement that reads them."""
    tables = server.tables
    known = set(tables.schemas)
    for name in ("information_schema", "mysql"):
        if name not in known:
            tables.add_schema(name)
    names = [database for database in server.databases if database not in SYSTEM]
    found = [(database, table) for database in names for table in tables.tables(database)]
    rows = [
        ("def", database, table, "BASE TABLE", "InnoDB", tables.count(database, table)) for database, table in found
    ]
    head = ("TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE", "ENGINE", "TABLE_ROWS")
    tables.fill("information_schema", "TABLES", head, rows)
    parts = [(d, t, c[0], c[1].lower()) for d, t in found for c in tables.columns(d, t)]
    tables.fill("information_schema", "COLUMNS", ("TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE"), parts)
    tables.fill("information_schema", "SCHEMATA", ("SCHEMA_NAME",), [(name,) for name in (*names, *SYSTEM)])
    process_list = [tuple(row) for row in process_rows(server, session, full=True)]
    tables.fill("information_schema", "PROCESSLIST", [name.upper() for name in _PROCESS], process_list)
    accounts = [(account.host, account.name, "caching_sha2_password") for account in server.accounts]
    tables.fill("mysql", "user", ("Host", "User", "plugin"), accounts)


def define_functions(server: MysqlServer, session: Session) -> None:
    values = {**server.variables, **session.variables}
    for name, arguments, body in (
        ("my_user", 0, lambda: f"{session.user}@{session.host}"),
        ("my_current_user", 0, lambda: f"{session.user}@{session.account.host if session.account else '%'}"),
        ("my_database", 0, lambda: session.database or None),
        ("my_schema", 0, lambda: session.database or None),
        ("my_version", 0, lambda: server.version),
        ("my_connection_id", 0, lambda: session.number),
        ("my_variable", 1, lambda name: values.get(str(name).lower())),
        ("concat", -1, lambda *items: None if None in items else "".join(str(item) for item in items)),
        ("left_", 2, lambda text, size: None if text is None else str(text)[: int(size)]),
        ("if", 3, lambda test, then, other: then if test else other),
    ):
        server.tables.function(name, arguments, body)
