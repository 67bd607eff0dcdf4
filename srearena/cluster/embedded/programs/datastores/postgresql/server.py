"""A running PostgreSQL server: its databases, roles, sessions and locks, and what traffic may do.

Statements of sessions are run in `execution`; this is the state they change. What is committed is on disk a moment
later, and is found there by the next start.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from srearena.cluster.embedded.clock import Timer
from srearena.cluster.embedded.machine.files.streams import Change
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.connection_pools import cut_down, occupied, pool_of
from srearena.cluster.embedded.programs.datastores.datastore import (
    BulkStatements,
    Counted,
    Login,
    Record,
    Refusal,
)
from srearena.cluster.embedded.programs.datastores.disk_watch import DiskWatch
from srearena.cluster.embedded.programs.datastores.postgresql import traffic_statements
from srearena.cluster.embedded.programs.datastores.postgresql.errors import SqlError
from srearena.cluster.embedded.programs.datastores.postgresql.exporter import EXPORTER
from srearena.cluster.embedded.programs.datastores.postgresql.roles import Privileges, Role
from srearena.cluster.embedded.programs.datastores.sql.engine import TableError, Tables
from srearena.cluster.embedded.programs.datastores.sql.locks import LockTable, Request
from srearena.cluster.embedded.programs.datastores.statement_activity import Activity
from srearena.cluster.embedded.programs.log_lines import write_now
from srearena.cluster.embedded.programs.timestamps import stamp

FLUSH_SECONDS = 0.2
COMPUTED = ("pg_catalog", "information_schema")
_COUNTERS = {"insert": "n_tup_ins", "update": "n_tup_upd", "upsert": "n_tup_ins", "delete": "n_tup_del"}
"""What a verb of traffic counts as, per row; all others read one."""
_NEEDS = {"read": "SELECT", "write": "INSERT", "create": "CREATE"}
_MODES = {"read": "AccessShareLock", "write": "RowExclusiveLock", "create": "AccessExclusiveLock"}


@dataclass(slots=True, eq=False)
class Session:
    pid: int
    user: str
    database: str
    address: str
    application: str
    started: float
    client: str = ""
    """The pool it belongs to, for those of traffic."""
    state: str = "idle"
    query: str = ""
    query_at: float = 0.0
    transaction_at: float | None = None
    failed: bool = False
    waiting: Request[Session] | None = None
    sleeping: bool = False
    ended: str = ""
    """Why it must end: the message it dies with."""
    cancelled: bool = False
    target: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    before: dict[str, bytes] | None = None
    """The database as it was before the open transaction first wrote."""
    savepoints: dict[str, dict[str, bytes]] = field(default_factory=dict)
    prepared: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Database:
    name: str
    owner: str
    tables: Tables
    privileges: Privileges
    commits: int = 0
    """Transactions of applications: each of their statements is one."""
    table_counts: dict[str, dict[str, int]] = field(default_factory=dict)
    """Per `schema.table`: rows that applications read, inserted, updated and deleted, and their scans."""

    def count(self, table: str, what: str, rows: int) -> None:
        counts = self.table_counts.setdefault(table, {})
        counts[what] = counts.get(what, 0) + rows


class PostgresServer(Counted):
    exporter = EXPORTER

    def __init__(self, process: Process, *, folder: str, version: str, port: int) -> None:
        self.process = process
        self.folder = folder
        self.version = version
        self.port = port
        self.epoch = 0
        self.roles: dict[str, Role] = {}
        self.databases: dict[str, Database] = {}
        self.sessions: dict[int, Session] = {}
        self.settings: dict[str, str] = {
            "max_connections": "100",
            "shared_buffers": "128MB",
            "log_min_duration_statement": "-1",
            "log_lock_waits": "off",
            "deadlock_timeout": "1s",
            "shared_preload_libraries": "",
            "work_mem": "4MB",
            "track_activities": "on",
        }
        self.activity = Activity()
        self.locks: LockTable[Session] = LockTable(self._moved)
        self.moved = Change(process.clock)
        """Notified whenever locks or sessions change."""
        self.rules: list[tuple[str, ...]] = []
        """Lines of pg_hba.conf: type, database, user, address, method."""
        self.base_memory = process.memory
        self._next_pid = process.pid + 60
        self._flush: Timer | None = None
        self.disk = DiskWatch(process, folder, self._moved)

    def _moved(self) -> None:
        self.epoch += 1
        self.moved.notify()

    def time_text(self, moment: float | None = None) -> str:
        at = datetime.fromtimestamp(self.process.clock.now if moment is None else moment, UTC)
        return at.strftime("%Y-%m-%d %H:%M:%S.%f+00")

    def log(self, text: str, level: str = "LOG", pid: int | None = None) -> None:
        when = stamp(self.process, "%Y-%m-%d %H:%M:%S.%L")
        write_now(self.process, f"{when} UTC [{self.process.pid if pid is None else pid}] {level}:  {text}\n", 2)

    # --- databases ---------------------------------------------------------------------------------------------

    def add_database(self, name: str, owner: str) -> Database:
        tables = Tables(self.process.container.host.random, self.time_text)
        for schema in COMPUTED:
            tables.add_schema(schema)
        new_database = Database(name, owner, tables, Privileges())
        new_database.privileges.owners["schema:public"] = owner
        new_database.privileges.grant("schema:public", "public", {"USAGE"})
        self.databases[name] = new_database
        return new_database

    def changed(self) -> None:
        """Something that is kept on disk is different now."""
        self._moved()
        self._save_soon()

    def _save_soon(self) -> None:
        if self._flush is None:
            self._flush = self.process.clock.after(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        self._flush = None
        if self.process.done.is_set:
            return
        total = 0
        try:
            for name, database in self.databases.items():
                place = f"{self.folder}/base/{name}"
                self.process.files.mkdir(place, 0o700, parents=True)
                for schema in database.tables.schemas:
                    if schema not in COMPUTED:
                        data = database.tables.saved(schema)
                        total += len(data)
                        self.process.files.write_bytes(f"{place}/{schema}.db", data)
            self.process.files.write_bytes(f"{self.folder}/global/pg_control.json", self._control())
        except OSError as error:
            self.log(f'could not write to file "pg_wal/xlogtemp.{self.process.pid}": {error.strerror}', "PANIC")
            self.process.end(1)
            return
        self.process.set_memory(self.base_memory + total)

    def _control(self) -> bytes:
        data = {
            "roles": [role.stored() for role in self.roles.values()],
            "databases": [
                {"name": each.name, "owner": each.owner, "privileges": each.privileges.stored()}
                for each in self.databases.values()
            ],
            "settings": self.settings,
        }
        return json.dumps(data).encode()

    def load(self) -> None:
        """What the last server left in the directory; OSError, ValueError where that cannot be read."""
        data: dict[str, Any] = json.loads(self.process.files.read_bytes(f"{self.folder}/global/pg_control.json"))
        self.roles = {role["name"]: Role(**role) for role in data["roles"]}
        self.settings.update(data["settings"])
        for stored in data["databases"]:
            database = self.add_database(stored["name"], stored["owner"])
            database.privileges = Privileges.restored(stored["privileges"])
            place = f"{self.folder}/base/{stored['name']}"
            for name in sorted(self.process.files.listdir(place)) if self.process.files.is_dir(place) else []:
                if name.endswith(".db"):
                    database.tables.restore(name.removesuffix(".db"), self.process.files.read_bytes(f"{place}/{name}"))

    # --- sessions ----------------------------------------------------------------------------------------------

    def method_for(self, login: Login, address: str) -> str:
        """The authentication method of pg_hba.conf for a client; "" where no line matches."""
        for kind, database, user, source, method in self.rules:
            if kind == "local" and address:
                continue
            if kind != "local" and not address:
                continue
            if database not in ("all", login.database) or user not in ("all", login.user):
                continue
            here = address.startswith("127.")
            if kind == "local" or source == "all" or (here and source.startswith("127.0.0.1")) or source == "0.0.0.0/0":
                return method
        return ""

    def admits(self, login: Login, address: str) -> SqlError | None:
        """None where the login may have a session."""
        method = self.method_for(login, address)
        role = self.roles.get(login.user)
        if not method:
            text = f'no pg_hba.conf entry for host "{address}", user "{login.user}", database "{login.database}", '
            text += "no encryption"
            return SqlError("28000", text, severity="FATAL")
        if method != "trust" and (role is None or not role.password or role.password != login.password):
            why = (
                f'Role "{login.user}" does not exist.'
                if role is None
                else f'Connection matched file "{self.folder}/pg_hba.conf" line 128: "host all all all {method}"'
            )
            return SqlError(
                "28P01", f'password authentication failed for user "{login.user}"', severity="FATAL", detail=why
            )
        if role is None:
            return SqlError("28000", f'role "{login.user}" does not exist', severity="FATAL")
        if not role.login:
            return SqlError("28000", f'role "{login.user}" is not permitted to log in', severity="FATAL")
        if login.database not in self.databases:
            return SqlError("3D000", f'database "{login.database}" does not exist', severity="FATAL")
        if len(self.sessions) >= int(self.settings["max_connections"]) - (0 if role.superuser else 3):
            text = "sorry, too many clients already"
            if len(self.sessions) < int(self.settings["max_connections"]):
                text = "remaining connection slots are reserved for roles with the SUPERUSER attribute"
            return SqlError("53300", text, severity="FATAL")
        return None

    def open(self, login: Login, address: str, application: str, client: str = "") -> Session:
        self._next_pid += 1
        session = Session(
            self._next_pid, login.user, login.database, address, application, self.process.clock.now, client
        )
        self.sessions[session.pid] = session
        self.moved.notify()
        return session

    def close(self, session: Session) -> None:
        if self.sessions.pop(session.pid, None) is not None:
            self.epoch += len(self.sessions) >= int(self.settings["max_connections"]) - 4
            self.rollback(session)
            self.locks.release(session)
            self.moved.notify()

    def rollback(self, session: Session) -> None:
        if session.before is not None:
            database = self.databases.get(session.database)
            if database is not None:
                for schema in [s for s in database.tables.schemas if s not in COMPUTED and s not in session.before]:
                    database.tables.drop_schema(schema)
                for schema, data in session.before.items():
                    database.tables.restore(schema, data)
            session.before = None
            self.changed()
        session.transaction_at, session.failed = None, False

    def terminate(self, pid: int) -> bool:
        session = self.sessions.get(pid)
        if session is None:
            return False
        session.ended = "terminating connection due to administrator command"
        self.log(session.ended, "FATAL", pid)
        if session.client:
            self.close(session)
        else:
            self.locks.release(session)
        self._moved()
        return True

    def names_of(self, role: str) -> list[str]:
        """A role, all it is a member of, and public."""
        found: list[str] = []
        pending = [role]
        while pending:
            name = pending.pop()
            if name not in found:
                found.append(name)
                pending.extend(self.roles[name].member_of if name in self.roles else [])
        return [*found, "public"]

    # --- traffic -----------------------------------------------------------------------------------------------

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None:
        """`target` may name columns too: `catalog.products(id, name)`."""
        if self.process.done.is_set:
            return Refusal("closed", "connection refused")
        who = login if login is not None else Login("postgres", "", "postgres")
        if action == "connect":
            return self._identity(who)
        database = self.databases.get(who.database)
        if database is None or who.user not in self.roles:
            return self._identity(who)
        target, _, columns = target.partition("(")
        schema, _, table = target.rpartition(".")
        schema = schema or "public"
        role = self.roles[who.user]
        names = self.names_of(who.user)
        if action != "create" and table not in database.tables.tables("main" if schema == "public" else schema):
            return Refusal("missing", f'ERROR: relation "{target}" does not exist (SQLSTATE 42P01)')
        have = {
            column[0].lower() for column in database.tables.columns("main" if schema == "public" else schema, table)
        }
        for column in re.findall(r"\w+", columns):
            if column.lower() not in have:
                return Refusal("missing", f'ERROR: column "{column}" does not exist (SQLSTATE 42703)')
        if not role.superuser and not database.privileges.allows(names, f"schema:{schema}", "USAGE"):
            return Refusal("permission", f"ERROR: permission denied for schema {schema} (SQLSTATE 42501)")
        thing = f"schema:{schema}" if action == "create" else f"{schema}.{table}"
        if not role.superuser and not database.privileges.allows(names, thing, _NEEDS.get(action, "SELECT")):
            return Refusal("permission", f"ERROR: permission denied for table {table} (SQLSTATE 42501)")
        if self.locks.waits(f"{who.database}/{schema}.{table}", _MODES.get(action, "AccessShareLock")):
            return Refusal("locked", "ERROR: canceling statement due to user request (SQLSTATE 57014)")
        return None if action == "read" else self._disk_refuses()

    def _identity(self, login: Login) -> Refusal | None:
        error = self.admits(login, "10.0.0.1")
        if error is None:
            return None
        kinds = {"28P01": "auth", "28000": "auth", "3D000": "missing", "53300": "busy"}
        kind = kinds.get(error.state, "auth")
        message = f"FATAL: {error.message} (SQLSTATE {error.state})"
        return Refusal("auth" if kind == "auth" else "missing" if kind == "missing" else "busy", message)

    def _disk_refuses(self) -> Refusal | None:
        state = self.disk.look()
        if state == "full":
            return Refusal(
                "full", 'ERROR: could not extend file "base/16384/16391": No space left on device (SQLSTATE 53100)'
            )
        if state:
            return Refusal(
                "readonly", 'ERROR: could not open file "base/16384/16391": Read-only file system (SQLSTATE 58030)'
            )
        return None

    def count_traffic(self, operation: str, database: str, target: str, calls: int, hits: int, misses: int) -> None:
        found = self.databases.get(database)
        if found is None:
            return
        found.commits += calls
        table = target.partition("(")[0]
        table = table if "." in table else f"public.{table}"
        found.count(table, _COUNTERS.get(operation, "idx_tup_fetch"), calls)
        if operation == "select":
            found.count(table, "idx_scan", calls)

    def report_statements(self, statements: Sequence[BulkStatements]) -> None:
        traffic_statements.report(self, statements)

    def resize_pool(self, client: str, size: int) -> None:
        """Let a client that is connected have so many connections, as far as they are allowed."""
        pool = pool_of(self.sessions.values(), client)
        if not pool or len(pool) == size:
            return
        first = pool[0]
        role = self.roles.get(first.user)
        login = Login(first.user, role.password or "" if role is not None else "", first.database)
        for _ in range(cut_down(self.sessions.values(), client, size, self.close)):
            if self.admits(login, first.address) is not None:
                return
            self.open(login, first.address, first.application, client)

    def put(self, database: str, target: str, records: Sequence[Record]) -> Refusal | None:
        refusal = self._disk_refuses()
        if refusal is not None:
            return refusal
        found = self.databases.get(database)
        if found is None:
            return Refusal("missing", f'FATAL: database "{database}" does not exist (SQLSTATE 3D000)')
        schema, _, table = target.rpartition(".")
        place = "main" if schema in ("", "public") else schema
        try:
            if found.tables.insert(place, table, records):
                found.privileges.created(f"{schema or 'public'}.{table}", found.owner)
                self._moved()
        except TableError as error:
            return Refusal("missing", f"ERROR: {error.text}")
        self._save_soon()
        return None

    def count(self, database: str, target: str) -> int:
        found = self.databases.get(database)
        schema, _, table = target.rpartition(".")
        return 0 if found is None else found.tables.count("main" if schema in ("", "public") else schema, table)

    def attach(self, client: str, login: Login | None, sessions: int, address: str = "") -> Refusal | None:
        who = login if login is not None else Login("postgres", "", "postgres")
        for _ in range(cut_down(self.sessions.values(), client, sessions, self.close)):
            refusal = self._identity(who)
            if refusal is not None:
                error = self.admits(who, "10.0.0.1")
                if error is not None:
                    self.log(error.message, "FATAL", self._next_pid)
                    if error.detail:
                        self.log(error.detail, "DETAIL", self._next_pid)
                return refusal
            self.open(who, address or "10.0.0.1", "", client)
        return None

    def attached(self, client: str) -> int:
        return len(pool_of(self.sessions.values(), client))

    def occupy(self, client: str, sessions: int, statement: str, target: str) -> None:
        """So many of a pool's connections are busy with a statement now; operators see them, waiting or running."""
        for session, busy in occupied(self.sessions.values(), client, sessions, target):
            if busy and session.state != "active":
                session.query_at = self.process.clock.now
            session.state = "active" if busy else "idle"
            session.query = statement if busy or not session.query else session.query
