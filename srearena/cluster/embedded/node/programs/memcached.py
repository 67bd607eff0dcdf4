"""memcached: its text protocol, with the memory limit it was given."""

from __future__ import annotations

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.accounts import Account
from srearena.cluster.embedded.node.programs.base import Program
from srearena.cluster.embedded.node.programs.registry import program
from srearena.cluster.embedded.node.programs.serving import stop_signal, until_stopped
from srearena.cluster.embedded.node.sockets import Connection

PORT = 11211
MAX_VALUE = 1024 * 1024


@program("memcached", "bitnami/memcached")
class Memcached(Program):
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
        limit = _value(args, "-m", "--memory-limit", 64) * 1024 * 1024
        cache: dict[bytes, tuple[bytes, bytes]] = {}
        statistics = {"cmd_get": 0, "cmd_set": 0, "get_hits": 0, "get_misses": 0, "evictions": 0, "bytes": 0}

        async def serve(connection: Connection) -> None:
            await self._converse(process, connection, cache, statistics, limit)

        stop = stop_signal(process)
        try:
            listener = process.container.namespace.listen(process, port, stream=serve)
        except OSError as error:
            await process.error(f"bind(): {error.strerror}\nfailed to listen on TCP port {port}: {error.strerror}\n")
            return 71
        process.set_memory(self.idle_memory)
        await until_stopped(process, stop, [listener], grace=0.0)
        await process.error("Signal handled: Terminated.\n")
        return 0

    async def _converse(
        self,
        process: Process,
        connection: Connection,
        cache: dict[bytes, tuple[bytes, bytes]],
        statistics: dict[str, int],
        limit: int,
    ) -> None:
        buffer = b""
        while True:
            while b"\n" not in buffer:
                data = await connection.read()
                if not data or len(buffer) > 8192:
                    return
                buffer += data
            line, _, buffer = buffer.partition(b"\n")
            words = line.strip().split()
            await process.spend(0.00001)
            if not words:
                await connection.write(b"ERROR\r\n")
                continue
            name = words[0].lower()
            if name == b"quit":
                return
            if name in (b"set", b"add", b"replace") and len(words) >= 5 and words[4].isdigit():
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
                exists = words[1] in cache
                statistics["cmd_set"] += 1
                if (name == b"add" and exists) or (name == b"replace" and not exists):
                    await connection.write(b"NOT_STORED\r\n")
                    continue
                self._store(process, cache, statistics, words[1], words[2], value, limit)
                await connection.write(b"STORED\r\n")
            else:
                await connection.write(self._answer(process, name, words, cache, statistics, limit))

    def _store(
        self,
        process: Process,
        cache: dict[bytes, tuple[bytes, bytes]],
        statistics: dict[str, int],
        key: bytes,
        flags: bytes,
        value: bytes,
        limit: int,
    ) -> None:
        old = cache.pop(key, None)
        statistics["bytes"] += len(key) + len(value) + 50 - (len(key) + len(old[1]) + 50 if old else 0)
        cache[key] = (flags, value)
        while statistics["bytes"] > limit and len(cache) > 1:
            victim = next(iter(cache))
            statistics["bytes"] -= len(victim) + len(cache.pop(victim)[1]) + 50
            statistics["evictions"] += 1
        process.set_memory(self.idle_memory + statistics["bytes"])

    def _answer(
        self,
        process: Process,
        name: bytes,
        words: list[bytes],
        cache: dict[bytes, tuple[bytes, bytes]],
        statistics: dict[str, int],
        limit: int,
    ) -> bytes:
        if name in (b"get", b"gets"):
            parts: list[bytes] = []
            for key in words[1:]:
                statistics["cmd_get"] += 1
                found = cache.get(key)
                statistics["get_hits" if found else "get_misses"] += 1
                if found:
                    parts.append(b"VALUE %s %s %d\r\n%s\r\n" % (key, found[0], len(found[1]), found[1]))
            return b"".join(parts) + b"END\r\n"
        if name == b"delete" and len(words) > 1:
            found = cache.pop(words[1], None)
            if found is None:
                return b"NOT_FOUND\r\n"
            statistics["bytes"] -= len(words[1]) + len(found[1]) + 50
            return b"DELETED\r\n"
        if name == b"flush_all":
            cache.clear()
            statistics["bytes"] = 0
            return b"OK\r\n"
        if name == b"version":
            return f"VERSION {self.version}\r\n".encode()
        if name == b"stats":
            rows = {
                "pid": process.pid,
                "uptime": int(process.clock.now - process.started_at),
                "version": self.version,
                "curr_items": len(cache),
                "limit_maxbytes": limit,
                **statistics,
            }
            return "".join(f"STAT {key} {value}\r\n" for key, value in rows.items()).encode() + b"END\r\n"
        return b"ERROR\r\n"


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
