"""Redis and Valkey: the image's entry point, the server process with its log, and the client."""

from __future__ import annotations

import errno
from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.machine.processes.accounts import Account
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.datastores.redis.administration import POLICIES
from srearena.cluster.embedded.programs.datastores.redis.cli import PORT, RedisCli
from srearena.cluster.embedded.programs.datastores.redis.keyspace import memory_size
from srearena.cluster.embedded.programs.datastores.redis.server import RedisServer
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.root_filesystem import Folder
from srearena.cluster.embedded.programs.serving import until_stopped
from srearena.cluster.embedded.programs.timestamps import stamp


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
    threads = 5
    idle_cpu = 0.002
    idle_memory = 7 * 1024 * 1024
    default_version = "7.4.1"

    @property
    def product(self) -> str:
        return "Valkey" if "valkey" in self.reference.repository else "Redis"

    async def run(self, process: Process) -> int:
        if process.binary == "docker-entrypoint.sh":
            words = process.argv[1:]
            if words and (words[0].startswith("-") or words[0].endswith(".conf")):
                words = ["redis-server", *words]
            process.execute(words or ["redis-server"], process.env)
        if process.binary.endswith("-cli"):
            return await RedisCli(process, self.product).run()
        return await self._server(process)

    async def _server(self, process: Process) -> int:
        settings = await self._settings(process)
        if settings is None:
            return 1
        port = int(settings["port"]) if settings.get("port", "").isdigit() else PORT
        name, role = self.product, f"{process.pid}:C"
        await self._log(process, role, "*", f"oO0OoO0OoO0Oo {name} is starting oO0OoO0OoO0Oo")
        await self._log(
            process,
            role,
            "*",
            f"{name} version={self.version}, bits=64, commit=00000000, modified=0, pid={process.pid}, just started",
        )
        if settings.pop("configured", ""):
            await self._log(process, role, "*", "Configuration loaded")
        else:
            text = "Warning: no config file specified, using the default config. In order to specify a config file use "
            await self._log(process, role, "#", f"{text}redis-server /path/to/redis.conf")
        process.set_memory(self.idle_memory)
        server = RedisServer(process, settings, version=self.version, product=name)
        role = f"{process.pid}:M"
        address = settings.get("bind", "*").split()[0].lstrip("-")
        try:
            listener = process.container.namespace.listen(
                process, port, address="0.0.0.0" if address == "*" else address, stream=server.converse
            )
        except OSError as error:
            text = "bind: Address already in use" if error.errno == errno.EADDRINUSE else f"bind: {error.strerror}"
            await self._log(
                process, role, "#", f"Warning: Could not create server TCP listening socket *:{port}: {text}"
            )
            await self._log(process, role, "#", f"Failed listening on port {port} (tcp), aborting.")
            return 1
        listener.server = server
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        await self._log(process, role, "*", f"Running mode=standalone, port={port}.")
        await self._log(process, role, "*", "Server initialized")
        if not await self._load(process, server, role):
            return 1
        await self._log(process, role, "*", "Ready to accept connections tcp")
        await until_stopped(process, stop, [listener], grace=0.0)
        caught = Signals(stop.value).name
        await process.write(
            f"{process.pid}:signal-handler ({int(process.clock.now)}) Received {caught} scheduling shutdown...\n"
        )
        await self._log(process, role, "*", "User requested shutdown...")
        if server.settings["save"]:
            await self._log(process, role, "*", "Saving the final RDB snapshot before exiting.")
            if not server.save():
                await self._log(process, role, "#", "Error trying to save the DB, can't exit.")
        await self._log(process, role, "#", f"{name} is now ready to exit, bye bye...")
        return 0

    async def _load(self, process: Process, server: RedisServer, role: str) -> bool:
        try:
            keys = server.load()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            await self._log(process, role, "#", f"Fatal error loading the DB, check server logs. Exiting: {reason}")
            return False
        if keys:
            await self._log(process, role, "*", f"Done loading RDB, keys loaded: {keys}, keys expired: 0.")
            await self._log(process, role, "*", "DB loaded from disk: 0.001 seconds")
        return True

    @staticmethod
    async def _log(process: Process, role: str, level: str, text: str) -> None:
        await process.write(f"{role} {stamp(process, '%d %b %Y %H:%M:%S.%L')} {level} {text}\n")

    async def _settings(self, process: Process) -> dict[str, str] | None:
        """The configuration file's directives, then those of the command line; None, and said, where one is bad."""
        settings: dict[str, str] = {}
        args = process.argv[1:]
        path = ""
        if args and not args[0].startswith("-"):
            path = args.pop(0)
            try:
                text = process.files.read_text(path)
            except OSError as error:
                await self._fatal(process, f"Fatal error, can't open config file '{path}': {error.strerror}\n")
                return None
            settings["configured"] = path
            for number, line in enumerate(text.splitlines(), 1):
                words = line.split(None, 1)
                if not words or words[0].startswith("#"):
                    continue
                value = words[1].strip().strip("\"'") if len(words) > 1 else ""
                trouble = _trouble(words[0].lower(), value)
                if trouble:
                    await self._fatal(
                        process, f"Reading the configuration file, at line {number}\n>>> '{line.strip()}'\n{trouble}\n"
                    )
                    return None
                known = settings.get(words[0].lower())
                settings[words[0].lower()] = f"{known} {value}" if known and words[0].lower() == "save" else value
        name = ""
        for arg in args:
            if arg.startswith("--"):
                name = arg[2:].lower()
                settings[name] = ""
            elif name:
                settings[name] = f"{settings[name]} {arg}".strip()
        for name, value in settings.items():
            trouble = _trouble(name, value)
            if trouble:
                await self._fatal(
                    process, f"Reading the configuration file, at line 2\n>>> '{name} \"{value}\"'\n{trouble}\n"
                )
                return None
        return settings

    async def _fatal(self, process: Process, text: str) -> None:
        await process.error(f"\n*** FATAL CONFIG FILE ERROR ({self.product} {self.version}) ***\n{text}")


def _trouble(name: str, value: str) -> str:
    """What a server says about a directive it cannot take."""
    if name == "maxmemory" and memory_size(value) is None:
        return "argument must be a memory value"
    if name == "maxmemory-policy" and value not in POLICIES:
        return f"argument(s) must be one of the following: {', '.join(POLICIES)}"
    if name == "port" and not value.isdigit():
        return "argument couldn't be parsed into an integer"
    return ""
