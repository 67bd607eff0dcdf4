"""The images of MySQL, Percona and MariaDB: entry point, server and clients."""

from __future__ import annotations

from signal import Signals
from typing import ClassVar

from srearena.cluster.program_models import Account as UnixAccount
from srearena.cluster.program_models import Connection, Folder, Listener, Process, Program, program, stamp
from srearena.cluster.program_models.datastores import Login
from srearena.cluster.program_models.sql import split
from srearena.service.products.mysql.client import Client
from srearena.service.products.mysql.connections import serve_connection
from srearena.service.products.mysql.errors import MysqlError
from srearena.service.products.mysql.execution import Execution
from srearena.service.products.mysql.server import Account, MysqlServer

PORT = 3306
INIT_SECONDS = 9.0
START_SECONDS = 1.5
DATA = "/var/lib/mysql"
SCRIPTS = "/docker-entrypoint-initdb.d"
CONFIGURATION = ("/etc/my.cnf", "/etc/mysql/my.cnf", "/etc/mysql/conf.d", "/etc/my.cnf.d")
_CLIENTS = ("/usr/bin/mysqladmin", "/usr/bin/mysql", "/usr/bin/mariadb-admin", "/usr/bin/mariadb")


@program("mysql", "mysql/mysql-server", "bitnami/mysql", "percona")
class Mysql(Program):
    threads = 38
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("mysqld",)
    ports = (PORT,)
    binaries = (
        *("/usr/local/bin/docker-entrypoint.sh", "/usr/sbin/mysqld", "/usr/sbin/mariadbd"),
        *("/usr/local/bin/healthcheck.sh", *_CLIENTS),
    )
    accounts_added = (UnixAccount("mysql", 999, 999, DATA),)
    folders: ClassVar = {DATA: Folder(0o1777, 999, 999), SCRIPTS: Folder()}
    idle_cpu = 0.005
    idle_memory = 380 * 1024 * 1024
    default_version = "8.4.7"
    product = "MySQL"
    variable = "MYSQL"
    daemon = "mysqld"
    marker = "mysql.ibd"

    async def run(self, process: Process) -> int:
        if process.binary in ("mysqladmin", "mariadb-admin"):
            return await Client(process, self.product, self.daemon).administer()
        if process.binary in ("mysql", "mariadb"):
            return await Client(process, self.product, self.daemon).run()
        if process.binary == "healthcheck.sh":
            process.argv = [process.argv[0], "ping"]
            return await Client(process, self.product, self.daemon).administer()
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

    def _value(self, process: Process, name: str) -> str:
        """The value of an image variable: MYSQL_x, MARIADB_x, or the content of the file in x_FILE."""
        for prefix in dict.fromkeys((self.variable, "MYSQL")):
            if process.env.get(f"{prefix}_{name}"):
                return process.env[f"{prefix}_{name}"]
            path = process.env.get(f"{prefix}_{name}_FILE", "")
            if path and process.files.is_file(path):
                return process.files.read_text(path).rstrip("\n")
        return ""

    def _has_password_option(self, process: Process) -> bool:
        names = ("ROOT_PASSWORD", "ALLOW_EMPTY_PASSWORD", "RANDOM_ROOT_PASSWORD", "ALLOW_EMPTY_ROOT_PASSWORD")
        return any(self._value(process, name) for name in names)

    async def _initialise(self, process: Process) -> int:
        await self._note(process, f"Entrypoint script for {self.product} Server {self.version}-1.el9 started.")
        if process.files.is_dir(f"{DATA}/mysql"):
            return 0
        if not self._has_password_option(process):
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
            process.files.mkdir(f"{DATA}/mysql", 0o750, parents=True)
            process.files.truncate(f"{DATA}/{self.marker}", 100 * 1024 * 1024)
        except OSError as error:
            when = stamp(process, "%Y-%m-%dT%H:%M:%S.%fZ")
            await process.error(
                f"{when} 0 [ERROR] [MY-012592] [InnoDB] Operating system error number {error.errno} "
                "in a file operation.\n"
                f"{when} 0 [ERROR] [MY-010119] [Server] Aborting\n"
            )
            return 1
        await self._note(process, "Database files initialized")
        status = await self._first_contents(process)
        if status:
            return status
        await self._note(process, f"{self.product} init process done. Ready for start up.")
        return 0

    async def _first_contents(self, process: Process) -> int:
        """Create the administrator, the user and database of the variables, and run the init scripts."""
        server = MysqlServer(process, version=self.version, port=0, folder=DATA, product=self.product)
        password = self._value(process, "ROOT_PASSWORD")
        for host in ("localhost", self._value(process, "ROOT_HOST") or "%"):
            server.accounts.append(Account("root", host, password, {"*.*": {"ALL"}}))
        database, user = self._value(process, "DATABASE"), self._value(process, "USER")
        if database:
            await self._note(process, f"Creating database {database}")
            server.create_database(database)
        if user:
            await self._note(process, f"Creating user {user}")
            granted = {f"{database}.*": {"ALL"}} if database else {}
            server.accounts.append(Account(user, "%", self._value(process, "PASSWORD"), granted))
        listener: Listener | None = None
        if self._scripts(process):
            listener = self._listen(process, server, PORT, "127.0.0.1")
        for script in self._scripts(process):
            await self._note(process, f"/usr/local/bin/docker-entrypoint.sh: running {script}")
            status = await self._run_script(process, server, script, database)
            if status:
                return status
        if listener is not None:
            listener.close()
        server.flush()
        return 0

    @staticmethod
    def _scripts(process: Process) -> list[str]:
        if not process.files.is_dir(SCRIPTS):
            return []
        return [f"{SCRIPTS}/{n}" for n in sorted(process.files.listdir(SCRIPTS)) if n.endswith((".sh", ".sql"))]

    async def _run_script(self, process: Process, server: MysqlServer, script: str, database: str) -> int:
        if script.endswith(".sh"):
            return await process.wait(process.spawn(["bash", script], env=process.env))
        session = server.open(Login("root", "", database), "localhost")
        execution = Execution(server, session)
        statements, incomplete = split(process.files.read_text(script))
        for statement in [*statements, *([incomplete] if incomplete else [])]:
            try:
                await execution.run(statement)
            except MysqlError as error:
                await process.error(f"ERROR {error.number} ({error.state}) at line 1: {error.message}\n")
                return 1
        server.close(session)
        return 0

    async def _log(self, process: Process, level: str, code: str, text: str) -> None:
        when = stamp(process, "%Y-%m-%dT%H:%M:%S.%fZ")
        await process.error(f"{when} 0 [{level}] [MY-{code}] [Server] {text}\n")

    def _settings(self, process: Process, words: list[str]) -> dict[str, str]:
        """Settings of the configuration files' [mysqld] sections, overridden by the command line."""
        settings: dict[str, str] = {}
        for path in self._configuration(process):
            text = process.files.read_text(path)
            section = ""
            for line in text.splitlines():
                line = line.strip()
                if line.startswith("["):
                    section = line.strip("[]")
                elif line and not line.startswith(("#", ";", "!")) and section == "mysqld":
                    name, _, value = line.partition("=")
                    settings[name.strip().replace("-", "_")] = value.strip().strip("'\"") or "ON"
        for word in words:
            if word.startswith("--"):
                name, _, value = word[2:].partition("=")
                settings[name.replace("-", "_")] = value or "ON"
        return settings

    @staticmethod
    def _configuration(process: Process) -> list[str]:
        """The existing configuration files; those of a folder in the order of their names."""
        paths: list[str] = []
        for path in CONFIGURATION:
            if process.files.is_dir(path):
                names = sorted(process.files.listdir(path))
                paths += [f"{path}/{name}" for name in names if name.endswith(".cnf")]
            elif process.files.is_file(path):
                paths.append(path)
        return paths

    def _listen(self, process: Process, server: MysqlServer, port: int, address: str) -> Listener:
        async def serve(connection: Connection) -> None:
            await serve_connection(server, connection)

        listener = process.container.namespace.listen(process, port, address=address, stream=serve)
        listener.server = server
        return listener

    async def _server(self, process: Process, words: list[str]) -> int:
        settings = self._settings(process, words)
        port = int(settings["port"]) if settings.get("port", "").isdigit() else PORT
        name = f"/usr/sbin/{self.daemon}"
        await self._log(
            process, "System", "010116", f"{name} ({self.daemon} {self.version}) starting as process {process.pid}"
        )
        stop = process.catch(Signals.SIGTERM, Signals.SIGQUIT)
        await process.sleep(START_SECONDS)
        process.set_memory(self.idle_memory)
        server = MysqlServer(
            process, version=self.version, port=port, folder=DATA, product=self.product, daemon=self.daemon
        )
        server.variables.update(settings)
        try:
            loaded = server.load()
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            loaded = False
        if not loaded:
            await self._log(process, "ERROR", "010326", "Fatal error: Can't open and lock privilege tables")
            await self._log(process, "ERROR", "010119", "Aborting")
            return 1
        try:
            listener = self._listen(process, server, port, "0.0.0.0")
        except OSError as error:
            await self._log(process, "ERROR", "010262", f"Can't start server: Bind on TCP/IP port: {error.strerror}")
            await self._log(process, "ERROR", "010119", "Aborting")
            return 1
        process.argv = [self.daemon, *process.argv[2:]]
        text = f"{name}: ready for connections. Version: '{self.version}'  socket: '/var/run/mysqld/mysqld.sock'  "
        text += f"port: {port}  {self.product} Community Server - GPL."
        await self._log(process, "System", "010931", text)
        await stop.wait()
        listener.close()
        server.flush()
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


@program("mariadb", "bitnami/mariadb")
class Mariadb(Mysql):
    cmd = ("mariadbd",)
    default_version = "11.8.3"
    idle_memory = 120 * 1024 * 1024
    product = "MariaDB"
    variable = "MARIADB"
    daemon = "mariadbd"
