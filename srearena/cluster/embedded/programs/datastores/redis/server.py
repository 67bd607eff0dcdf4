"""A running Redis server: its connections, settings and saves, and what traffic may do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from srearena.cluster.embedded.machine.files.streams import Change
from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.connection_pools import cut_down, pool_of
from srearena.cluster.embedded.programs.datastores.datastore import (
    BulkStatements,
    Counted,
    Login,
    Record,
    Refusal,
)
from srearena.cluster.embedded.programs.datastores.redis.administration import ADMINISTRATION
from srearena.cluster.embedded.programs.datastores.redis.commands import OK, READS, REMOVALS, WRITES, Wrong
from srearena.cluster.embedded.programs.datastores.redis.exporter import EXPORTER
from srearena.cluster.embedded.programs.datastores.redis.keyspace import DATABASES, Blob, Keyspace, memory_size
from srearena.cluster.embedded.programs.datastores.redis.observation import Observation
from srearena.cluster.embedded.programs.datastores.redis.resp import RespError, RespReader, Value, encoded
from srearena.cluster.embedded.programs.datastores.redis.transactions import NOT_QUEUED, QUEUED
from srearena.cluster.embedded.programs.datastores.statement_activity import Activity, slow_seconds
from srearena.cluster.embedded.programs.log_lines import write_now
from srearena.cluster.embedded.programs.timestamps import stamp

COMMAND_COST = 0.00002
MONITORED = 50
"""Commands of traffic that MONITOR and the slow log show of one kind in one report, at most."""
SAVE_CHECK_SECONDS = 60.0
DEFAULTS = {
    "maxmemory": "0",
    "maxmemory-policy": "noeviction",
    "maxclients": "10000",
    "requirepass": "",
    "save": "3600 1 300 100 60 10000",
    "appendonly": "no",
    "dir": "/data",
    "dbfilename": "dump.rdb",
    "timeout": "0",
    "databases": "16",
    "stop-writes-on-bgsave-error": "yes",
    "bind": "* -::*",
    "port": "6379",
    "protected-mode": "no",
    "slowlog-log-slower-than": "10000",
    "slowlog-max-len": "128",
    "latency-monitor-threshold": "0",
}
_WRONG_TYPE = RespError("WRONGTYPE Operation against a key holding the wrong kind of value")
_NOT_A_NUMBER = RespError("ERR value is not an integer or out of range")
NO_AUTH = "NOAUTH Authentication required."
WRONG_PASS = "WRONGPASS invalid username-password pair or user is disabled."
NO_PASSWORD = (
    "ERR AUTH <password> called without any password configured for the default user. "
    "Are you sure your configuration is correct?"
)
FULL = "OOM command not allowed when used memory > 'maxmemory'."
MISCONF = (
    "MISCONF Valkey is configured to save RDB snapshots, but it's currently unable to persist to disk. Commands that "
    "may modify the data set are disabled, because this instance is configured to report errors during writes if RDB "
    "snapshotting fails (stop-writes-on-bgsave-error option). Please check the logs for details about the RDB error."
)


@dataclass(slots=True, eq=False)
class Session:
    number: int
    address: str
    since: float
    trusted: bool
    client: str = ""
    name: str = ""
    database: int = 0
    last: str = "NULL"
    used_at: float = 0.0
    killed: bool = False
    queue: list[tuple[str, list[bytes]]] | None = None
    """Commands since MULTI."""


class RedisServer(Counted):
    exporter = EXPORTER

    def __init__(self, process: Process, settings: dict[str, str], *, version: str, product: str) -> None:
        self.process = process
        self.version = version
        self.product = product
        self.settings = {**DEFAULTS, **settings}
        self.keys = Keyspace(process)
        self.epoch = 0
        self.sessions: dict[int, Session] = {}
        self.connections = 0
        self.commands = 0
        self.hits = 0
        self.misses = 0
        self.rejected = 0
        self.activity = Activity()
        self.observation = Observation()
        self.subscribers: dict[bytes, list[Callable[[bytes, bytes], None]]] = {}
        self.saved_at: float = process.clock.now
        self.save_failed = ""
        self.apply()
        process.clock.after(SAVE_CHECK_SECONDS, self._save_if_due)

    def apply(self) -> None:
        """Let the settings take effect."""
        self.keys.limit = memory_size(self.settings["maxmemory"]) or 0
        self.keys.policy = self.settings["maxmemory-policy"]
        self.epoch += 1

    def log(self, level: str, text: str) -> None:
        write_now(self.process, f"{self.process.pid}:M {stamp(self.process, '%d %b %Y %H:%M:%S.%L')} {level} {text}\n")

    # --- connections -------------------------------------------------------------------------------------------

    async def converse(self, connection: Connection) -> None:
        reader = RespReader(connection)
        if len(self.sessions) >= int(self.settings["maxclients"]):
            self.rejected += 1
            await connection.write(encoded(RespError("ERR max number of clients reached")))
            return
        session = self._open(f"{connection.peer[0]}:{connection.peer[1]}")
        try:
            while True:
                try:
                    words = await reader.command()
                except (EOFError, ValueError):
                    return
                await self.process.spend(COMMAND_COST)
                name = words[0].decode(errors="replace").upper()
                if (name in ("GET", "POST") and words[-1].startswith(b"HTTP/")) or session.killed:
                    # An HTTP request: Redis treats it as a cross-protocol attack and closes the connection.
                    return
                if name in ("MONITOR", "SUBSCRIBE") and session.trusted:
                    await self._watch(connection, name, words[1:])
                    return
                await connection.write(encoded(self.answer(session, name, words[1:])))
                if name in ("QUIT", "SHUTDOWN"):
                    return
        finally:
            self.sessions.pop(session.number, None)

    async def _watch(self, connection: Connection, name: str, channels: list[bytes]) -> None:
        """Send commands that are executed, or messages of channels, until the client goes."""
        lines: list[bytes] = []
        arrived = Change(self.process.clock)

        def tell(line: bytes) -> None:
            lines.append(line)
            arrived.notify()

        def tell_command(text: str) -> None:
            tell(f"+{text}\r\n".encode())

        def tell_message(channel: bytes, message: bytes) -> None:
            tell(encoded([b"message", channel, message]))

        if name == "MONITOR":
            await connection.write(encoded(OK))
            self.observation.monitors.append(tell_command)
        for number, channel in enumerate(channels, 1):
            await connection.write(encoded([b"subscribe", channel, number]))
            self.subscribers.setdefault(channel, []).append(tell_message)
        try:
            while connection.outgoing.reader_open:
                await arrived.wait(1.0)
                if name == "MONITOR":
                    self.settle()
                while lines:
                    await connection.write(lines.pop(0))
        except OSError:
            return
        finally:
            if name == "MONITOR":
                self.observation.monitors.remove(tell_command)
            for channel in channels:
                self.subscribers[channel].remove(tell_message)

    def _open(self, address: str, client: str = "") -> Session:
        self.connections += 1
        now = self.process.clock.now
        trusted = not self.settings["requirepass"]
        session = Session(self.connections + 2, address, now, trusted, client, used_at=now)
        self.sessions[session.number] = session
        return session

    def answer(self, session: Session, name: str, args: list[bytes]) -> Value:
        self.commands += 1
        session.used_at, session.last = self.process.clock.now, name.lower()
        if session.queue is not None and name not in NOT_QUEUED:
            session.queue.append((name, args))
            return QUEUED
        self.observation.executed(self, session, name, args, COMMAND_COST)
        if name == "QUIT":
            return OK
        if name == "AUTH":
            return self._authenticate(session, args)
        if name == "HELLO":
            return RespError("NOPROTO unsupported protocol version")
        if not session.trusted:
            return RespError(NO_AUTH)
        if name == "SELECT":
            if not args or not args[0].isdigit() or int(args[0]) >= DATABASES:
                return RespError("ERR DB index is out of range")
            session.database = int(args[0])
            return OK
        return self._execute(session, name, args)

    def _authenticate(self, session: Session, args: list[bytes]) -> Value:
        wanted = self.settings["requirepass"]
        if not wanted and len(args) < 2:
            return RespError(NO_PASSWORD)
        good = not args[:-1] or args[0] == b"default"
        if args and good and (not wanted or args[-1].decode(errors="replace") == wanted):
            session.trusted = True
            return OK
        return RespError(WRONG_PASS)

    def _execute(self, session: Session, name: str, args: list[bytes]) -> Value:
        keys = self.keys
        keys.select(session.database)
        keys.drop_expired(args[:1])
        own = ADMINISTRATION.get(name)
        found = READS.get(name) or REMOVALS.get(name) or WRITES.get(name)
        if own is None and found is None:
            shown = " ".join(f"'{arg.decode(errors='replace')}'" for arg in args[:3])
            return RespError(f"ERR unknown command '{name.lower()}', with args beginning with: {shown} ")
        least = own[0] if own is not None else found[0] if found is not None else 0
        if len(args) < least:
            return RespError(f"ERR wrong number of arguments for '{name.lower()}' command")
        if name not in READS and own is None:
            refusal = self._write_refusal(grows=name in WRITES)
            if refusal:
                return RespError(refusal)
        try:
            if own is not None:
                return own[1](self, session, args)
            assert found is not None
            answer = found[1](keys, args)
        except Wrong:
            return _WRONG_TYPE
        except ValueError:
            return _NOT_A_NUMBER
        except IndexError:
            return RespError("ERR syntax error")
        if name in ("GET", "HGET"):
            self.hits += answer is not None
            self.misses += answer is None
        return answer

    def _write_refusal(self, *, grows: bool) -> str:
        if self.save_failed and self.settings["stop-writes-on-bgsave-error"] == "yes":
            return MISCONF.replace("Valkey", self.product)
        if grows and not self.keys.makes_room():
            return FULL
        return ""

    # --- saving ------------------------------------------------------------------------------------------------

    @property
    def dump(self) -> str:
        return f"{self.settings['dir'].rstrip('/')}/{self.settings['dbfilename']}"

    def load(self) -> int:
        """What an earlier server saved; how many keys. ValueError, OSError where the file is no good."""
        if not self.process.files.is_file(self.dump):
            return 0
        self.keys.decode(self.process.files.read_bytes(self.dump))
        return len(self.keys.values)

    def save(self) -> bool:
        try:
            self.process.files.write_bytes(self.dump, self.keys.encoded())
        except OSError as error:
            place = f"(in server root dir {self.settings['dir']})"
            self.log(
                "#",
                f"Failed opening the temp RDB file temp-{self.process.pid}.rdb {place} for saving: {error.strerror}",
            )
            if not self.save_failed:
                self.epoch += 1
            self.save_failed = "full" if error.errno == 28 else "readonly"
            return False
        if self.save_failed:
            self.epoch += 1
        self.save_failed, self.saved_at, self.keys.dirty = "", self.process.clock.now, 0
        self.log("*", "DB saved on disk")
        return True

    def _save_if_due(self) -> None:
        if self.process.done.is_set:
            return
        self.keys.drop_all_expired()
        numbers = [int(word) for word in self.settings["save"].split() if word.isdigit()]
        passed = self.process.clock.now - self.saved_at
        due = [n for s, n in zip(numbers[::2], numbers[1::2], strict=False) if passed >= s and self.keys.dirty >= n]
        if due:
            self.log("*", f"{due[0]} changes in {int(passed)} seconds. Saving...")
            self.save()
        self.process.clock.after(SAVE_CHECK_SECONDS, self._save_if_due)

    # --- traffic -----------------------------------------------------------------------------------------------

    def count_traffic(self, operation: str, database: str, target: str, calls: int, hits: int, misses: int) -> None:
        self.commands += calls
        if hits or misses:
            self.hits += hits
            self.misses += misses
        elif operation.upper() in READS:
            self.hits += calls
        else:
            self.keys.dirty += calls

    def report_statements(self, statements: Sequence[BulkStatements]) -> None:
        self.activity.report([(one, f"{one.operation} {one.target}") for one in statements], self.process.clock.now)
        for one in statements:
            self.observation.count(one.operation, round(one.calls), one.calls * one.mean_seconds)
            pool = pool_of(self.sessions.values(), one.client)
            if pool and one.calls >= 1:
                shown = " ".join(f'"{word}"' for word in (one.operation, *one.target.split()))
                for tell in list(self.observation.monitors):
                    for _ in range(min(MONITORED, round(one.calls))):
                        tell(f"{self.process.clock.now:.6f} [0 {pool[0].address}] {shown}")
        limit = int(self.settings["slowlog-log-slower-than"]) / 1e6
        for one, text, count in self.activity.slow(limit) if limit >= 0 else ():
            pool = pool_of(self.sessions.values(), one.client)
            for number in range(min(count, MONITORED)) if pool else ():
                words = tuple(word.encode() for word in text.split())
                self.observation.note_slow(self, pool[0], words, slow_seconds(one, limit, number))

    @property
    def losses(self) -> int:
        return self.keys.losses

    @property
    def evictions(self) -> int:
        return self.keys.evicted

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None:
        if self.process.done.is_set:
            return Refusal("closed", "Connection refused")
        if action == "connect":
            wanted = self.settings["requirepass"]
            password = login.password if login is not None else ""
            if wanted and not password:
                return Refusal("auth", NO_AUTH)
            if password != wanted:
                return Refusal("auth", WRONG_PASS if wanted else NO_PASSWORD)
            full = len(self.sessions) >= int(self.settings["maxclients"])
            return Refusal("busy", "ERR max number of clients reached") if full else None
        if action == "read":
            return None
        text = self._write_refusal(grows=True)
        if not text:
            return None
        return Refusal("full" if text == FULL or self.save_failed == "full" else "readonly", text)

    def put(self, database: str, target: str, records: Sequence[Record]) -> Refusal | None:
        """Each record is one key: `target` for a single one, `target:n` for several; its fields become a hash."""
        refusal = self._write_refusal(grows=True)
        if refusal:
            return Refusal("full", refusal)
        self.keys.select(int(database) if database.isdigit() else 0)
        for number, record in enumerate(records):
            key = target if len(records) == 1 else f"{target}:{number}"
            self.keys.store(key.encode(), {name.encode(): str(value).encode() for name, value in record.items()})
        return None

    def count(self, database: str, target: str) -> int:
        """How many keys start with `target`."""
        values = self.keys.databases.get(int(database) if database.isdigit() else 0, {})
        return sum(key.startswith(target.encode()) for key in values)

    def fill(self, prefix: str, keys: int, size: int) -> int:
        self.keys.select(0)
        start = self.count("0", prefix)
        before = self.keys.limit and self.keys.memory > self.keys.limit
        taken = 0
        for number in range(start, start + keys):
            if self._write_refusal(grows=True):
                break
            self.keys.store(f"{prefix}{number}".encode(), Blob(size))
            taken += 1
        if bool(before) != bool(self.keys.limit and self.keys.memory > self.keys.limit):
            self.epoch += 1
        return taken

    def attach(self, client: str, login: Login | None, sessions: int, address: str = "") -> Refusal | None:
        for _ in range(cut_down(self.sessions.values(), client, sessions, self._forget)):
            refusal = self.refuses(login, "connect", "")
            if refusal is not None:
                self.rejected += refusal.kind == "busy"
                return refusal
            self._open(f"{address}:{32768 + self.connections}" if address else client, client).trusted = True
        return None

    def _forget(self, session: Session) -> None:
        self.sessions.pop(session.number, None)

    def attached(self, client: str) -> int:
        return len(pool_of(self.sessions.values(), client))
