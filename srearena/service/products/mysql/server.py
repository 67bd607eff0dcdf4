"""A running MySQL (Percona, MariaDB, TiDB) server: databases, accounts, sessions, locks, and admission of traffic.

With a `folder` the databases are stored there and loaded at the next start; without one (TiDB, whose data is in TiKV)
they exist as long as the object.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from srearena.cluster.program_models import Change, Process, Timer, stamp, write_now
from srearena.cluster.program_models.datastores import (
    BulkStatements,
    Counted,
    DiskWatch,
    Login,
    Record,
    Refusal,
    RefusalKind,
    cut_down,
    occupied,
    pool_of,
)
from srearena.cluster.program_models.sql import Activity, LockTable, Request, TableError, Tables
from srearena.service.products.mysql import slow_log
from srearena.service.products.mysql.errors import MysqlError
from srearena.service.products.mysql.exporter import EXPORTER

FLUSH_SECONDS = 0.2
SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
_NEEDS = {"read": "SELECT", "write": "INSERT", "create": "CREATE"}
_MODES = {"read": "AccessShareLock", "write": "RowExclusiveLock", "create": "AccessExclusiveLock"}
_STATEMENTS = {"insert": "insert", "save": "insert", "update": "update", "delete": "delete", "remove": "delete"}
"""The statement of each verb of traffic; all others are queries."""


@dataclass(slots=True)
class Account:
    name: str
    host: str
    password: str
    granted: dict[str, set[str]] = field(default_factory=dict)
    """"*.*", "database.*" or "database.table" → privileges; "SUPER" for an administrator."""

    def may(self, privilege: str, database: str, table: str) -> bool:
        for place in ("*.*", f"{database}.*", f"{database}.{table}"):
            privileges = self.granted.get(place, set())
            if privilege in privileges or "ALL" in privileges:
                return True
        return False

    @property
    def superuser(self) -> bool:
        return bool({"ALL", "SUPER"} & self.granted.get("*.*", set()))

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> Account:
        granted = {place: set(privileges) for place, privileges in stored["granted"].items()}
        return cls(stored["name"], stored["host"], stored["password"], granted)

    def stored(self) -> dict[str, Any]:
        granted = {place: sorted(privileges) for place, privileges in self.granted.items()}
        return {"name": self.name, "host": self.host, "password": self.password, "granted": granted}


@dataclass(slots=True, eq=False)
class Session:
    number: int
    user: str
    host: str
    database: str
    started: float
    client: str = ""
    command: str = "Sleep"
    state: str = ""
    query: str = ""
    since: float = 0.0
    waiting: Request[Session] | None = None
    killed: bool = False
    target: str = ""
    account: Account | None = None
    variables: dict[str, str] = field(default_factory=dict)
    in_transaction: bool = False
    before: dict[str, bytes] | None = None
    affected: int = 0
    savepoints: dict[str, dict[str, bytes]] = field(default_factory=dict)


class MysqlServer(Counted):
    def __init__(
        self,
        process: Process,
        *,
        version: str,
        port: int,
        folder: str = "",
        product: str = "MySQL",
        daemon: str = "mysqld",
        shared: MysqlServer | None = None,
    ) -> None:
        """`shared` is another server on the same data (TiDB servers on one TiKV cluster)."""
        self.process = process
        self.version = version
        self.port = port
        self.folder = folder
        # TiDB uses the same protocol, but stores its data elsewhere and has its own metrics.
        self.exporter = EXPORTER if folder else None
        self.product = product
        self.daemon = daemon
        self.epoch = 0
        self.accounts: list[Account] = [] if shared is None else shared.accounts
        self.sessions: dict[int, Session] = {}
        self.tables: Tables = Tables(process.container.host.random, self.time_text) if shared is None else shared.tables
        self.variables: dict[str, str] = {
            "max_connections": "151",
            "wait_timeout": "28800",
            "lock_wait_timeout": "31536000",
            "innodb_lock_wait_timeout": "50",
            "version": version,
            "version_comment": f"{product} Community Server - GPL",
            "port": str(port),
            "datadir": f"{folder}/",
            "read_only": "OFF",
            "innodb_buffer_pool_size": "134217728",
            "character_set_server": "utf8mb4",
            "sql_mode": "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES",
            "performance_schema": "ON",
            "slow_query_log": "OFF",
            "slow_query_log_file": f"{folder}/{process.container.host.hostname}-slow.log",
            "long_query_time": "10.000000",
            "log_output": "FILE",
            "general_log": "OFF",
            "max_execution_time": "0",
        }
        self.changes = 0
        """Changes of data and accounts since the start, as the position in a binary log."""
        self.questions = 0
        self.commands: dict[str, int] = dict.fromkeys(("delete", "insert", "select", "update"), 0)
        """Statements by their first word, as the status variables Com_... count them."""
        self.activity = Activity()
        self.slow_entries: list[slow_log.SlowStatement] = []
        """The newest slow statements, oldest first."""
        self.slow_statements = 0
        self.own_tables: Mapping[str, Mapping[str, Any]] = {}
        """Further system tables of a product, by schema."""
        self.connected = 0
        self.most = 0
        self._family: list[MysqlServer] = [] if shared is None else shared._family
        """All servers on this data, this one included."""
        self._family.append(self)
        self.locks: LockTable[Session] = LockTable(self._moved) if shared is None else shared.locks
        self.moved = Change(process.clock)
        self.base_memory = process.memory
        self._flush: Timer | None = None
        self.disk = DiskWatch(process, folder, self._moved) if folder else None

    def count_traffic(self, operation: str, database: str, target: str, calls: int, hits: int, misses: int) -> None:
        self.count_statement(_STATEMENTS.get(operation, "select"), calls)

    def report_statements(self, statements: Sequence[BulkStatements]) -> None:
        slow_log.report(self, statements)

    def resize_pool(self, client: str, size: int) -> None:
        """Let a client that is connected have so many connections, as far as they are allowed."""
        pool = pool_of(self.sessions.values(), client)
        if not pool or len(pool) == size:
            return
        first = pool[0]
        login = Login(first.user, first.account.password if first.account else "", first.database)
        for _ in range(cut_down(self.sessions.values(), client, size, self.close)):
            if self.admits(login, first.host) is not None:
                return
            self.open(login, first.host, client)

    def count_statement(self, word: str, statements: int = 1) -> None:
        self.questions += statements
        if word in self.commands:
            self.commands[word] += statements

    def _moved(self) -> None:
        for server in self._family:
            server.epoch += 1
            server.moved.notify()

    def time_text(self, moment: float | None = None) -> str:
        at = datetime.fromtimestamp(self.process.clock.now if moment is None else moment, UTC)
        return at.strftime("%Y-%m-%d %H:%M:%S")

    def note(self, text: str, level: str = "Note", number: int = 0) -> None:
        when = stamp(self.process, "%Y-%m-%dT%H:%M:%S.%fZ")
        write_now(self.process, f"{when} {number} [{level}] {text}\n", 2)

    # --- contents ----------------------------------------------------------------------------------------------

    @property
    def databases(self) -> list[str]:
        return sorted(schema for schema in self.tables.schemas if schema not in ("main", *SYSTEM))

    def create_database(self, name: str) -> None:
        try:
            self.tables.add_schema(name)
        except TableError as error:
            # The limit of schemas, as a server whose data directory takes no more.
            raise MysqlError(1006, "HY000", f"Can't create database '{name}' (errno: 28)") from error

    def changed(self) -> None:
        self._moved()
        self._save_soon()

    def _save_soon(self) -> None:
        self.changes += 1
        if self._flush is None and self.folder:
            self._flush = self.process.clock.after(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        self._flush = None
        if self.process.done.is_set or not self.folder:
            return
        total = 0
        files = self.process.files
        try:
            for name in self.databases:
                data = self.tables.saved(name)
                total += len(data)
                files.mkdir(f"{self.folder}/{name}", 0o750, parents=True)
                files.write_bytes(f"{self.folder}/{name}/{name}.ibd", data)
            for name in files.listdir(self.folder):
                if files.is_file(f"{self.folder}/{name}/{name}.ibd") and name not in self.databases:
                    files.unlink(f"{self.folder}/{name}/{name}.ibd")
            files.mkdir(f"{self.folder}/mysql", 0o750, parents=True)
            accounts = [account.stored() for account in self.accounts]
            files.write_bytes(f"{self.folder}/mysql/user.json", json.dumps(accounts).encode())
        except OSError as error:
            text = f"[MY-012814] [InnoDB] Write to file ./ib_logfile0 failed at offset 4096. {error.strerror}"
            self.note(text, "ERROR")
            return
        self.process.set_memory(self.base_memory + total)

    def load(self) -> bool:
        """Load the stored databases and accounts; False where there are none."""
        files = self.process.files
        path = f"{self.folder}/mysql/user.json"
        if not files.is_file(path):
            return False
        self.accounts += [Account.from_stored(stored) for stored in json.loads(files.read_bytes(path))]
        for name in sorted(files.listdir(self.folder)):
            data = f"{self.folder}/{name}/{name}.ibd"
            if files.is_file(data):
                self.tables.restore(name, files.read_bytes(data))
        return True

    def dump(self) -> dict[str, Any]:
        """Databases and accounts, for a replica."""
        databases = {name: b64encode(self.tables.saved(name)).decode() for name in self.databases}
        return {"databases": databases, "accounts": [account.stored() for account in self.accounts]}

    def apply_dump(self, dump: dict[str, Any]) -> None:
        """Become a copy of another server."""
        for name in set(self.databases) - dump["databases"].keys():
            self.tables.drop_schema(name)
        for name, data in dump["databases"].items():
            self.tables.restore(name, b64decode(data))
        self.accounts[:] = [Account.from_stored(stored) for stored in dump["accounts"]]
        self.changed()

    # --- sessions ----------------------------------------------------------------------------------------------

    def account_of(self, user: str, host: str) -> Account | None:
        """The account of a user from that host; an exact host takes precedence over a pattern."""
        local = host in ("localhost", "127.0.0.1")
        ranked = [
            (0 if account.host == host else 1, account)
            for account in self.accounts
            if account.name == user
            and (account.host in ("%", host) or (local and account.host in ("localhost", "127.0.0.1")))
        ]
        return min(ranked, key=lambda pair: pair[0])[1] if ranked else None

    def admits(self, login: Login, host: str) -> MysqlError | None:
        account = self.account_of(login.user, host)
        if len(self.sessions) >= int(self.variables["max_connections"]) + (1 if account and account.superuser else 0):
            return MysqlError(1040, "HY000", "Too many connections")
        if account is None or account.password != login.password:
            using = "YES" if login.password else "NO"
            return MysqlError(
                1045, "28000", f"Access denied for user '{login.user}'@'{host}' (using password: {using})"
            )
        if login.database and login.database not in (*self.databases, *SYSTEM):
            return MysqlError(1049, "42000", f"Unknown database '{login.database}'")
        return None

    def open(self, login: Login, host: str, client: str = "") -> Session:
        self.connected += 1
        now = self.process.clock.now
        session = Session(self.connected + 7, login.user, host, login.database, now, client, since=now)
        session.account = self.account_of(login.user, host)
        self.sessions[session.number] = session
        self.most = max(self.most, len(self.sessions))
        return session

    def close(self, session: Session) -> None:
        if self.sessions.pop(session.number, None) is not None:
            self.epoch += len(self.sessions) >= int(self.variables["max_connections"]) - 1
            self.rollback(session)
            self.locks.release(session)

    def rollback(self, session: Session) -> None:
        if session.before is not None:
            for schema, data in session.before.items():
                self.tables.restore(schema, data)
            session.before = None
            self.changed()
        session.in_transaction = False

    def kill(self, number: int) -> bool:
        session = self.sessions.get(number)
        if session is None:
            return False
        session.killed = True
        if session.client:
            self.close(session)
        else:
            self.locks.release(session)
        self._moved()
        return True

    # --- traffic -----------------------------------------------------------------------------------------------

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None:
        """Check whether a client may perform an action; `target` may name columns: `contacts(document_num)`."""
        if self.process.done.is_set:
            return Refusal("closed", "Communications link failure")
        who = login if login is not None else Login("root")
        if action == "connect":
            error = self.admits(who, "10.0.0.1")
            kinds: dict[int, RefusalKind] = {1040: "busy", 1049: "missing"}
            return None if error is None else Refusal(kinds.get(error.number, "auth"), error.message)
        name, _, rest = target.partition("(")
        database, _, table = name.rpartition(".")
        database = database or who.database
        account = self.account_of(who.user, "10.0.0.1")
        if account is None or not account.may(_NEEDS.get(action, "SELECT"), database, table):
            command = _NEEDS.get(action, "SELECT")
            text = f"{command} command denied to user '{who.user}'@'10.0.0.1' for table '{table}'"
            return Refusal("permission", text)
        missing = self._missing(action, database, table, rest)
        if missing is not None:
            return missing
        if self.locks.waits(f"{database}.{table}", _MODES.get(action, "AccessShareLock")):
            return Refusal("locked", "Lock wait timeout exceeded; try restarting transaction")
        return None if action == "read" else self._disk_refuses()

    def _missing(self, action: str, database: str, table: str, columns: str) -> Refusal | None:
        if action == "create":
            known = database in self.databases
            return None if known else Refusal("missing", f"Unknown database '{database}'")
        if table not in self.tables.tables(database):
            return Refusal("missing", f"Table '{database}.{table}' doesn't exist")
        have = {column[0].lower() for column in self.tables.columns(database, table)}
        for column in re.findall(r"\w+", columns):
            if column.lower() not in have:
                return Refusal("missing", f"Unknown column '{column}' in 'field list'")
        return None

    def _disk_refuses(self) -> Refusal | None:
        state = self.disk.look() if self.disk is not None else ""
        if self.variables["read_only"] == "ON" or state == "readonly":
            text = "The MySQL server is running with the --read-only option so it cannot execute this statement"
            return Refusal("readonly", text)
        return Refusal("full", "The table is full") if state == "full" else None

    def put(self, database: str, target: str, records: Sequence[Record]) -> Refusal | None:
        refusal = self._disk_refuses()
        if refusal is not None:
            return refusal
        try:
            if self.tables.insert(database, target, records):
                self._moved()
        except TableError as error:
            return Refusal("missing", error.text)
        self._save_soon()
        return None

    def remove(self, database: str, target: str, column: str, value: object) -> Refusal | None:
        """Remove the records with this value in a column."""
        refusal = self._disk_refuses()
        if refusal is not None:
            return refusal
        try:
            self.tables.delete(database, target, column, value)
        except TableError as error:
            return Refusal("missing", error.text)
        self._save_soon()
        return None

    def count(self, database: str, target: str) -> int:
        return self.tables.count(database, target)

    def attach(self, client: str, login: Login | None, sessions: int, address: str = "") -> Refusal | None:
        who = login if login is not None else Login("root")
        for _ in range(cut_down(self.sessions.values(), client, sessions, self.close)):
            refusal = self.refuses(who, "connect", "")
            if refusal is not None:
                if refusal.kind == "auth":
                    self.note(f"[MY-010926] [Server] {refusal.message}", "Note", self.connected + 8)
                return refusal
            self.open(who, address or "10.0.0.1", client)
        return None

    def attached(self, client: str) -> int:
        return len(pool_of(self.sessions.values(), client))

    def occupy(self, client: str, sessions: int, statement: str, target: str) -> None:
        """Set how many of a pool's connections execute a statement, as the process list shows."""
        for session, busy in occupied(self.sessions.values(), client, sessions, target):
            if busy and session.command != "Query":
                session.since = self.process.clock.now
            session.command, session.query = ("Query", statement) if busy else ("Sleep", "")
