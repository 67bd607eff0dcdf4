"""Redis and Valkey: a key-value store that speaks enough RESP for clients, probes and redis-cli."""

from __future__ import annotations

import errno
import shlex
from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.accounts import Account
from srearena.cluster.embedded.node.programs.base import Program
from srearena.cluster.embedded.node.programs.keyspace import Keyspace
from srearena.cluster.embedded.node.programs.registry import program
from srearena.cluster.embedded.node.programs.resp import RespError, RespReader, decoded, encode_command
from srearena.cluster.embedded.node.programs.rootfs import Folder
from srearena.cluster.embedded.node.programs.serving import until_stopped
from srearena.cluster.embedded.node.programs.timestamps import stamp
from srearena.cluster.embedded.node.reachability import Outcome
from srearena.cluster.embedded.node.shell.tools.urls import REASONS
from srearena.cluster.embedded.node.sockets import Connection

PORT = 6379


@program("redis", "valkey/valkey", "valkey", "bitnami/redis", "bitnami/valkey")
class Redis(Program):
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("redis-server",)
    working_dir = "/data"
    ports = (PORT,)
    binaries = (
        *("/usr/local/bin/docker-entrypoint.sh", "/usr/local/bin/redis-server", "/usr/local/bin/redis-cli"),
        *("/usr/local/bin/valkey-server", "/usr/local/bin/valkey-cli"),
    )
    accounts_added = (Account("redis", 999, 999, "/data"),)
    folders: ClassVar = {"/data": Folder(0o755, 999, 999)}
    idle_cpu = 0.002
    idle_memory = 7 * 1024 * 1024
    default_version = "7.4.1"

    async def run(self, process: Process) -> int:
        if process.binary == "docker-entrypoint.sh":
            words = process.argv[1:]
            if words and (words[0].startswith("-") or words[0].endswith(".conf")):
                words = ["redis-server", *words]
            process.execute(words or ["redis-server"], process.env)
        if process.binary.endswith("-cli"):
            return await _RedisCli(process).run()
        return await self._server(process)

    async def _server(self, process: Process) -> int:
        settings = await self._settings(process)
        if settings is None:
            return 1
        port = int(settings["port"]) if settings.get("port", "").isdigit() else PORT
        name = "Valkey" if "valkey" in self.reference.repository else "Redis"
        keys = Keyspace(process, settings, self.version)
        role = f"{process.pid}:C"
        await self._log(process, role, "*", f"oO0OoO0OoO0Oo {name} is starting oO0OoO0OoO0Oo")
        await self._log(
            process,
            role,
            "*",
            f"{name} version={self.version}, bits=64, commit=00000000, modified=0, pid={process.pid}, just started",
        )
        if not settings.pop("configured", ""):
            await self._log(
                process,
                role,
                "#",
                "Warning: no config file specified, using the default config. In order to specify a "
                "config file use redis-server /path/to/redis.conf",
            )
        else:
            await self._log(process, role, "*", "Configuration loaded")

        async def serve(connection: Connection) -> None:
            await keys.converse(connection)

        address = settings.get("bind", "*").split()[0].lstrip("-")
        try:
            listener = process.container.namespace.listen(
                process, port, address="0.0.0.0" if address == "*" else address, stream=serve
            )
        except OSError as error:
            text = "bind: Address already in use" if error.errno == errno.EADDRINUSE else f"bind: {error.strerror}"
            await self._log(
                process,
                f"{process.pid}:M",
                "#",
                f"Warning: Could not create server TCP listening socket *:{port}: {text}",
            )
            await self._log(process, f"{process.pid}:M", "#", f"Failed listening on port {port} (tcp), aborting.")
            return 1
        process.set_memory(self.idle_memory)
        role = f"{process.pid}:M"
        await self._log(process, role, "*", f"Running mode=standalone, port={port}.")
        await self._log(process, role, "*", "Server initialized")
        await self._log(process, role, "*", "Ready to accept connections tcp")
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        await until_stopped(process, stop, [listener], grace=0.0)
        caught = Signals(stop.value).name
        await process.write(
            f"{process.pid}:signal-handler ({int(process.clock.now)}) Received {caught} scheduling shutdown...\n"
        )
        await self._log(process, role, "*", "User requested shutdown...")
        await self._log(process, role, "#", f"{name} is now ready to exit, bye bye...")
        return 0

    @staticmethod
    async def _log(process: Process, role: str, level: str, text: str) -> None:
        await process.write(f"{role} {stamp(process, '%d %b %Y %H:%M:%S.%L')} {level} {text}\n")

    async def _settings(self, process: Process) -> dict[str, str] | None:
        """The configuration file's directives, then those of the command line."""
        settings: dict[str, str] = {}
        args = process.argv[1:]
        if args and not args[0].startswith("-"):
            path = args.pop(0)
            try:
                text = process.files.read_text(path)
            except OSError as error:
                await process.error(
                    f"\n*** FATAL CONFIG FILE ERROR (Redis {self.version}) ***\n"
                    f"Fatal error, can't open config file '{path}': {error.strerror}\n"
                )
                return None
            settings["configured"] = path
            for line in text.splitlines():
                words = line.split(None, 1)
                if words and not words[0].startswith("#"):
                    settings[words[0].lower()] = words[1].strip().strip("\"'") if len(words) > 1 else ""
        name = ""
        for arg in args:
            if arg.startswith("--"):
                name = arg[2:].lower()
                settings[name] = ""
            elif name:
                settings[name] = f"{settings[name]} {arg}".strip()
        return settings


class _RedisCli:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.host, self.port, self.password = "127.0.0.1", PORT, process.env.get("REDISCLI_AUTH", "")
        args = process.argv[1:]
        while args and args[0].startswith("-"):
            flag = args.pop(0)
            if flag in ("-h", "-p", "-a", "-n", "-u", "--user", "--pass") and args:
                value = args.pop(0)
                if flag == "-h":
                    self.host = value
                elif flag == "-p" and value.isdigit():
                    self.port = int(value)
                elif flag in ("-a", "--pass"):
                    self.password = value
        self.words: list[str] = args

    async def run(self) -> int:
        process = self.process
        result = await process.container.network.connect(self.host, self.port, timeout=60.0)
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            await process.error(f"Could not connect to Redis at {self.host}:{self.port}: {REASONS[result.outcome]}\n")
            return 1
        connection = result.connection
        reader = RespReader(connection)
        try:
            if self.password:
                await connection.write(encode_command(["AUTH", self.password]))
                answer = await reader.next()
                if isinstance(answer, RespError):
                    await process.error(f"AUTH failed: {answer}\n")
            if self.words:
                return await self._ask(connection, reader, self.words)
            while line := await process.fd(0).read_line():
                words = (
                    shlex.split(line.decode(errors="replace")) if line.count(b'"') % 2 == 0 else line.decode().split()
                )
                if words[:1] in (["quit"], ["exit"]):
                    break
                if words:
                    await self._ask(connection, reader, words)
            return 0
        except (OSError, ValueError):
            await process.error("Error: Server closed the connection\n")
            return 1
        finally:
            connection.close()

    async def _ask(self, connection: Connection, reader: RespReader, words: list[str]) -> int:
        await connection.write(encode_command(words))
        text = decoded(await reader.next(), raw=not self.process.fd(1).is_tty)
        await self.process.write(f"{text}\n")
        return 0
