"""redis-cli and valkey-cli: arguments, the login, and printing replies as the terminal or a pipe gets them."""

from __future__ import annotations

import shlex
from urllib.parse import unquote, urlsplit

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.redis.resp import RespError, RespReader, decoded, encode_command
from srearena.cluster.embedded.userland.tools.urls import REASONS

PORT = 6379
_VALUES = frozenset(("-h", "-p", "-a", "-n", "-u", "--user", "--pass", "-r", "-i", "-s", "--pattern"))


class RedisCli:
    def __init__(self, process: Process, product: str) -> None:
        self.process = process
        self.product = product
        self.host, self.port = "127.0.0.1", PORT
        self.user, self.password = "", process.env.get("REDISCLI_AUTH", "")
        self.database, self.repeats = 0, 1
        self.on: set[str] = set()
        self.warns = False
        args = process.argv[1:]
        while args and args[0].startswith("-") and len(args[0]) > 1:
            flag = args.pop(0)
            if flag in _VALUES and args:
                self._take(flag, args.pop(0))
            else:
                self.on.add(flag)
        self.words: list[str] = args

    def _take(self, flag: str, value: str) -> None:
        if flag == "-h":
            self.host = value
        elif flag == "-p" and value.isdigit():
            self.port = int(value)
        elif flag in ("-a", "--pass"):
            self.password, self.warns = value, True
        elif flag == "--user":
            self.user = value
        elif flag == "-n" and value.isdigit():
            self.database = int(value)
        elif flag == "-r" and value.isdigit():
            self.repeats = int(value)
        elif flag == "-u":
            url = urlsplit(value)
            self.host, self.port = url.hostname or self.host, url.port or self.port
            self.password, self.warns = unquote(url.password or ""), bool(url.password)

    async def run(self) -> int:
        process = self.process
        if self.warns and "--no-auth-warning" not in self.on:
            await process.error(
                "Warning: Using a password with '-a' or '-u' option on the command line interface may not be safe.\n"
            )
        result = await process.container.network.connect(self.host, self.port, timeout=60.0)
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            text = f"Could not connect to {self.product} at {self.host}:{self.port}: {REASONS[result.outcome]}\n"
            await process.error(text)
            return 1
        connection = result.connection
        reader = RespReader(connection)
        try:
            await self._prepare(connection, reader)
            if "--latency" in self.on:
                return await self._latency(connection, reader)
            if "--stat" in self.on:
                return await self._statistics(connection, reader)
            if "--bigkeys" in self.on:
                self.words = ["KEYS", "*"]
            if self.words and self.words[0].lower() in ("monitor", "subscribe"):
                return await self._follow(connection, reader)
            if "--scan" in self.on:
                self.words = ["KEYS", "*"]
            if self.words and "-x" in self.on:
                self.words = [*self.words, await self._standard_input()]
            if self.words:
                status = 0
                for _ in range(self.repeats):
                    status = await self._ask(connection, reader, self.words)
                return status
            await self._converse(connection, reader)
            return 0
        except (OSError, ValueError, EOFError):
            await process.error("Error: Server closed the connection\n")
            return 1
        finally:
            connection.close()

    async def _follow(self, connection: Connection, reader: RespReader) -> int:
        """MONITOR and SUBSCRIBE: print what comes until the connection ends."""
        await connection.write(encode_command(self.words))
        while True:
            await self.process.write(f"{decoded(await reader.next(), raw=True)}\n")

    async def _latency(self, connection: Connection, reader: RespReader) -> int:
        """Measure PING for fifteen seconds, as in a pipe: minimum, maximum, mean and samples."""
        times: list[float] = []
        clock = self.process.clock
        until = clock.now + 15.0
        while clock.now < until:
            started = clock.now
            await connection.write(encode_command(["PING"]))
            await reader.next()
            times.append((clock.now - started) * 1000)
            await self.process.sleep(0.01)
        await self.process.write(f"{min(times):.0f} {max(times):.0f} {sum(times) / len(times):.2f} {len(times)}\n")
        return 0

    async def _statistics(self, connection: Connection, reader: RespReader) -> int:
        head = "------- data ------ --------------------- load -------------------- - child -\n"
        head += "keys       mem      clients blocked requests            connections          \n"
        await self.process.write(head)
        before = None
        for _ in range(self.repeats if self.repeats > 1 else 20):
            await connection.write(encode_command(["INFO"]))
            text = decoded(await reader.next(), raw=True)
            facts = dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)
            keys = sum(int(v.split("=")[1].split(",")[0]) for k, v in facts.items() if k.startswith("db"))
            total = int(facts["total_commands_processed"])
            grown = f"{total} (+{total - (total if before is None else before)})"
            before = total
            await self.process.write(
                f"{keys:<10} {facts['used_memory_human']:<8} {facts['connected_clients']:<7} 0       {grown:<19} "
                f"{facts['total_connections_received']:<10}\n"
            )
            await self.process.sleep(1.0)
        return 0

    async def _standard_input(self) -> str:
        """With -x the last argument is what comes in."""
        parts: list[bytes] = []
        while data := await self.process.read():
            parts.append(data)
        return b"".join(parts).decode(errors="surrogateescape")

    async def _prepare(self, connection: Connection, reader: RespReader) -> None:
        if self.password:
            login = [self.user, self.password] if self.user else [self.password]
            await connection.write(encode_command(["AUTH", *login]))
            answer = await reader.next()
            if isinstance(answer, RespError):
                await self.process.error(f"AUTH failed: {answer}\n")
        if self.database:
            await connection.write(encode_command(["SELECT", str(self.database)]))
            await reader.next()

    async def _converse(self, connection: Connection, reader: RespReader) -> None:
        tty = self.process.fd(0).is_tty
        while True:
            if tty:
                await self.process.write(f"{self.host}:{self.port}> ")
            line = await self.process.fd(0).read_line()
            if not line:
                return
            text = line.decode(errors="replace")
            words = shlex.split(text) if text.count('"') % 2 == 0 and text.count("'") % 2 == 0 else text.split()
            if words[:1] in (["quit"], ["exit"]):
                return
            if words:
                await self._ask(connection, reader, words)

    async def _ask(self, connection: Connection, reader: RespReader, words: list[str]) -> int:
        await connection.write(encode_command(words))
        raw = "--raw" in self.on or (not self.process.fd(1).is_tty and "--no-raw" not in self.on)
        answer = await reader.next()
        text = decoded(answer, raw=raw)
        await self.process.write(f"{text}\n" + ("\n" if raw and isinstance(answer, RespError) else ""))
        return 1 if isinstance(answer, RespError) and "-e" in self.on else 0
