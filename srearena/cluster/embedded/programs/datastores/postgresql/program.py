"""PostgreSQL: the image's entry point, the server process, and the programs that come with it."""

from __future__ import annotations

import errno
import struct
from signal import Signals
from typing import Any, ClassVar

from srearena.cluster.embedded.machine.networking.sockets import Connection, Listener
from srearena.cluster.embedded.machine.processes.accounts import Account
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.datastores.datastore import Login
from srearena.cluster.embedded.programs.datastores.dialogue import Dialogue
from srearena.cluster.embedded.programs.datastores.postgresql.answers import Answer
from srearena.cluster.embedded.programs.datastores.postgresql.describe import describe
from srearena.cluster.embedded.programs.datastores.postgresql.errors import SqlError
from srearena.cluster.embedded.programs.datastores.postgresql.execution import Execution
from srearena.cluster.embedded.programs.datastores.postgresql.psql import Psql, is_ready
from srearena.cluster.embedded.programs.datastores.postgresql.roles import Role
from srearena.cluster.embedded.programs.datastores.postgresql.server import PostgresServer, Session
from srearena.cluster.embedded.programs.datastores.sql.statements import split
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.root_filesystem import Folder
from srearena.cluster.embedded.programs.timestamps import stamp

PORT = 5432
INIT_SECONDS = 2.0
START_SECONDS = 0.3
SCRIPTS = "/docker-entrypoint-initdb.d"
_NO_PASSWORD = """\
Error: Database is uninitialized and superuser password is not specified.
       You must specify POSTGRES_PASSWORD to a non-empty value for the
       superuser. For example, "-e POSTGRES_PASSWORD=password" on "docker run".

       You may also use "POSTGRES_HOST_AUTH_METHOD=trust" to allow all
       connections without a password. This is *not* recommended.

       See PostgreSQL documentation about "trust":
       https://www.postgresql.org/docs/current/auth-trust.html
"""
_HBA = """\
# TYPE  DATABASE        USER            ADDRESS                 METHOD
local   all             all                                     trust
host    all             all             127.0.0.1/32            trust
host    all             all             ::1/128                 trust

host all all all {method}
"""


@program("postgres", "postgresql", "bitnami/postgresql", "cloudnative-pg/postgresql", "timescale/timescaledb")
class Postgres(Program):
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("postgres",)
    env: ClassVar = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/postgresql/17/bin",
        "PGDATA": "/var/lib/postgresql/data",
    }
    ports = (PORT,)
    binaries = (
        *("/usr/local/bin/docker-entrypoint.sh", "/usr/lib/postgresql/17/bin/postgres"),
        *("/usr/lib/postgresql/17/bin/pg_isready", "/usr/lib/postgresql/17/bin/psql"),
    )
    accounts_added = (Account("postgres", 999, 999, "/var/lib/postgresql", "/bin/bash"),)
    folders: ClassVar = {
        "/var/lib/postgresql/data": Folder(0o1777, 999, 999),
        "/var/run/postgresql": Folder(0o3777, 999, 999),
        SCRIPTS: Folder(),
    }
    stop_signal = Signals.SIGINT
    idle_memory = 45 * 1024 * 1024
    default_version = "17.6"

    async def run(self, process: Process) -> int:
        if process.binary == "pg_isready":
            return await is_ready(process)
        if process.binary == "psql":
            return await Psql(process).run()
        words = process.argv[1:]
        if process.binary == "docker-entrypoint.sh":
            if words and words[0] != "postgres" and not words[0].startswith("-"):
                process.execute(words, process.env)
            status = await self._initialise(process)
            if status:
                return status
        return await self._server(process, words)

    @staticmethod
    def _folder(process: Process) -> str:
        return process.env.get("PGDATA", "/var/lib/postgresql/data")

    # --- first start -------------------------------------------------------------------------------------------

    async def _initialise(self, process: Process) -> int:
        data = self._folder(process)
        files = process.files
        password = self._password(process)
        trusting = process.env.get("POSTGRES_HOST_AUTH_METHOD") == "trust"
        try:
            files.mkdir(data, 0o700, parents=True)
            if files.is_file(f"{data}/PG_VERSION"):
                await process.write(
                    "\nPostgreSQL Database directory appears to contain a database; Skipping initialization\n\n"
                )
                return 0
            if not password and not trusting:
                await process.error(_NO_PASSWORD)
                return 1
            if "lost+found" in files.listdir(data):
                await process.error(
                    f'initdb: error: directory "{data}" exists but is not empty\n'
                    "initdb: detail: It contains a lost+found directory, perhaps due to it being a mount point.\n"
                    "initdb: hint: Using a mount point directly as the data directory is not recommended.\n"
                    "Create a subdirectory under the mount point.\n"
                )
                return 1
            await process.write(
                'The files belonging to this database system will be owned by user "postgres".\n'
                "This user must also own the server process.\n\n"
                f"fixing permissions on existing directory {data} ... ok\ncreating subdirectories ... ok\n"
            )
            await process.sleep(INIT_SECONDS)
            for name in ("base", "base/1", "global", "pg_wal"):
                files.mkdir(f"{data}/{name}", 0o700, parents=True)
            files.write_bytes(f"{data}/PG_VERSION", f"{self.version.partition('.')[0]}\n".encode())
            files.write_bytes(f"{data}/postgresql.conf", b"listen_addresses = '*'\nmax_connections = 100\n")
            method = process.env.get("POSTGRES_HOST_AUTH_METHOD") or "scram-sha-256"
            files.write_bytes(f"{data}/pg_hba.conf", _HBA.format(method=method).encode())
            files.truncate(f"{data}/base/1/1255", 24 * 1024 * 1024)
            files.truncate(f"{data}/pg_wal/000000010000000000000001", 16 * 1024 * 1024)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                await process.error("initdb: error: could not write to file: No space left on device\n")
            else:
                await process.error(f"mkdir: cannot create directory '{data}': {error.strerror}\n")
            return 1
        await process.write("Success. You can now start the database server using:\n\n")
        return await self._first_contents(process, password)

    @staticmethod
    def _password(process: Process) -> str:
        path = process.env.get("POSTGRES_PASSWORD_FILE", "")
        if path and process.files.is_file(path):
            return process.files.read_text(path).rstrip("\n")
        return process.env.get("POSTGRES_PASSWORD", "")

    async def _first_contents(self, process: Process, password: str) -> int:
        """The superuser, the database, and the init scripts, on a server without external listeners."""
        user = process.env.get("POSTGRES_USER") or "postgres"
        server = PostgresServer(process, folder=self._folder(process), version=self.version, port=PORT)
        server.roles[user] = Role(user, password, superuser=True, create_database=True, create_role=True)
        server.add_database("postgres", user)
        name = process.env.get("POSTGRES_DB") or user
        if name not in server.databases:
            server.add_database(name, user)
            await process.write("CREATE DATABASE\n\n\n")
        self._read_rules(process, server)
        server.flush()
        listener = self._listen(process, server, PORT, "127.0.0.1")
        for script in self._scripts(process):
            await process.write(f"/usr/local/bin/docker-entrypoint.sh: running {script}\n")
            status = await self._run_script(process, server, script, user, name)
            if status:
                return status
            await process.write("\n\n")
        listener.close()
        server.flush()
        if process.done.is_set:
            return 1
        await process.write("\nPostgreSQL init process complete; ready for start up.\n\n")
        return 0

    @staticmethod
    def _scripts(process: Process) -> list[str]:
        if not process.files.is_dir(SCRIPTS):
            return []
        return [f"{SCRIPTS}/{n}" for n in sorted(process.files.listdir(SCRIPTS)) if n.endswith((".sh", ".sql"))]

    async def _run_script(self, process: Process, server: PostgresServer, script: str, user: str, database: str) -> int:
        if script.endswith(".sh"):
            child = process.spawn(["bash", script], env={**process.env, "PGUSER": user, "PGDATABASE": database})
            return await process.wait(child)
        session = server.open(Login(user, "", database), "", "psql")
        execution = Execution(server, session)
        statements, rest = split(process.files.read_text(script))
        for statement in [*statements, *([rest] if rest else [])]:
            try:
                answer = await execution.run(statement)
                await process.write(f"{answer.tag}\n")
            except SqlError as error:
                await process.error(f"psql:{script}:1: {error.text}\n")
                return 3
        server.close(session)
        return 0

    # --- the server --------------------------------------------------------------------------------------------

    @staticmethod
    def _log(process: Process, text: str, level: str = "LOG") -> str:
        return f"{stamp(process, '%Y-%m-%d %H:%M:%S.%L')} UTC [{process.pid}] {level}:  {text}\n"

    async def _server(self, process: Process, words: list[str]) -> int:
        settings = _settings(words)
        port = int(settings.get("port", str(PORT)))
        if process.credentials.uid == 0 and process.binary == "postgres":
            await process.error(
                '"root" execution of the PostgreSQL server is not permitted.\n'
                "The server must be started under an unprivileged user ID to prevent\n"
                "possible system security compromise.\n"
            )
            return 1
        data = self._folder(process)
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT, Signals.SIGQUIT)
        await process.error(
            self._log(
                process, f"starting PostgreSQL {self.version} (Debian {self.version}-1.pgdg13+1) on x86_64-pc-linux-gnu"
            )
        )
        await process.sleep(START_SECONDS)
        major = self.version.partition(".")[0]
        process.argv = ["postgres"]
        process.set_memory(self.idle_memory)
        server = PostgresServer(process, folder=data, version=self.version, port=port)
        try:
            found = process.files.read_text(f"{data}/PG_VERSION").strip()
            if found != major:
                await process.error(self._log(process, "database files are incompatible with server", "FATAL"))
                text = (
                    f"The data directory was initialized by PostgreSQL version {found}, which is not compatible with "
                )
                await process.error(self._log(process, f"{text}this version {self.version}.", "DETAIL"))
                return 1
            server.load()
            self._read_rules(process, server)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "invalid data"
            await process.error(f'postgres: could not access directory "{data}": {reason}\n')
            return 2
        server.settings.update(settings)
        try:
            listener = self._listen(process, server, port, "0.0.0.0")
        except OSError as error:
            await process.error(self._log(process, f'could not bind IPv4 address "0.0.0.0": {error.strerror}'))
            await process.error(self._log(process, "could not create any TCP/IP sockets", "FATAL"))
            return 1
        server.log(f'listening on IPv4 address "0.0.0.0", port {port}')
        server.log(f'listening on Unix socket "/var/run/postgresql/.s.PGSQL.{port}"')
        server.log(f"database system was shut down at {stamp(process, '%Y-%m-%d %H:%M:%S')} UTC")
        server.log("database system is ready to accept connections")
        await stop.wait()
        listener.close()
        kind = {Signals.SIGTERM: "smart", Signals.SIGINT: "fast"}.get(Signals(stop.value), "immediate")
        server.log(f"received {kind} shutdown request")
        server.flush()
        await process.sleep(0.1)
        server.log("database system is shut down")
        return 0

    @staticmethod
    def _read_rules(process: Process, server: PostgresServer) -> None:
        server.rules = []
        for line in process.files.read_text(f"{server.folder}/pg_hba.conf").splitlines():
            words = line.partition("#")[0].split()
            if len(words) == 4 and words[0] == "local":
                server.rules.append((words[0], words[1], words[2], "", words[3]))
            elif len(words) >= 5:
                server.rules.append((words[0], words[1], words[2], words[3], words[4]))

    def _listen(self, process: Process, server: PostgresServer, port: int, address: str) -> Listener:
        async def serve(connection: Connection) -> None:
            await self._converse(server, connection)

        listener = process.container.namespace.listen(process, port, address=address, stream=serve)
        listener.server = server
        return listener

    async def _converse(self, server: PostgresServer, connection: Connection) -> None:
        first = await connection.read()
        dialogue = Dialogue.opened(connection, first, "postgresql")
        if dialogue is None:
            await self._greet(server, connection, first)
            return
        message = await dialogue.hear()
        if message is None:
            return
        hello = message["hello"]
        login = Login(str(hello["user"]), str(hello["password"]), str(hello["database"]))
        address = (
            "" if hello["local"] else "127.0.0.1" if connection.local[0].startswith("127.") else connection.peer[0]
        )
        refused = server.admits(login, address)
        if refused is not None:
            server.log(refused.message, "FATAL")
            shown = SqlError(refused.state, refused.message, severity="FATAL")
            await dialogue.say({"error": shown.text})
            return
        session = server.open(login, address, str(hello["application"]))
        try:
            await dialogue.say({"ok": True})
            await self._serve(server, session, dialogue)
        finally:
            server.close(session)

    @staticmethod
    async def _serve(server: PostgresServer, session: Session, dialogue: Dialogue) -> None:
        execution = Execution(server, session)
        while (message := await dialogue.hear()) is not None:
            if session.ended:
                await dialogue.say({"error": f"FATAL:  {session.ended}", "fatal": True})
                return
            if "describe" in message:
                listing = describe(server, execution.database, message["describe"], message["argument"])
                reply: dict[str, Any] = {name: getattr(listing, name) for name in listing.__slots__}
            else:
                try:
                    answer: Answer = await execution.run(str(message["sql"]))
                    reply = {name: getattr(answer, name) for name in answer.__slots__}
                except SqlError as error:
                    reply = {"error": error.text, "fatal": error.severity == "FATAL"}
            await dialogue.say(reply)
            if reply.get("fatal"):
                return

    @staticmethod
    async def _greet(server: PostgresServer, connection: Connection, head: bytes) -> None:
        """The start-up handshake of a real client; later messages of the wire protocol are not supported."""
        if len(head) < 8:
            return
        code = struct.unpack("!I", head[4:8])[0]
        if code == 80877103:
            await connection.write(b"N")
            await connection.read()
        elif code >> 16 != 3:
            server.log("invalid length of startup packet")
            return
        fields = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user\0\0"
        await connection.write(b"E" + struct.pack("!I", len(fields) + 4) + fields)


def _settings(words: list[str]) -> dict[str, str]:
    """`-c name=value`, `-p port` and `--name=value` of the server's command line."""
    found: dict[str, str] = {}
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word == "-p" and following.isdigit():
            found["port"] = following
        elif word == "-c" and "=" in following:
            name, _, value = following.partition("=")
            found[name] = value
        elif word.startswith("--") and "=" in word:
            name, _, value = word[2:].partition("=")
            found[name] = value
    return found
