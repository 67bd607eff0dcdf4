"""MySQL and MariaDB: the required password, the slow first start, the greeting on the wire."""

from __future__ import annotations

from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.accounts import Account
from srearena.cluster.embedded.node.programs.base import Program
from srearena.cluster.embedded.node.programs.registry import program
from srearena.cluster.embedded.node.programs.rootfs import Folder
from srearena.cluster.embedded.node.programs.timestamps import stamp
from srearena.cluster.embedded.node.reachability import Outcome
from srearena.cluster.embedded.node.shell.tools.urls import REASONS
from srearena.cluster.embedded.node.sockets import Connection

PORT = 3306
INIT_SECONDS = 9.0
START_SECONDS = 1.5


@program("mysql", "mysql/mysql-server", "bitnami/mysql", "percona")
class Mysql(Program):
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("mysqld",)
    ports = (PORT,)
    binaries = (
        *("/usr/local/bin/docker-entrypoint.sh", "/usr/sbin/mysqld", "/usr/bin/mysqladmin", "/usr/bin/mysql"),
        *("/usr/sbin/mariadbd", "/usr/bin/mariadb-admin", "/usr/bin/mariadb", "/usr/local/bin/healthcheck.sh"),
    )
    accounts_added = (Account("mysql", 999, 999, "/var/lib/mysql"),)
    folders: ClassVar = {"/var/lib/mysql": Folder(0o1777, 999, 999), "/docker-entrypoint-initdb.d": Folder()}
    idle_cpu = 0.005
    idle_memory = 380 * 1024 * 1024
    default_version = "8.4.7"
    product = "MySQL"
    variable = "MYSQL"
    daemon = "mysqld"
    marker = "mysql.ibd"

    async def run(self, process: Process) -> int:
        if process.binary in ("mysqladmin", "mysql", "mariadb-admin", "mariadb", "healthcheck.sh"):
            return await self._client(process)
        words = process.argv[1:]
        if process.binary == "docker-entrypoint.sh":
            if words and words[0] not in ("mysqld", "mariadbd") and not words[0].startswith("-"):
                process.execute(words, process.env)
            status = await self._initialise(process)
            if status:
                return status
        return await self._server(process, words)

    async def _note(self, process: Process, text: str, level: str = "Note") -> None:
        when = stamp(process, "%Y-%m-%d %H:%M:%S")
        await process.write(f"{when}+00:00 [{level}] [Entrypoint]: {text}\n")

    def _secret(self, process: Process) -> bool:
        names = ("ROOT_PASSWORD", "ALLOW_EMPTY_PASSWORD", "RANDOM_ROOT_PASSWORD", "ROOT_PASSWORD_FILE")
        prefixes = ("MYSQL", "MARIADB") if self.variable == "MARIADB" else ("MYSQL",)
        extra = ("MARIADB_ALLOW_EMPTY_ROOT_PASSWORD",)
        return any(process.env.get(f"{prefix}_{name}") for prefix in prefixes for name in names) or any(
            process.env.get(name) for name in extra
        )

    async def _initialise(self, process: Process) -> int:
        await self._note(process, f"Entrypoint script for {self.product} Server {self.version}-1.el9 started.")
        data = "/var/lib/mysql"
        if process.files.is_dir(f"{data}/mysql"):
            return 0
        if not self._secret(process):
            await self._note(process, "Database is uninitialized and password option is not specified", "ERROR")
            variables = (
                "    You need to specify one of the following as an environment variable:\n"
                f"    - {self.variable}_ROOT_PASSWORD\n"
                f"    - {self.variable}_ALLOW_EMPTY_PASSWORD\n    - {self.variable}_RANDOM_ROOT_PASSWORD\n"
            )
            await process.error(variables)
            return 1
        await self._note(process, "Initializing database files")
        await process.sleep(INIT_SECONDS)
        try:
            process.files.mkdir(f"{data}/mysql", 0o750, parents=True)
            process.files.truncate(f"{data}/{self.marker}", 100 * 1024 * 1024)
        except OSError as error:
            when = stamp(process, "%Y-%m-%dT%H:%M:%S.%fZ")
            await process.error(
                f"{when} 0 [ERROR] [MY-012592] [InnoDB] Operating system error number {error.errno} "
                "in a file operation.\n"
                f"{when} 0 [ERROR] [MY-010119] [Server] Aborting\n"
            )
            return 1
        await self._note(process, "Database files initialized")
        await self._note(process, f"{self.product} init process done. Ready for start up.")
        return 0

    async def _log(self, process: Process, level: str, code: str, text: str) -> None:
        when = stamp(process, "%Y-%m-%dT%H:%M:%S.%fZ")
        await process.error(f"{when} 0 [{level}] [MY-{code}] [Server] {text}\n")

    async def _server(self, process: Process, words: list[str]) -> int:
        port = next((int(w[7:]) for w in words if w.startswith("--port=") and w[7:].isdigit()), PORT)
        name = f"/usr/sbin/{self.daemon}"
        await self._log(
            process, "System", "010116", f"{name} ({self.daemon} {self.version}) starting as process {process.pid}"
        )
        await process.sleep(START_SECONDS)

        async def serve(connection: Connection) -> None:
            body = b"\x0a" + self.version.encode() + b"\0" + bytes((8, 0, 0, 0)) + b"12345678\0" + bytes(40)
            await connection.write(len(body).to_bytes(3, "little") + b"\0" + body)
            if await connection.read():
                refusal = b"\xff\x15\x04#28000Access denied for user"
                await connection.write(len(refusal).to_bytes(3, "little") + b"\x02" + refusal)

        stop = process.catch(Signals.SIGTERM, Signals.SIGQUIT)
        try:
            listener = process.container.namespace.listen(process, port, stream=serve)
        except OSError as error:
            await self._log(process, "ERROR", "010262", f"Can't start server: Bind on TCP/IP port: {error.strerror}")
            await self._log(process, "ERROR", "010119", "Aborting")
            return 1
        process.argv = [self.daemon, *process.argv[2:]]
        process.set_memory(self.idle_memory)
        text = f"{name}: ready for connections. Version: '{self.version}'  socket: '/var/run/mysqld/mysqld.sock'  "
        text += f"port: {port}  {self.product} Community Server - GPL."
        await self._log(process, "System", "010931", text)
        await stop.wait()
        listener.close()
        await self._log(
            process,
            "System",
            "013172",
            f"Received SHUTDOWN from user <via user signal>. Shutting down {self.daemon} (Version: {self.version}).",
        )
        await process.sleep(0.8)
        await self._log(
            process,
            "System",
            "010910",
            f"{name}: Shutdown complete ({self.daemon} {self.version})  {self.product} Community Server - GPL.",
        )
        return 0

    async def _client(self, process: Process) -> int:
        args = process.argv[1:]
        host, port = "127.0.0.1", PORT
        for index, arg in enumerate(args):
            following = args[index + 1] if index + 1 < len(args) else ""
            if arg.startswith("-h") and not arg.startswith("--"):
                host = arg[2:] or following
            elif arg.startswith("--host="):
                host = arg[7:]
            elif arg.startswith("-P") and (arg[2:] or following).isdigit():
                port = int(arg[2:] or following)
        result = await process.container.network.connect(host, port, timeout=10.0)
        name = process.binary
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            reason = REASONS[result.outcome]
            if name.endswith("admin"):
                await process.error(
                    f"{name}: connect to server at '{host}' failed\n"
                    f"error: 'Can't connect to {self.product} server on '{host}:{port}' (111)'\n"
                    f"Check that {self.daemon} is running on {host} and that the port is {port}.\n"
                )
            else:
                await process.error(
                    f"ERROR 2003 (HY000): Can't connect to {self.product} server on '{host}:{port}' ({reason})\n"
                )
            return 1
        result.connection.close()
        if name.endswith("admin") and "ping" in args:
            await process.write(f"{self.daemon} is alive\n")
        return 0


@program("mariadb", "bitnami/mariadb")
class Mariadb(Mysql):
    cmd = ("mariadbd",)
    default_version = "11.8.3"
    idle_memory = 120 * 1024 * 1024
    product = "MariaDB"
    variable = "MARIADB"
    daemon = "mariadbd"
