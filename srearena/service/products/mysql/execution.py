"""Execution of a session's statements: privileges, locks, transactions, SHOW, and commands that SQLite lacks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from srearena.cluster.program_models.sql import Rows, TableError, literal, tables_of, words_of
from srearena.service.products.mysql import listings, slow_log, system_tables
from srearena.service.products.mysql.accounts import ACCOUNT_COMMANDS
from srearena.service.products.mysql.dialect import translated
from srearena.service.products.mysql.errors import MysqlError, syntax_error
from srearena.service.products.mysql.errors import translated as translated_error
from srearena.service.products.mysql.explain import EXPLAINABLE, explain
from srearena.service.products.mysql.server import SYSTEM, MysqlServer, Session

STATEMENT_COST = 0.0003
_SLEEP = re.compile(r"\bSLEEP\s*\(\s*([\d.]+)\s*\)", re.IGNORECASE)
_LOCKS = {
    "SELECT": "AccessShareLock",
    "INSERT": "RowExclusiveLock",
    "UPDATE": "RowExclusiveLock",
    "DELETE": "RowExclusiveLock",
}
_LOCKS |= {"REPLACE": "RowExclusiveLock"}
_SECURE_FILES = "The MySQL server is running with the --secure-file-priv option so it cannot execute this statement"
_REFUSED: dict[str, tuple[int, str, str]] = {
    "LOAD": (1290, "HY000", _SECURE_FILES),
    "PREPARE": (1295, "HY000", "This command is not supported in the prepared statement protocol yet"),
    "EXECUTE": (1243, "HY000", "Unknown prepared statement handler ({name}) given to EXECUTE"),
    "CALL": (1305, "42000", "PROCEDURE {database}.{name} does not exist"),
    "HANDLER": (1031, "HY000", "Table storage engine for '{name}' doesn't have this option"),
    "CHANGE": (
        *(1794, "HY000"),
        "Replica is not configured or failed to initialize properly. You must at least set --server-id to enable either"
        " a source or a replica. Additional error messages can be found in the MySQL error log.",
    ),
    "XA": (
        1399,
        "XAE07",
        "XAER_RMFAIL: The command cannot be executed when global transaction is in the  ACTIVE state",
    ),
}
"""Statements that fail here, with an error that a server gives for them: a right, an option or an object is missing."""
_ACKNOWLEDGED = frozenset(("ANALYZE", "OPTIMIZE", "DO"))


@dataclass(slots=True)
class Answer:
    columns: list[str] = field(default_factory=list)
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    affected: int = 0
    database: str = ""
    """The current database, where the statement changed it."""


class Execution:
    def __init__(self, server: MysqlServer, session: Session) -> None:
        self.server = server
        self.session = session

    async def run(self, statement: str) -> Answer:
        session, server = self.session, self.server
        server.count_statement(next(iter(words_of(statement, 1)), "").lower())
        started = server.process.clock.now
        session.command, session.query, session.since = "Query", statement, started
        try:
            answer = await self._dispatch(next(iter(words_of(statement, 1)), ""), statement)
            slow_log.executed(server, session, statement, server.process.clock.now - started)
            return answer
        except (IndexError, ValueError, KeyError):
            text = (
                "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version"
            )
            raise MysqlError(1064, "42000", f"{text} for the right syntax to use near '' at line 1") from None
        except TableError as error:
            raise translated_error(error, statement, session.database) from None
        finally:
            session.command, session.state, session.query, session.waiting = "Sleep", "", "", None
            session.since = server.process.clock.now

    async def _dispatch(self, first: str, statement: str) -> Answer:
        commands: dict[str, Callable[[str], Answer]] = {
            "USE": self._use,
            "SHOW": self._show,
            "SET": self._set,
            "KILL": self._kill,
            "BEGIN": self._begin,
            "START": self._begin,
            "COMMIT": self._finish,
            "ROLLBACK": self._finish,
            "SAVEPOINT": self._savepoint,
            "RELEASE": self._savepoint,
            "EXPLAIN": self._describe,
            "DESC": self._describe,
            "DESCRIBE": self._describe,
            "UNLOCK": self._unlock,
        }
        if first in commands:
            return commands[first](statement)
        if first == "LOCK" or statement.upper().startswith("FLUSH TABLES WITH READ LOCK"):
            return await self._lock(statement)
        if first in _REFUSED:
            number, state, text = _REFUSED[first]
            name = "".join(re.findall(r"[\w.]+", statement)[1:2])
            raise MysqlError(number, state, text.format(name=name, database=self.session.database))
        if first in _ACKNOWLEDGED or first == "FLUSH":
            return Answer()
        for pattern, command in ACCOUNT_COMMANDS:
            match = re.match(pattern, statement, re.IGNORECASE | re.DOTALL)
            if match is not None:
                self._may_write()
                affected = command(self.server, self.session, match)
                self.server.changed()
                return Answer(affected=affected)
        return await self._tables(first, statement)

    # --- small commands ----------------------------------------------------------------------------------------

    def _use(self, statement: str) -> Answer:
        name = statement.split(None, 1)[1].strip().strip("`")
        if name not in (*self.server.databases, *SYSTEM):
            raise MysqlError(1049, "42000", f"Unknown database '{name}'")
        self.session.database = name
        return Answer(database=name)

    def _show(self, statement: str) -> Answer:
        columns, rows = listings.show(self.server, self.session, statement)
        return Answer(columns, rows, len(rows))

    def _describe(self, statement: str) -> Answer:
        if len(statement.split()) != 2 or statement.split()[1].upper() in EXPLAINABLE:
            columns, rows = explain(self.server, self.session, statement)
            return Answer(columns, rows, len(rows))
        table = statement.split(None, 1)[1].strip().strip("`")
        columns, rows = listings.columns(self.server, self.session, table)
        return Answer(columns, rows, len(rows))

    def _set(self, statement: str) -> Answer:
        pattern = r"SET\s+(GLOBAL\s+|SESSION\s+|PERSIST\s+|@@GLOBAL\.|@@)?(\w+)\s*=\s*(.+)$"
        found = re.match(pattern, statement, re.IGNORECASE | re.DOTALL)
        if found is None:
            return Answer()
        scope, name, value = (found.group(1) or "").strip().upper(), found.group(2).lower(), found.group(3).strip()
        value = literal(value) if value[:1] in "'\"" else value
        value = (
            {"1": "ON", "0": "OFF", "TRUE": "ON", "FALSE": "OFF"}.get(value.upper(), value)
            if name == "read_only"
            else value
        )
        if scope in ("GLOBAL", "PERSIST", "@@GLOBAL."):
            if self.session.account is None or not self.session.account.superuser:
                needed = "SUPER or SYSTEM_VARIABLES_ADMIN"
                text = f"Access denied; you need (at least one of) the {needed} privilege(s) for this operation"
                raise MysqlError(1227, "42000", text)
            if name not in self.server.variables:
                raise MysqlError(1193, "HY000", f"Unknown system variable '{name}'")
            self.server.variables[name] = value
            self.server.changed()
        else:
            self.session.variables[name] = value
        return Answer()

    def _kill(self, statement: str) -> Answer:
        number = int(re.sub(r"\D", "", statement) or 0)
        if not self.server.kill(number):
            raise MysqlError(1094, "HY000", f"Unknown thread id: {number}")
        return Answer()

    def _begin(self, statement: str) -> Answer:
        self._finish("COMMIT")
        self.session.in_transaction = True
        return Answer()

    def _savepoint(self, statement: str) -> Answer:
        words = statement.replace("`", "").split()
        if len(words) < 2:
            raise syntax_error(statement, "")
        name = words[-1].lower()
        if words[0].upper() == "RELEASE" or words[0].upper() == "ROLLBACK":
            kept = self.session.savepoints.get(name)
            if kept is None:
                raise MysqlError(1305, "42000", f"SAVEPOINT {words[-1]} does not exist")
            if words[0].upper() == "ROLLBACK":
                for schema, data in kept.items():
                    self.server.tables.restore(schema, data)
        elif self.session.in_transaction:
            databases = self.server.databases
            self.session.savepoints[name] = {schema: self.server.tables.saved(schema) for schema in databases}
        return Answer()

    def _finish(self, statement: str) -> Answer:
        session = self.session
        if re.match(r"ROLLBACK\s+TO\b", statement, re.IGNORECASE):
            return self._savepoint(statement)
        session.savepoints.clear()
        if statement.upper().startswith("COMMIT"):
            if session.before is not None:
                self.server.changed()
            session.before, session.in_transaction = None, False
        else:
            self.server.rollback(session)
        self.server.locks.release(session)
        return Answer()

    def _unlock(self, statement: str) -> Answer:
        self.server.locks.release(self.session)
        return Answer()

    # --- locks -------------------------------------------------------------------------------------------------

    async def _lock(self, statement: str) -> Answer:
        self.server.locks.release(self.session)
        if statement.upper().startswith("FLUSH"):
            for database in self.server.databases:
                for table in self.server.tables.tables(database):
                    await self._acquire(f"{database}.{table}", "ShareLock")
            return Answer()
        for part in re.sub(r"^LOCK\s+TABLES?\s+", "", statement, flags=re.IGNORECASE).split(","):
            words = part.split()
            name = words[0].replace("`", "")
            database, _, table = name.rpartition(".")
            mode = "AccessExclusiveLock" if words[-1].upper() == "WRITE" else "ShareLock"
            await self._acquire(f"{database or self.session.database}.{table}", mode)
        return Answer()

    async def _acquire(self, table: str, mode: str) -> None:
        session, locks, clock = self.session, self.server.locks, self.server.process.clock
        request = locks.request(session, table, mode)
        session.waiting = request
        name = "lock_wait_timeout"
        limit = float(session.variables.get(name, self.server.variables[name]))
        deadline = clock.now + limit
        while not request.granted:
            session.state = "Waiting for table metadata lock"
            await self.server.moved.wait(max(0.0, deadline - clock.now))
            self._check_killed(request)
            if not request.granted and clock.now >= deadline:
                locks.withdraw(request)
                raise MysqlError(1205, "HY000", "Lock wait timeout exceeded; try restarting transaction")
        session.waiting = None

    def _check_killed(self, request: Any = None) -> None:
        if self.session.killed:
            if request is not None:
                self.server.locks.withdraw(request)
            raise MysqlError(1317, "70100", "Query execution was interrupted")

    # --- tables ------------------------------------------------------------------------------------------------

    def _place(self, name: str) -> tuple[str, str]:
        database, _, table = name.rpartition(".")
        return database or self.session.database, table

    def _permit(self, first: str, database: str, table: str) -> None:
        account = self.session.account
        word = {"REPLACE": "INSERT", "TRUNCATE": "DROP"}.get(first, first)
        if account is None or not account.may(word, database, table):
            user, host = self.session.user, self.session.host
            raise MysqlError(1142, "42000", f"{word} command denied to user '{user}'@'{host}' for table '{table}'")

    def _may_write(self) -> None:
        state = self.server.disk.look() if self.server.disk is not None else ""
        if state == "full":
            raise MysqlError(1114, "HY000", "The table is full")
        account = self.session.account
        if state == "readonly" or (self.server.variables["read_only"] == "ON" and not (account and account.superuser)):
            text = "The MySQL server is running with the --read-only option so it cannot execute this statement"
            raise MysqlError(1290, "HY000", text)

    async def _tables(self, first: str, statement: str) -> Answer:
        server, session = self.server, self.session
        places = [self._place(name) for name in tables_of(statement)]
        own_locks = [request for request in server.locks.requests if request.owner is session]
        for database, table in places:
            if database in SYSTEM:
                system_tables.refresh(server, session, database, table)
                continue
            if not database:
                raise MysqlError(1046, "3D000", "No database selected")
            if database not in server.databases:
                raise MysqlError(1049, "42000", f"Unknown database '{database}'")
            self._permit(first, database, table)
            if table in server.tables.tables(database):
                await self._acquire(f"{database}.{table}", _LOCKS.get(first, "AccessExclusiveLock"))
        try:
            await self._sleep(statement)
            listings.define_functions(server, session)
            writes = first not in ("SELECT", "WITH", "VALUES", "TABLE")
            if writes:
                self._may_write()
                if session.in_transaction and session.before is None:
                    session.before = {name: server.tables.saved(name) for name in server.databases}
            rows = self._compute(_SLEEP.sub("0", statement))
        finally:
            if not session.in_transaction and not own_locks:
                server.locks.release(session)
        await server.process.spend(STATEMENT_COST)
        if writes and not session.in_transaction:
            server.changed()
        columns = [_title(name, statement) for name in rows.columns]
        return Answer(columns, list(rows.rows), len(rows.rows) if columns else rows.count)

    def _compute(self, statement: str) -> Rows:
        try:
            return self.server.tables.execute(translated(statement, self.session.database))
        except TableError as error:
            raise translated_error(error, statement, self.session.database) from None

    async def _sleep(self, statement: str) -> None:
        match = _SLEEP.search(statement)
        if match is None:
            return
        self.session.state = "User sleep"
        clock = self.server.process.clock
        until = clock.now + float(match.group(1))
        while clock.now < until:
            await self.server.moved.wait(until - clock.now)
            self._check_killed()


def _title(name: str, statement: str) -> str:
    """The title of a column; one without a name has its text as title."""
    renamed = re.sub(r"\bmy_variable\('(\w+)'\)", r"@@\1", name)
    renamed = re.sub(r"\bmy_(\w+)\(\)", r"\1()", renamed)
    match = _SLEEP.search(statement)
    return match.group() if match is not None and renamed == "0" else renamed
