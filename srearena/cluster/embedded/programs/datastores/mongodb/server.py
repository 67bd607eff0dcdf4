"""A running mongod: who is connected, what is stored, and what traffic may do.

Commands of shells are in `commands`; this is the state they change. A change is on disk a tenth of a second later
(the journal's interval); a disk that cannot take it ends the server, as WiredTiger does.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from dataclasses import dataclass

from srearena.cluster.embedded.clock import Timer
from srearena.cluster.embedded.machine.files.streams import os_error
from srearena.cluster.embedded.machine.networking.interface_counters import Exchange
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.connection_pools import cut_down, pool_of
from srearena.cluster.embedded.programs.datastores.datastore import (
    BulkStatements,
    Counted,
    Login,
    Record,
    Refusal,
)
from srearena.cluster.embedded.programs.datastores.disk_watch import DiskWatch
from srearena.cluster.embedded.programs.datastores.mongodb import operations, storage
from srearena.cluster.embedded.programs.datastores.mongodb.access import User
from srearena.cluster.embedded.programs.datastores.mongodb.documents import Document
from srearena.cluster.embedded.programs.datastores.mongodb.exporter import EXPORTER, MAX_INCOMING
from srearena.cluster.embedded.programs.datastores.mongodb.journal import Journal
from srearena.cluster.embedded.programs.datastores.mongodb.values import Moment, ObjectId, legacy, packed
from srearena.cluster.embedded.programs.datastores.statement_activity import Activity

JOURNAL_SECONDS = 0.1
SAMPLE_SECONDS = 300.0
HEARTBEAT_SECONDS = 10.0
"""heartbeatFrequencyMS of the drivers, by default."""
HEARTBEAT = Exchange(334.0, 2.0, 560.0, 2.0)
"""`hello` and its answer over a kept connection."""
ABRUPT = 14
"""The exit code of a failed assertion."""
_COUNTERS = {
    "find": "query",
    "insert": "insert",
    "update": "update",
    "upsert": "update",
    "delete": "delete",
    "remove": "delete",
    "getmore": "getmore",
}
"""The operation counter of each verb of traffic; all others are commands."""
_ACTIONS = {"read": "find", "write": "insert", "create": "createIndexes"}


@dataclass(slots=True, eq=False)
class Session:
    """One connection, or one of a pool's."""

    number: int
    remote: str
    client: str = ""
    user: tuple[str, str] | None = None
    """Database and name of the user it authenticated as."""

    @property
    def context(self) -> str:
        return f"conn{self.number}"


class MongoServer(Counted):
    exporter = EXPORTER

    def __init__(
        self,
        process: Process,
        contents: storage.Contents,
        *,
        version: str,
        folder: str,
        port: int,
        auth: bool,
        tls: str = "disabled",
    ) -> None:
        self.process = process
        self.contents = contents
        self.version = version
        self.folder = folder
        self.port = port
        self.auth = auth
        self.tls = tls
        self.epoch = 0
        self.journal = Journal(process)
        self.sessions: dict[int, Session] = {}
        self.operations = dict.fromkeys(("insert", "query", "update", "delete", "getmore", "command"), 0)
        self._monitored = 0.0
        self._monitors = 0
        self._monitored_since = 0.0
        carried, clock = process.container.namespace.carried, process.clock
        process.done.then(lambda: carried.set_steady(self, None, clock.now))
        self.activity = Activity()
        self.slow_milliseconds = 100
        """slowms: operations that take longer are logged."""
        self.profile_levels: dict[str, int] = {}
        """By database; at 1 and 2 slow operations are kept in system.profile."""
        self.connected = 0
        """Connections ever made."""
        self.base_memory = process.memory
        self._objects = 0
        self._flush: Timer | None = None
        self._later: Timer | None = None
        self.disk = DiskWatch(process, folder, self._disk_changed)

    def _disk_changed(self) -> None:
        self.epoch += 1
        if self.disk.state == "failing":
            self._panic(os_error(errno.EIO))

    # --- contents ----------------------------------------------------------------------------------------------

    def collection(self, database: str, name: str) -> list[Document]:
        """Its documents; an empty list that is not kept where there is none."""
        return self.contents.databases.get(database, {}).get(name, [])

    def make_collection(self, database: str, name: str) -> list[Document]:
        return self.contents.databases.setdefault(database, {}).setdefault(name, [])

    def number_of(self, database: str, name: str) -> int:
        """How many documents a collection has: those that are kept, and those of bulk traffic."""
        self.settle()
        return len(self.collection(database, name)) + max(0, self.contents.bulk.get(f"{database}.{name}", 0))

    def forget_bulk(self, database: str, name: str = "") -> int:
        """Drop the counted documents of a collection, or of a database; how many there were."""
        self.settle()
        place = f"{database}.{name}"
        gone = [key for key in self.contents.bulk if key == place or (not name and key.startswith(place))]
        return sum(max(0, self.contents.bulk.pop(key)) for key in gone)

    def new_id(self) -> ObjectId:
        self._objects += 1
        machine = sum(ord(letter) * 31**index for index, letter in enumerate(self.process.container.host.hostname))
        return ObjectId(f"{int(self.process.clock.now):08x}{machine % 16**10:010x}{self._objects % 16**6:06x}")

    def moment(self) -> Moment:
        return Moment(self.process.clock.now)

    def number_of_kept(self, database: str, name: str) -> int:
        return len(self.collection(database, name))

    def size_of(self, database: str) -> int:
        return sum(self.size_of_collection(database, name) for name in self.contents.databases.get(database, {}))

    def size_of_collection(self, database: str, name: str) -> int:
        return sum(len(json.dumps(packed(document))) for document in self.collection(database, name))

    def statistics_of(self, database: str) -> Document:
        """What dbStats answers; counted documents are taken to be as large as the kept ones."""
        collections = self.contents.databases.get(database, {})
        kept = sum(map(len, collections.values()))
        objects = sum(self.number_of(database, name) for name in collections)
        size = int(self.size_of(database) * (objects / kept if kept else 1))
        return {
            "db": database,
            "collections": len(collections),
            "views": 0,
            "objects": objects,
            "avgObjSize": size / objects if objects else 0,
            "dataSize": size,
            "storageSize": (size // 4096 + 1) * 4096 if collections else 0,
            "indexes": len(collections),
        }

    def changed(self, *, access: bool = False) -> None:
        """Something stored is different now; with `access`, also who may do what."""
        if access:
            self.epoch += 1
        if self._flush is None:
            self._flush = self.process.clock.after(JOURNAL_SECONDS, self.flush)

    def flush(self) -> None:
        self._flush = None
        if self.process.done.is_set:
            return
        try:
            size = storage.save(self.process, self.folder, self.contents)
        except OSError as error:
            self._panic(error)
            return
        self.process.set_memory(self.base_memory + 2 * size)

    def _panic(self, error: OSError) -> None:
        file = f"{self.folder}/journal/WiredTigerLog.0000000001"
        self.journal.line(
            22435,
            "WT",
            "WiredTiger error message",
            "JournalFlusher",
            severity="E",
            error=error.errno,
            message=f"__posix_file_write, 580: {file}: handle-write: pwrite: failed to write: {error.strerror}",
        )
        self.journal.line(
            22435,
            "WT",
            "WiredTiger error message",
            "JournalFlusher",
            severity="E",
            error=-31804,
            message="__wt_panic, 477: the process must exit and restart: WT_PANIC: WiredTiger library panic",
        )
        self.journal.line(23089, "-", "Fatal assertion", "JournalFlusher", severity="F", msgid=50853, error=-31804)
        self.journal.line(23090, "-", "\n\n***aborting after fassert() failure\n\n", "JournalFlusher", severity="F")
        self.process.end(ABRUPT)

    # --- connections -------------------------------------------------------------------------------------------

    def accept(self, remote: str, client: str = "") -> Session:
        self.connected += 1
        session = Session(self.connected, remote, client)
        self.sessions[session.number] = session
        self._follow_monitors()
        self.journal.line(
            22943,
            "NETWORK",
            "Connection accepted",
            "listener",
            remote=remote,
            connectionId=session.number,
            connectionCount=len(self.sessions),
        )
        return session

    def leave(self, session: Session) -> None:
        if self.sessions.pop(session.number, None) is not None:
            self._follow_monitors()
            self.journal.line(
                22944,
                "NETWORK",
                "Connection ended",
                session.context,
                remote=session.remote,
                connectionId=session.number,
                connectionCount=len(self.sessions),
            )

    def _follow_monitors(self) -> None:
        """Every client that is connected asks for the server's state at an interval: the driver's monitoring."""
        now = self.process.clock.now
        self._monitored, self._monitored_since = self._heartbeats(), now
        self._monitors = len({session.client for session in self.sessions.values() if session.client})
        rate = HEARTBEAT.times(self._monitors / HEARTBEAT_SECONDS) if self._monitors else None
        self.process.container.namespace.carried.set_steady(self, rate, now)

    def _heartbeats(self) -> float:
        passed = self.process.clock.now - self._monitored_since
        return self._monitored + self._monitors * passed / HEARTBEAT_SECONDS

    def operation_counters(self) -> dict[str, int]:
        """Operations since the start, those of the drivers' monitoring among the commands."""
        return {**self.operations, "command": self.operations["command"] + int(self._heartbeats())}

    def user_of(self, session: Session) -> User | None:
        """The current user of the session; None after the user was dropped."""
        return None if session.user is None else self.contents.users.get(session.user)

    def authenticate(self, session: Session, login: Login) -> bool:
        source = login.source or login.database or "admin"
        user = self.contents.users.get((source, login.user))
        facts = {"mechanism": "SCRAM-SHA-256", "principalName": login.user, "authenticationDatabase": source}
        if self.version.startswith("4.") or self.version.startswith("3."):
            facts["mechanism"] = "SCRAM-SHA-256" if login.user else "SCRAM-SHA-1"
        if user is None or user.password != login.password:
            reason = (
                f'UserNotFound: Could not find user "{login.user}" for db "{source}"'
                if user is None
                else "AuthenticationFailed: SCRAM authentication failed, storedKey mismatch"
            )
            self.journal.line(
                20249, "ACCESS", "Authentication failed", session.context, **facts, remote=session.remote, error=reason
            )
            return False
        session.user = (source, login.user)
        self.journal.line(
            20250,
            "ACCESS",
            "Authentication succeeded" if not self.version.startswith("4.") else "Successful authentication",
            session.context,
            **facts,
            remote=session.remote,
        )
        return True

    # --- traffic -----------------------------------------------------------------------------------------------

    def count_traffic(self, operation: str, database: str, target: str, calls: int, hits: int, misses: int) -> None:
        self.operations[_COUNTERS.get(operation, "command")] += calls
        if operation == "insert":
            self.make_collection(database, target)
            self.add_bulk(database, target, calls)

    def report_statements(self, statements: Sequence[BulkStatements]) -> None:
        operations.report(self, statements)

    def resize_pool(self, client: str, size: int) -> None:
        """Let a client that is connected have so many connections."""
        pool = pool_of(self.sessions.values(), client)
        if not pool or len(pool) == size:
            return
        first = pool[0]
        host = first.remote.rpartition(":")[0]
        for _ in range(cut_down(self.sessions.values(), client, size, self.leave)):
            session = self.accept(f"{host}:{32768 + self.connected % 28000}" if host else client, client)
            session.user = first.user

    def add_bulk(self, database: str, name: str, documents: int) -> None:
        """Count documents without keeping them; negative for those that are kept after all."""
        place = f"{database}.{name}"
        self.contents.bulk[place] = self.contents.bulk.get(place, 0) + documents

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None:
        if self.process.done.is_set:
            return Refusal("closed", "no reachable servers")
        if self.tls == "requireTLS":
            return Refusal("closed", "no reachable servers")
        user = self._user(login)
        if action == "connect":
            if login is None or not login.user or (user is not None and user.password == login.password):
                return None
            return Refusal("auth", "server returned error on SASL authentication step: Authentication failed.")
        refusal = self._forbids(login, user, action, target)
        if refusal is not None or action == "read":
            return refusal
        return self._disk_refuses()

    def _user(self, login: Login | None) -> User | None:
        if login is None or not login.user:
            return None
        return self.contents.users.get((login.source or "admin", login.user))

    def _forbids(self, login: Login | None, user: User | None, action: str, target: str) -> Refusal | None:
        if not self.auth:
            return None
        command = _ACTIONS.get(action, "find")
        database = login.database if login is not None and login.database else "test"
        if user is None:
            return Refusal("permission", f"command {command} requires authentication")
        if user.may(command, database):
            return None
        shown = legacy({command: target, "$db": database}, oneline=True).replace('"' + command + '" ', f"{command}")
        shown = shown.replace('"$db" :', "$db:")
        return Refusal("permission", f"not authorized on {database} to execute command {shown}")

    def _disk_refuses(self) -> Refusal | None:
        state = self.disk.look()
        if state == "full":
            return Refusal("full", "No space left on device")
        return Refusal("readonly", "Read-only file system") if state else None

    def put(self, database: str, target: str, records: Sequence[Record]) -> Refusal | None:
        refusal = self._disk_refuses()
        if refusal is not None:
            return refusal
        rows = self.make_collection(database, target)
        for record in records:
            rows.append({"_id": self.new_id(), **record})
        self.operations["insert"] += len(records)
        self.changed()
        return None

    def keep_sample(self, database: str, name: str, records: Sequence[Record], most: int) -> None:
        """Keep documents of bulk traffic, which has counted them, and drop the oldest beyond so many."""
        rows = self.make_collection(database, name)
        rows.extend({"_id": self.new_id(), **record} for record in records)
        excess = max(0, len(rows) - most)
        del rows[:excess]
        self.add_bulk(database, name, excess - len(records))
        self.save_later()

    def save_later(self) -> None:
        """Save what bulk traffic changed within five minutes: more often would cost more than the traffic."""
        if self._flush is None and self._later is None:
            self._later = self.process.clock.after(SAMPLE_SECONDS, self._save_samples)

    def _save_samples(self) -> None:
        self._later = None
        self.settle()
        self.changed()

    def count(self, database: str, target: str) -> int:
        return self.number_of(database, target)

    def attach(self, client: str, login: Login | None, sessions: int, address: str = "") -> Refusal | None:
        lacking = cut_down(self.sessions.values(), client, sessions, self.leave)
        if lacking:
            refusal = self.refuses(login, "connect", "")
            for _ in range(lacking):
                if len(self.sessions) >= MAX_INCOMING:
                    return Refusal("busy", "connection refused because too many open connections")
                session = self.accept(f"{address}:{32768 + self.connected % 28000}" if address else client, client)
                if self.tls == "requireTLS":
                    self._refuse_plain(session)
                    return refusal
                if login is not None and login.user:
                    self.authenticate(
                        session, Login(login.user, login.password, login.database, login.source or "admin")
                    )
                if refusal is not None:
                    self.leave(session)
                    return refusal
        return None

    def attached(self, client: str) -> int:
        return len(pool_of(self.sessions.values(), client))

    def _refuse_plain(self, session: Session) -> None:
        self.journal.line(
            22988,
            "NETWORK",
            "Error receiving request from client. Ending connection from remote",
            session.context,
            error={
                "code": 141,
                "codeName": "SSLHandshakeFailed",
                "errmsg": "The server is configured to only allow SSL connections",
            },
            remote=session.remote,
            connectionId=session.number,
        )
        self.leave(session)
