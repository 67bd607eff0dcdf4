"""SHOW, DESCRIBE, information_schema, and the information functions."""

from __future__ import annotations

import re
from typing import Any

from srearena.regular_expressions import PatternError, literal, pattern
from srearena.service.products.mysql.engine_status import engine_status
from srearena.service.products.mysql.errors import MysqlError, syntax_error
from srearena.service.products.mysql.server import SYSTEM, MysqlServer, Session
from srearena.service.products.mysql.sessions import PROCESS_COLUMNS, process_rows, status_rows
from srearena.service.products.mysql.system_tables import TABLES

Listing = tuple[list[str], list[tuple[Any, ...]]]
_TYPES = {"INTEGER": "int", "INT": "int", "TEXT": "text"}


def visible(server: MysqlServer, session: Session) -> list[str]:
    account = session.account
    own = [name for name in server.databases if account is not None and account.may("SELECT", name, "*")]
    system = SYSTEM if account is not None and account.superuser else SYSTEM[:1]
    return sorted({*own, *system, "performance_schema"})


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
        names = [*TABLES.get(database, ()), *server.own_tables.get(database, ())]
        names = sorted(names) if database in SYSTEM else server.tables.tables(database)
        return [_titled(f"Tables_in_{database}", text)], _like([(name,) for name in names], text)
    if re.match(r"SHOW (FULL )?PROCESSLIST", upper):
        return list(PROCESS_COLUMNS), process_rows(server, session, full="FULL" in upper)
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
        comment = "Supports transactions, row-level locking, and foreign keys"
        heads = ["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"]
        return heads, [("InnoDB", "DEFAULT", comment, "YES", "YES", "YES")]
    if re.match(r"SHOW (INDEX|INDEXES|KEYS) (FROM|IN)", upper):
        return _indexes(server, session, text.split()[3].strip("`"))
    if re.match(r"SHOW TABLE STATUS", upper):
        return _table_status(server, session, text)
    if upper.startswith("SHOW ENGINE INNODB STATUS"):
        return ["Type", "Name", "Status"], [("InnoDB", "", engine_status(server))]
    if upper.startswith("SHOW OPEN TABLES"):
        return ["Database", "Table", "In_use", "Name_locked"], _open_tables(server)
    if re.match(r"SHOW (MASTER|BINARY LOG) STATUS", upper):
        row = ("binlog.000002", 157 + 320 * server.changes, "", "", "")
        return ["File", "Position", "Binlog_Do_DB", "Binlog_Ignore_DB", "Executed_Gtid_Set"], [row]
    if re.match(r"SHOW (BINARY|MASTER) LOGS", upper):
        return ["Log_name", "File_size", "Encrypted"], [("binlog.000002", 157 + 320 * server.changes, "No")]
    if re.match(r"SHOW (PLUGINS|EVENTS|TRIGGERS|PROFILES|FUNCTION STATUS|PROCEDURE STATUS)", upper):
        return ["Name", "Status"], []
    raise syntax_error(text, text.split(None, 2)[1] if len(text.split()) > 1 else "")


def _indexes(server: MysqlServer, session: Session, table: str) -> Listing:
    database, _, name = table.rpartition(".")
    place = database or session.database
    if name not in server.tables.tables(place):
        raise MysqlError(1146, "42S02", f"Table '{place}.{name}' doesn't exist")
    keys = [column[0] for column in server.tables.columns(place, name) if column[4]]
    count = server.tables.count(place, name)
    heads = ["Table", "Non_unique", "Key_name", "Seq_in_index", "Column_name", "Collation", "Cardinality", "Index_type"]
    rows: list[tuple[Any, ...]] = [
        (name, 0, "PRIMARY", number, key, "A", count, "BTREE") for number, key in enumerate(keys, 1)
    ]
    for index, unique, parts in server.tables.indexes(place, name):
        rows += [
            (name, int(not unique), index, number, column, "A", count, "BTREE")
            for number, column in enumerate(parts, 1)
        ]
    return heads, rows


def _table_status(server: MysqlServer, session: Session, text: str) -> Listing:
    named = re.search(r"\b(?:FROM|IN) `?([\w-]+)`?", text, re.IGNORECASE)
    database = named.group(1) if named is not None else session.database
    rows: list[tuple[Any, ...]] = []
    for table in server.tables.tables(database):
        count = server.tables.count(database, table)
        length = 16384 * (1 + count // 120)
        rows.append((table, "InnoDB", 10, "Dynamic", count, length // max(1, count), length, 0, "utf8mb4_0900_ai_ci"))
    heads = ["Name", "Engine", "Version", "Row_format", "Rows", "Avg_row_length", "Data_length", "Index_length"]
    return [*heads, "Collation"], _like(rows, text)


def _open_tables(server: MysqlServer) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for database in server.databases:
        for table in server.tables.tables(database):
            users = sum(request.table == f"{database}.{table}" for request in server.locks.requests)
            rows.append((database, table, users, 0))
    return rows


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
