"""Running a session's statements: permissions, locks, transactions, and the commands SQLite knows nothing of.

A statement takes a lock on each table it names and keeps it to the end of its transaction. Locks are on tables only;
two transactions that write the same row do not wait for each other here.
"""

from __future__ import annotations

import re
from typing import Any

from srearena.cluster.embedded.programs.datastores.postgresql import catalogs, explain, traffic_statements
from srearena.cluster.embedded.programs.datastores.postgresql.answers import Answer, answer_of
from srearena.cluster.embedded.programs.datastores.postgresql.dialect import translated
from srearena.cluster.embedded.programs.datastores.postgresql.errors import SqlError
from srearena.cluster.embedded.programs.datastores.postgresql.errors import translated as translated_error
from srearena.cluster.embedded.programs.datastores.postgresql.grants import ROLE_COMMANDS
from srearena.cluster.embedded.programs.datastores.postgresql.server import COMPUTED, Database, PostgresServer, Session
from srearena.cluster.embedded.programs.datastores.sql.engine import Rows, TableError
from srearena.cluster.embedded.programs.datastores.sql.statements import literal, tables_of, unquoted, words_of

STATEMENT_COST = 0.0003
ROW_COST = 0.000002
_PRIVILEGES = {"SELECT": "SELECT", "INSERT": "INSERT", "UPDATE": "UPDATE", "DELETE": "DELETE", "TRUNCATE": "TRUNCATE"}
_LOCKS = {
    "SELECT": "AccessShareLock",
    "TABLE": "AccessShareLock",
    "WITH": "AccessShareLock",
    "INSERT": "RowExclusiveLock",
    "UPDATE": "RowExclusiveLock",
    "DELETE": "RowExclusiveLock",
    "TRUNCATE": "AccessExclusiveLock",
    "ALTER": "AccessExclusiveLock",
    "DROP": "AccessExclusiveLock",
}
_LOCK = re.compile(
    r"LOCK\s+(?:TABLE\s+)?(?:ONLY\s+)?(.+?)(?:\s+IN\s+([A-Z ]+?)\s+MODE)?(\s+NOWAIT)?\s*$", re.IGNORECASE | re.DOTALL
)
_SLEEP = re.compile(r"\bpg_sleep\s*\(\s*([\d.]+)\s*\)", re.IGNORECASE)
_REFUSED: dict[str, tuple[str, str]] = {
    "DO": ("42501", "permission denied for language plpgsql"),
    "DECLARE": ("25P01", "DECLARE CURSOR can only be used in transaction blocks"),
    "FETCH": ("34000", 'cursor "{name}" does not exist'),
    "MERGE": ("42501", "permission denied for table {name}"),
    "CALL": ("42883", "procedure {name}() does not exist"),
}
"""Statements that fail here, with an error that a server gives for them: a right or an object is missing."""
_ACKNOWLEDGED = frozenset(
    ("VACUUM", "ANALYZE", "CHECKPOINT", "COMMENT", "REINDEX", "DISCARD", "CLUSTER", "LISTEN", "UNLISTEN", "NOTIFY")
)
_COPY = re.compile(r"COPY\s+(\(.*\)|[\w.\"]+)(?:\s*\([^)]*\))?\s+(TO|FROM)\s+(\S+)(.*)$", re.IGNORECASE | re.DOTALL)


class Execution:
    def __init__(self, server: PostgresServer, session: Session) -> None:
        self.server = server
        self.session = session
        self._text = ""
        """The statement as it came, for error messages."""

    @property
    def database(self) -> Database:
        return self.server.databases[self.session.database]

    async def run(self, text: str) -> Answer:
        """One statement; SqlError where it fails."""
        statement, self._text = text.rstrip().rstrip(";"), text
        session, clock = self.session, self.server.process.clock
        session.state, session.query, session.query_at, session.cancelled = "active", text, clock.now, False
        self.server.moved.notify()
        first = next(iter(words_of(statement, 1)), "")
        try:
            if session.failed and first not in ("ROLLBACK", "ABORT", "COMMIT", "END"):
                text = "current transaction is aborted, commands ignored until end of transaction block"
                raise SqlError("25P02", text)
            answer = await self._understood(first, statement)
            traffic_statements.executed(self.server, session, statement, clock.now - session.query_at)
            return answer
        except SqlError as error:
            if session.transaction_at is not None:
                session.failed = True
            if not session.ended:
                self.server.log(error.message.split("\n")[0], error.severity, session.pid)
            self.server.log(text, "STATEMENT", session.pid)
            raise
        finally:
            session.state, session.waiting, session.sleeping = "idle", None, False
            if session.transaction_at is None:
                self.server.locks.release(session)

    async def _understood(self, first: str, statement: str) -> Answer:
        """Run it; what cannot be taken apart is a syntax error."""
        try:
            return await self._dispatch(first, statement)
        except (IndexError, ValueError, KeyError):
            raise SqlError("42601", "syntax error at end of input") from None
        except TableError as error:
            raise translated_error(error, self._text) from None

    async def _dispatch(self, first: str, statement: str) -> Answer:
        if first in ("BEGIN", "START"):
            return self._begin()
        if re.match(r"ROLLBACK\s+(?:\w+\s+)?TO\b", statement, re.IGNORECASE):
            return self._savepoint(statement)
        if first in ("COMMIT", "END", "ROLLBACK", "ABORT"):
            return self._finish(first)
        if first in ("SET", "RESET"):
            return self._set(statement)
        if first == "SHOW":
            return self._show(statement)
        if first == "LOCK":
            return await self._lock(statement)
        if first == "EXPLAIN":
            return await self._explain(statement)
        if first == "COPY":
            return await self._copy(statement)
        if first in ("SAVEPOINT", "RELEASE"):
            return self._savepoint(statement)
        if first in ("PREPARE", "EXECUTE", "DEALLOCATE"):
            return await self._prepared(first, statement)
        if first in _REFUSED:
            state, text = _REFUSED[first]
            raise SqlError(state, text.format(name=statement.split()[-1]))
        if first in _ACKNOWLEDGED:
            return Answer(first)
        for pattern, command in ROLE_COMMANDS:
            found = re.match(pattern, statement, re.IGNORECASE | re.DOTALL)
            if found is not None:
                self._may_write()
                tag = command(self.server, self.session, found)
                self.server.changed()
                return Answer(tag)
        return await self._tables(first, statement)

    async def _explain(self, statement: str) -> Answer:
        inner, runs = explain.parsed(statement)
        places = [self._place(name) for name in tables_of(inner)]
        for schema, table in places:
            known = table in self.database.tables.tables("main" if schema == "public" else schema)
            if not known and table not in catalogs.NAMES:
                raise SqlError("42P01", f'relation "{table}" does not exist')
        rows: int | None = None
        started = self.server.process.clock.now
        if runs:
            answer = await self._tables(next(iter(words_of(inner, 1)), ""), inner)
            rows = len(answer.rows)
        seconds = self.server.process.clock.now - started
        return Answer(
            "EXPLAIN", ["QUERY PLAN"], [(line,) for line in explain.plan(self.database, inner, places, rows, seconds)]
        )

    async def _copy(self, statement: str) -> Answer:
        match = _COPY.match(statement)
        if match is None:
            raise SqlError("42601", "syntax error at end of input")
        source, direction, place, options = match.groups()
        if place.upper() not in ("STDOUT", "STDIN"):
            what = "reading: No such file or directory" if direction.upper() == "FROM" else "writing: Permission denied"
            hint = (
                "COPY FROM instructs the PostgreSQL server process to read a file."
                if direction.upper() == "FROM"
                else ""
            )
            raise SqlError("58P01", f"could not open file {place.replace(chr(39), chr(34))} for {what}", hint=hint)
        if direction.upper() == "FROM":
            return Answer("COPY 0")
        query = source[1:-1] if source.startswith("(") else f"SELECT * FROM {source}"
        answer = await self._tables("SELECT", query)
        is_csv = re.search(r"\bCSV\b", options, re.IGNORECASE) is not None
        glue, null = (",", "") if is_csv else ("\t", "\\N")
        lines = [glue.join(null if value is None else str(value) for value in row) for row in answer.rows]
        if re.search(r"\bHEADER\b", options, re.IGNORECASE):
            lines.insert(0, glue.join(answer.columns))
        return Answer(f"COPY {len(answer.rows)}", copied="".join(f"{line}\n" for line in lines))

    def _savepoint(self, statement: str) -> Answer:
        words = statement.split()
        word, name = words[0].upper(), words[-1].lower()
        session = self.session
        if session.transaction_at is None:
            raise SqlError(
                "25P01",
                f"{'ROLLBACK TO SAVEPOINT' if word == 'ROLLBACK' else word} can only be used in transaction blocks",
            )
        if word == "SAVEPOINT":
            tables = self.database.tables
            kept = [schema for schema in tables.schemas if schema not in COMPUTED]
            session.savepoints[name] = {schema: tables.saved(schema) for schema in kept}
            return Answer("SAVEPOINT")
        if name not in session.savepoints:
            raise SqlError("3B001", f'savepoint "{name}" does not exist')
        if word == "ROLLBACK":
            for schema, data in session.savepoints[name].items():
                self.database.tables.restore(schema, data)
            session.failed = False
        return Answer(word)

    async def _prepared(self, first: str, statement: str) -> Answer:
        session = self.session
        found = re.match(r"\w+\s+(\w+)\s*(?:\(([^)]*)\))?\s*(?:AS\s+(.*))?$", statement, re.IGNORECASE | re.DOTALL)
        if found is None:
            raise SqlError("42601", "syntax error at end of input")
        name, arguments, body = found.group(1).lower(), found.group(2) or "", found.group(3)
        if first == "PREPARE" and body:
            session.prepared[name] = body
            return Answer("PREPARE")
        if name not in session.prepared:
            raise SqlError("26000", f'prepared statement "{name}" does not exist')
        if first == "DEALLOCATE":
            del session.prepared[name]
            return Answer("DEALLOCATE")
        values = [value.strip() for value in arguments.split(",")]
        text = re.sub(r"\$(\d+)", lambda m: values[int(m.group(1)) - 1], session.prepared[name])
        return await self._dispatch(next(iter(words_of(text, 1)), ""), text)

    # --- transactions and settings -----------------------------------------------------------------------------

    def _begin(self) -> Answer:
        if self.session.transaction_at is not None:
            return Answer("BEGIN", notice="WARNING:  there is already a transaction in progress")
        self.session.transaction_at = self.server.process.clock.now
        return Answer("BEGIN")

    def _finish(self, word: str) -> Answer:
        session = self.session
        commits = word in ("COMMIT", "END") and not session.failed
        if session.transaction_at is None:
            return Answer("COMMIT" if commits else "ROLLBACK", notice="WARNING:  there is no transaction in progress")
        if commits:
            if session.before is not None:
                self.server.changed()
            session.before, session.transaction_at = None, None
            session.savepoints.clear()
        else:
            self.server.rollback(session)
        self.server.locks.release(session)
        return Answer("COMMIT" if commits else "ROLLBACK")

    def _set(self, statement: str) -> Answer:
        found = re.match(
            r"SET\s+(?:SESSION\s+|LOCAL\s+)?([\w.]+)\s*(?:=|TO)\s*(.+)$", statement, re.IGNORECASE | re.DOTALL
        )
        if found is not None:
            value = found.group(2).strip()
            self.session.settings[found.group(1).lower()] = literal(value) if value.startswith("'") else value
        return Answer("SET" if statement[:3].upper() == "SET" else "RESET")

    def _show(self, statement: str) -> Answer:
        name = statement.split()[1].lower() if len(statement.split()) > 1 else "all"
        known = {"server_version": self.server.version, "port": str(self.server.port), **self.server.settings}
        known = {
            "statement_timeout": "0",
            "lock_timeout": "0",
            "search_path": '"$user", public',
            **known,
            **self.session.settings,
        }
        if name == "all":
            return Answer("SHOW", ["name", "setting"], sorted(known.items()))
        if name not in known:
            raise SqlError("42704", f'unrecognized configuration parameter "{name}"')
        return Answer("SHOW", [name], [(known[name],)])

    # --- locks -------------------------------------------------------------------------------------------------

    async def _lock(self, statement: str) -> Answer:
        found = _LOCK.match(statement)
        if found is None:
            raise SqlError("42601", "syntax error at end of input")
        if self.session.transaction_at is None:
            raise SqlError("25P01", "LOCK TABLE can only be used in transaction blocks")
        mode = "".join(word.capitalize() for word in (found.group(2) or "ACCESS EXCLUSIVE").split()) + "Lock"
        for name in found.group(1).split(","):
            schema, table = self._place(unquoted_name(name.strip()))
            self._permit("LOCK", schema, table)
            await self._acquire(f"{schema}.{table}", mode, nowait=bool(found.group(3)))
        return Answer("LOCK TABLE")

    async def _acquire(self, table: str, mode: str, *, nowait: bool = False) -> None:
        session, locks, clock = self.session, self.server.locks, self.server.process.clock
        request = locks.request(session, f"{session.database}/{table}", mode)
        session.waiting = request
        if nowait and not request.granted:
            locks.withdraw(request)
            raise SqlError("55P03", f'could not obtain lock on relation "{table.partition(".")[2]}"')
        limits = [(self._milliseconds(name), name) for name in ("lock_timeout", "statement_timeout")]
        deadlines = [(clock.now + limit, name) for limit, name in limits if limit]
        while not request.granted:
            deadline, name = min(deadlines, default=(None, ""))
            remaining = None if deadline is None else max(0.0, deadline - clock.now)
            await self.server.moved.wait(remaining)
            self._heed(request)
            if not request.granted and deadline is not None and clock.now >= deadline:
                locks.withdraw(request)
                reason = "lock timeout" if name == "lock_timeout" else "statement timeout"
                raise SqlError("55P03" if name == "lock_timeout" else "57014", f"canceling statement due to {reason}")
        session.waiting = None

    def _heed(self, request: Any = None) -> None:
        """Raise where the session was terminated or its query cancelled."""
        session = self.session
        if request is not None and (session.ended or session.cancelled):
            self.server.locks.withdraw(request)
        if session.ended:
            raise SqlError("57P01", session.ended, severity="FATAL")
        if session.cancelled:
            raise SqlError("57014", "canceling statement due to user request")

    def _milliseconds(self, name: str) -> float:
        text = self.session.settings.get(name, self.server.settings.get(name, "0"))
        found = re.match(r"\s*(\d+)\s*(ms|s|min)?", text)
        units = {"ms": 0.001, None: 0.001, "s": 1.0, "min": 60.0}
        return 0.0 if found is None else int(found.group(1)) * units[found.group(2)]

    # --- tables ------------------------------------------------------------------------------------------------

    def _place(self, name: str) -> tuple[str, str]:
        """Schema and table of a name; unqualified ones are looked for along the search path."""
        schema, _, table = name.rpartition(".")
        if schema:
            return ("public" if schema == "main" else schema), table
        path = self.session.settings.get("search_path", "public").replace('"$user"', self.session.user)
        for part in [piece.strip().strip('"') for piece in path.split(",")]:
            if table in self.database.tables.tables("main" if part == "public" else part):
                return part, table
        return "public", table

    def _permit(self, word: str, schema: str, table: str) -> None:
        server, database = self.server, self.database
        if schema not in ("public", *database.tables.schemas):
            raise SqlError("3F000", f'schema "{schema}" does not exist')
        role = server.roles.get(self.session.user)
        if role is None or role.superuser or schema in COMPUTED:
            return
        names = server.names_of(role.name)
        if not database.privileges.allows(names, f"schema:{schema}", "USAGE"):
            raise SqlError("42501", f"permission denied for schema {schema}")
        if word == "CREATE":
            if not database.privileges.allows(names, f"schema:{schema}", "CREATE"):
                raise SqlError("42501", f"permission denied for schema {schema}")
            return
        if table not in database.tables.tables("main" if schema == "public" else schema):
            return
        owner = database.privileges.owners.get(f"{schema}.{table}", database.owner)
        if word in ("ALTER", "DROP") and owner not in names:
            raise SqlError("42501", f"must be owner of table {table}")
        privilege = _PRIVILEGES.get(word, "UPDATE" if word == "LOCK" else "SELECT")
        if owner not in names and not database.privileges.allows(names, f"{schema}.{table}", privilege):
            raise SqlError("42501", f"permission denied for table {table}")

    def _may_write(self) -> None:
        state = self.server.disk.look()
        if state == "full":
            hint = "Check free disk space."
            raise SqlError("53100", 'could not extend file "base/16384/16391": No space left on device', hint=hint)
        if state:
            raise SqlError("58030", 'could not open file "base/16384/16391": Read-only file system')

    async def _tables(self, first: str, statement: str) -> Answer:
        session, database = self.session, self.database
        named = tables_of(statement)
        for schema, table in [self._place(name) for name in named]:
            if table in catalogs.NAMES and (schema in ("public", *COMPUTED)):
                catalogs.refresh(self.server, database)
                continue
            self._permit(first, schema, table)
            if table in database.tables.tables("main" if schema == "public" else schema):
                mode = _LOCKS.get(first, "AccessShareLock")
                if first == "SELECT" and re.search(r"\bFOR\s+(?:UPDATE|SHARE)", statement, re.IGNORECASE):
                    mode = "RowShareLock"
                await self._acquire(f"{schema}.{table}", mode)
        await self._sleep(statement)
        catalogs.define_functions(self.server, database, session)
        writes = first not in ("SELECT", "TABLE", "VALUES", "WITH")
        if writes:
            self._may_write()
            if session.transaction_at is not None and session.before is None:
                kept = [schema for schema in database.tables.schemas if schema not in COMPUTED]
                session.before = {schema: database.tables.saved(schema) for schema in kept}
        rows = self._compute(_SLEEP.sub("''", statement))
        await self.server.process.spend(STATEMENT_COST + ROW_COST * len(rows.rows))
        if session.ended:
            raise SqlError("57P01", session.ended, severity="FATAL")
        if writes:
            self._owned(first, statement, named)
            if session.transaction_at is None:
                self.server.changed()
        return answer_of(first, statement, rows, self._booleans())

    def _compute(self, statement: str) -> Rows:
        text = translated(statement)
        if self.session.settings.get("search_path"):
            for name in tables_of(statement):
                schema, table = self._place(name)
                if "." not in name and schema != "public":
                    text = re.sub(rf"(?<![\w.\"]){re.escape(table)}(?![\w\"(])", f"{schema}.{table}", text, count=1)
        try:
            return self.database.tables.execute(text)
        except TableError as error:
            filled = self._with_columns(error, statement, text)
            if filled:
                return self._retried(filled)
            raise translated_error(error, self._text) from None

    def _retried(self, text: str) -> Rows:
        try:
            return self.database.tables.execute(text)
        except TableError as error:
            raise translated_error(error, self._text) from None

    def _with_columns(self, error: TableError, statement: str, text: str) -> str:
        """An INSERT that gives fewer values than there are columns means the first ones."""
        found = re.search(r"has (\d+) columns but (\d+) values were supplied", error.text)
        if found is None or int(found.group(2)) > int(found.group(1)):
            return ""
        schema, table = self._place(tables_of(statement)[0])
        columns = self.database.tables.columns("main" if schema == "public" else schema, table)
        names = ", ".join(f'"{column[0]}"' for column in columns[: int(found.group(2))])
        return re.sub(r"\bVALUES\b", f"({names}) VALUES", text, count=1, flags=re.IGNORECASE)

    async def _sleep(self, statement: str) -> None:
        found = _SLEEP.search(statement)
        if found is None:
            return
        self.session.sleeping = True
        clock = self.server.process.clock
        limit = self._milliseconds("statement_timeout")
        wanted = float(found.group(1))
        until = clock.now + (min(wanted, limit) if limit else wanted)
        while clock.now < until:
            await self.server.moved.wait(until - clock.now)
            self._heed()
        if limit and limit < wanted:
            raise SqlError("57014", "canceling statement due to statement timeout")

    def _owned(self, first: str, statement: str, named: list[str]) -> None:
        """Note who owns what a statement made, and forget what it dropped."""
        privileges = self.database.privileges
        words = words_of(statement)
        for name in named[:1]:
            schema, table = self._place(name)
            if first == "CREATE" and "TABLE" in words and f"{schema}.{table}" not in privileges.owners:
                privileges.created(f"{schema}.{table}", self.session.user)
            elif first == "DROP" and "TABLE" in words:
                privileges.forget(f"{schema}.{table}")

    def _booleans(self) -> frozenset[str]:
        tables = self.database.tables
        return catalogs.BOOLEANS | {
            column
            for schema in tables.schemas
            if schema not in COMPUTED
            for table in tables.tables(schema)
            for column, kind, *_ in tables.columns(schema, table)
            if kind.upper().startswith("BOOL")
        }


def unquoted_name(name: str) -> str:
    return ".".join(unquoted(part) for part in name.split("."))
