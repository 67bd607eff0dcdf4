"""memcached: its text protocol, with the memory limit it was given, and the same cache for traffic in bulk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.machine.processes.accounts import Account
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.datastores.datastore import Counted, Login, Record, Refusal
from srearena.cluster.embedded.programs.datastores.memcached_exporter import EXPORTER
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import stop_signal, until_stopped

PORT = 11211
MAX_VALUE = 1024 * 1024
MAX_LINE = 8192
OVERHEAD = 50
COMMAND_COST = 0.00001
_STORING = (b"set", b"add", b"replace", b"append", b"prepend")
_RELATIVE = 60 * 60 * 24 * 30
"""Expiry times above this many seconds are dates."""


@program("memcached", "bitnami/memcached")
class Memcached(Program):
    threads = 10
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("memcached",)
    user = "memcache"
    ports = (PORT,)
    binaries = ("/usr/local/bin/docker-entrypoint.sh", "/usr/local/bin/memcached")
    accounts_added = (Account("memcache", 11211, 11211),)
    idle_memory = 3 * 1024 * 1024
    default_version = "1.6.39"

    async def run(self, process: Process) -> int:
        if process.binary == "docker-entrypoint.sh":
            words = process.argv[1:]
            process.execute(["memcached", *words] if not words or words[0].startswith("-") else words, process.env)
        args = process.argv[1:]
        port = _value(args, "-p", "--port", PORT)
        # The upstream image ignores MEMCACHED_CACHE_SIZE; so does this one.
        limit = _value(args, "-m", "--memory-limit", 64) * 1024 * 1024
        connections = _value(args, "-c", "--conn-limit", 1024)
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        server = MemcachedServer(process, limit=limit, connections=connections, version=self.version)
        try:
            listener = process.container.namespace.listen(process, port, stream=server.converse)
        except OSError as error:
            await process.error(f"bind(): {error.strerror}\nfailed to listen on TCP port {port}: {error.strerror}\n")
            return 71
        listener.server = server
        await until_stopped(process, stop, [listener], grace=0.0)
        await process.error("Signal handled: Terminated.\n")
        return 0


@dataclass(slots=True)
class Item:
    flags: bytes
    value: bytes
    size: int
    """Bytes of the value; for those that traffic wrote in bulk, more than are kept."""
    expires: float = 0.0


class MemcachedServer(Counted):
    """What is cached, least recently written first, and who is connected."""

    exporter = EXPORTER

    def __init__(self, process: Process, *, limit: int, connections: int, version: str) -> None:
        self.process = process
        self.limit = limit
        self.connection_limit = connections
        self.version = version
        self.items: dict[bytes, Item] = {}
        self.pools: dict[str, int] = {}
        self.open = 0
        self.total_connections = 0
        self.epoch = 0
        self.losses = 0
        self.bulk_keys: dict[str, tuple[int, int]] = {}
        """Keys that bulk traffic has filled in, by kind: how many, and the bytes of one value."""
        self.base_memory = process.memory
        names = (
            *("cmd_get", "cmd_set", "cmd_flush", "cmd_touch", "get_hits", "get_misses", "delete_misses", "delete_hits"),
            *("incr_misses", "incr_hits", "evictions", "total_items", "bytes", "rejected_connections"),
        )
        self.statistics = dict.fromkeys(names, 0)

    # --- items -------------------------------------------------------------------------------------------------

    def get(self, key: bytes) -> Item | None:
        item = self.items.get(key)
        if item is not None and item.expires and item.expires <= self.process.clock.now:
            self.drop(key)
            return None
        return item

    def drop(self, key: bytes) -> bool:
        item = self.items.pop(key, None)
        if item is not None:
            self.statistics["bytes"] -= len(key) + item.size + OVERHEAD
        return item is not None

    def store(self, key: bytes, item: Item) -> None:
        self.drop(key)
        self.items[key] = item
        self.statistics["bytes"] += len(key) + item.size + OVERHEAD
        self.statistics["total_items"] += 1
        while self.statistics["bytes"] > self.limit and len(self.items) > 1:
            self.drop(next(iter(self.items)))
            self.statistics["evictions"] += 1
        self.process.set_memory(self.base_memory + self.statistics["bytes"])

    def flush(self) -> None:
        self.items.clear()
        self.statistics["bytes"] = 0
        self.statistics["cmd_flush"] += 1
        self.losses += 1
        self.epoch += 1

    # --- the protocol ------------------------------------------------------------------------------------------

    async def converse(self, connection: Connection) -> None:
        self.total_connections += 1
        if self.open + sum(self.pools.values()) >= self.connection_limit:
            self.statistics["rejected_connections"] += 1
            await connection.write(b"ERROR Too many open connections\r\n")
            return
        self.open += 1
        try:
            await self._talk(connection)
        finally:
            self.open -= 1

    async def _talk(self, connection: Connection) -> None:
        buffer = b""
        while True:
            while b"\n" not in buffer:
                data = await connection.read()
                if not data or len(buffer) > MAX_LINE:
                    return
                buffer += data
            line, _, buffer = buffer.partition(b"\n")
            words = line.strip().split()
            await self.process.spend(COMMAND_COST)
            name = words[0].lower() if words else b""
            if name == b"quit":
                return
            if name not in _STORING:
                await connection.write(self.answer(name, words[1:]))
                continue
            if len(words) < 5 or not words[4].isdigit():
                await connection.write(b"ERROR\r\n" if len(words) < 5 else b"CLIENT_ERROR bad command line format\r\n")
                continue
            size = int(words[4])
            if size > MAX_VALUE:
                await connection.write(b"SERVER_ERROR object too large for cache\r\n")
                return
            while len(buffer) < size + 2:
                data = await connection.read()
                if not data:
                    return
                buffer += data
            value, buffer = buffer[:size], buffer[size + 2 :]
            stored = self._write(name, words[1], words[2], words[3], value)
            if words[-1] != b"noreply":
                await connection.write(b"STORED\r\n" if stored else b"NOT_STORED\r\n")

    def _write(self, name: bytes, key: bytes, flags: bytes, expiry: bytes, value: bytes) -> bool:
        before = self.get(key)
        self.statistics["cmd_set"] += 1
        if (name == b"add" and before is not None) or (name not in (b"add", b"set") and before is None):
            return False
        moment = self._moment(expiry)
        if before is not None and name in (b"append", b"prepend"):
            value = before.value + value if name == b"append" else value + before.value
            flags, moment = before.flags, before.expires
        self.store(key, Item(flags, value, len(value), moment))
        return True

    def _moment(self, expiry: bytes) -> float:
        seconds = int(expiry) if expiry.lstrip(b"-").isdigit() else 0
        if seconds == 0:
            return 0.0
        return float(seconds) if seconds > _RELATIVE else self.process.clock.now + seconds

    def answer(self, name: bytes, args: list[bytes]) -> bytes:
        commands: dict[bytes, Callable[[list[bytes]], bytes]] = {
            b"get": self._get,
            b"gets": self._get,
            b"delete": self._delete,
            b"incr": lambda a: self._count(a, 1),
            b"decr": lambda a: self._count(a, -1),
            b"touch": self._touch,
            b"flush_all": self._flush,
            b"version": lambda a: f"VERSION {self.version}\r\n".encode(),
            b"verbosity": lambda a: b"OK\r\n",
            b"stats": self._statistics,
        }
        command = commands.get(name)
        try:
            return b"ERROR\r\n" if command is None else command(args)
        except IndexError:
            return b"ERROR\r\n"

    def _get(self, keys: list[bytes]) -> bytes:
        if not keys:
            return b"ERROR\r\n"
        parts: list[bytes] = []
        for key in keys:
            self.statistics["cmd_get"] += 1
            item = self.get(key)
            self.statistics["get_hits" if item is not None else "get_misses"] += 1
            if item is not None:
                value = item.value.ljust(item.size, b"x")
                parts.append(b"VALUE %s %s %d\r\n%s\r\n" % (key, item.flags, len(value), value))
        return b"".join(parts) + b"END\r\n"

    def _delete(self, args: list[bytes]) -> bytes:
        gone = self.drop(args[0])
        self.statistics["delete_hits" if gone else "delete_misses"] += 1
        return b"DELETED\r\n" if gone else b"NOT_FOUND\r\n"

    def _count(self, args: list[bytes], sign: int) -> bytes:
        item = self.get(args[0])
        self.statistics["incr_hits" if item is not None else "incr_misses"] += 1
        if item is None:
            return b"NOT_FOUND\r\n"
        if not item.value.rstrip().isdigit():
            return b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
        if not args[1].isdigit():
            return b"CLIENT_ERROR invalid numeric delta argument\r\n"
        total = str(max(0, int(item.value) + sign * int(args[1]))).encode()
        # A shorter number keeps the room of the longer one, filled with blanks.
        padded = total.ljust(len(item.value))
        self.store(args[0], Item(item.flags, padded, len(padded), item.expires))
        return total + b"\r\n"

    def _touch(self, args: list[bytes]) -> bytes:
        item = self.get(args[0])
        self.statistics["cmd_touch"] += 1
        if item is None:
            return b"NOT_FOUND\r\n"
        item.expires = self._moment(args[1])
        return b"TOUCHED\r\n"

    def _flush(self, args: list[bytes]) -> bytes:
        self.flush()
        return b"OK\r\n"

    def _statistics(self, args: list[bytes]) -> bytes:
        rows: dict[str, object]
        if args[:1] == [b"settings"]:
            rows = {"maxbytes": self.limit, "maxconns": self.connection_limit, "tcpport": PORT, "evictions": "on"}
        elif args[:1] == [b"reset"]:
            self.settle()
            for name in self.statistics:
                if name != "bytes":
                    self.statistics[name] = 0
            return b"RESET\r\n"
        elif args:
            rows = {}
        else:
            now, process = self.process.clock.now, self.process
            self.settle()
            rows = {
                "pid": process.pid,
                "uptime": int(now - process.started_at),
                "time": int(now),
                "version": self.version,
                "pointer_size": 64,
                "max_connections": self.connection_limit,
                "curr_connections": self.open + sum(self.pools.values()) + 1,
                "total_connections": self.total_connections,
                **self.statistics,
                "bytes": self.current_bytes,
                "curr_items": self.current_items,
                "limit_maxbytes": self.limit,
                "threads": 4,
            }
        return "".join(f"STAT {key} {value}\r\n" for key, value in rows.items()).encode() + b"END\r\n"

    # --- traffic -----------------------------------------------------------------------------------------------

    def count_traffic(self, operation: str, database: str, target: str, calls: int, hits: int, misses: int) -> None:
        """A lookup asks for several keys, and those that it misses are filled in."""
        counts = self.statistics
        if operation == "get":
            found = hits if hits or misses else calls
            counts["cmd_get"] += found + misses
            counts["get_hits"] += found
            counts["get_misses"] += misses
            counts["cmd_set"] += misses
            counts["total_items"] += misses
        elif operation == "set":
            counts["cmd_set"] += calls
            counts["total_items"] += calls

    def hold_traffic(self, name: str, keys: int, size: int) -> None:
        self.bulk_keys[name] = (keys, size)

    @property
    def current_items(self) -> int:
        """Items of clients, or the keys that bulk traffic fills in where those are more: they are the same keys."""
        return max(len(self.items), sum(keys for keys, _ in self.bulk_keys.values()))

    @property
    def current_bytes(self) -> int:
        return max(self.statistics["bytes"], sum(keys * (size + OVERHEAD) for keys, size in self.bulk_keys.values()))

    @property
    def evictions(self) -> int:
        return self.statistics["evictions"]

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None:
        if self.process.done.is_set:
            return Refusal("closed", "memcache: connect: connection refused")
        if action == "connect" and self.open + sum(self.pools.values()) >= self.connection_limit:
            return Refusal("busy", "memcache: ERROR Too many open connections")
        return None

    def put(self, database: str, target: str, records: Sequence[Record]) -> Refusal | None:
        """Each record is one item: `target` for a single one, `target:n` for several."""
        for number, record in enumerate(records):
            key = target if len(records) == 1 else f"{target}:{number}"
            value = ",".join(f"{name}={item}" for name, item in record.items()).encode()
            self.statistics["cmd_set"] += 1
            self.store(key.encode(), Item(b"0", value, len(value)))
        return None

    def count(self, database: str, target: str) -> int:
        """How many keys start with `target`."""
        return sum(key.startswith(target.encode()) for key in self.items)

    def fill(self, prefix: str, keys: int, size: int) -> int:
        start = self.count("", prefix)
        for number in range(start, start + keys):
            self.statistics["cmd_set"] += 1
            self.store(f"{prefix}{number}".encode(), Item(b"0", b"", min(size, MAX_VALUE)))
        return keys

    def attach(self, client: str, login: Login | None, sessions: int, address: str = "") -> Refusal | None:
        if sessions > self.pools.get(client, 0):
            refusal = self.refuses(login, "connect", "")
            if refusal is not None:
                return refusal
            self.total_connections += sessions - self.pools.get(client, 0)
        self.pools[client] = sessions
        if sessions <= 0:
            self.pools.pop(client)
        return None

    def attached(self, client: str) -> int:
        return self.pools.get(client, 0)


def _value(args: list[str], short: str, long: str, default: int) -> int:
    for index, arg in enumerate(args):
        text = ""
        if arg == short and index + 1 < len(args):
            text = args[index + 1]
        elif arg.startswith(short) and not arg.startswith("--"):
            text = arg[len(short) :]
        elif arg.startswith(f"{long}="):
            text = arg[len(long) + 1 :]
        if text.isdigit():
            return int(text)
    return default
