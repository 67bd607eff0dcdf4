"""PostgreSQL: initialises its data directory, insists on a password, opens its port, says so in its own words."""

from __future__ import annotations

import errno
import struct
from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.accounts import Account
from srearena.cluster.embedded.node.programs.base import Program
from srearena.cluster.embedded.node.programs.registry import program
from srearena.cluster.embedded.node.programs.rootfs import Folder
from srearena.cluster.embedded.node.programs.timestamps import stamp
from srearena.cluster.embedded.node.reachability import Outcome
from srearena.cluster.embedded.node.sockets import Connection

PORT = 5432
INIT_SECONDS = 2.0
START_SECONDS = 0.3
_NO_PASSWORD = """\
Error: Database is uninitialized and superuser password is not specified.
       You must specify POSTGRES_PASSWORD to a non-empty value for the
       superuser. For example, "-e POSTGRES_PASSWORD=password" on "docker run".

       You may also use "POSTGRES_HOST_AUTH_METHOD=trust" to allow all
       connections without a password. This is *not* recommended.

       See PostgreSQL documentation about "trust":
       https://www.postgresql.org/docs/current/auth-trust.html
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
        "/docker-entrypoint-initdb.d": Folder(),
    }
    stop_signal = Signals.SIGINT
    idle_memory = 45 * 1024 * 1024
    default_version = "17.6"

    async def run(self, process: Process) -> int:
        if process.binary in ("pg_isready", "psql"):
            return await self._client(process)
        words = process.argv[1:]
        if process.binary == "docker-entrypoint.sh":
            if words and words[0] != "postgres" and not words[0].startswith("-"):
                process.execute(words, process.env)
            status = await self._initialise(process)
            if status:
                return status
        return await self._server(process, words)

    async def _initialise(self, process: Process) -> int:
        data = process.env.get("PGDATA", "/var/lib/postgresql/data")
        files = process.files
        try:
            files.mkdir(data, 0o700, parents=True)
            if files.is_file(f"{data}/PG_VERSION"):
                await process.write(
                    "\nPostgreSQL Database directory appears to contain a database; Skipping initialization\n\n"
                )
                return 0
            trusting = process.env.get("POSTGRES_HOST_AUTH_METHOD") == "trust"
            if (
                not process.env.get("POSTGRES_PASSWORD")
                and not trusting
                and not process.env.get("POSTGRES_PASSWORD_FILE")
            ):
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
            files.write_bytes(f"{data}/PG_VERSION", f"{self.version.partition('.')[0]}\n".encode())
            files.write_bytes(f"{data}/postgresql.conf", b"listen_addresses = '*'\nmax_connections = 100\n")
            files.truncate(f"{data}/base", 40 * 1024 * 1024)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                await process.error("initdb: error: could not write to file: No space left on device\n")
            else:
                await process.error(f"mkdir: cannot create directory '{data}': {error.strerror}\n")
            return 1
        await process.write("Success. You can now start the database server using:\n\n")
        await process.write("\nPostgreSQL init process complete; ready for start up.\n\n")
        return 0

    async def _log(self, process: Process, text: str, level: str = "LOG") -> None:
        await process.error(f"{stamp(process, '%Y-%m-%d %H:%M:%S.%L')} UTC [{process.pid}] {level}:  {text}\n")

    async def _server(self, process: Process, words: list[str]) -> int:
        port = PORT
        for index, word in enumerate(words):
            if word == "-p" and index + 1 < len(words) and words[index + 1].isdigit():
                port = int(words[index + 1])
        if process.credentials.uid == 0 and process.binary == "postgres":
            await process.error(
                '"root" execution of the PostgreSQL server is not permitted.\n'
                "The server must be started under an unprivileged user ID to prevent\n"
                "possible system security compromise.\n"
            )
            return 1
        major = self.version
        await self._log(
            process, f"starting PostgreSQL {major} (Debian {major}-1.pgdg120+1) on x86_64-pc-linux-gnu, 64-bit"
        )
        await process.sleep(START_SECONDS)

        async def serve(connection: Connection) -> None:
            await self._converse(process, connection)

        stop = process.catch(Signals.SIGTERM, Signals.SIGINT, Signals.SIGQUIT)
        try:
            listener = process.container.namespace.listen(process, port, stream=serve)
        except OSError as error:
            await self._log(process, f'could not bind IPv4 address "0.0.0.0": {error.strerror}')
            await self._log(process, "could not create any TCP/IP sockets", "FATAL")
            return 1
        process.argv = ["postgres"]
        process.set_memory(self.idle_memory)
        await self._log(process, f'listening on IPv4 address "0.0.0.0", port {port}')
        await self._log(process, f'listening on Unix socket "/var/run/postgresql/.s.PGSQL.{port}"')
        await self._log(process, f"database system was shut down at {stamp(process, '%Y-%m-%d %H:%M:%S')} UTC")
        await self._log(process, "database system is ready to accept connections")
        await stop.wait()
        listener.close()
        kind = {Signals.SIGTERM: "smart", Signals.SIGINT: "fast"}.get(Signals(stop.value), "immediate")
        await self._log(process, f"received {kind} shutdown request")
        await process.sleep(0.1)
        await self._log(process, "database system is shut down")
        return 0

    async def _converse(self, process: Process, connection: Connection) -> None:
        """The start-up handshake; further than that nobody is let in without knowing the protocol."""
        head = await connection.read(8)
        if len(head) < 8:
            return
        code = struct.unpack("!I", head[4:8])[0]
        if code == 80877103:
            await connection.write(b"N")
            await connection.read()
        elif code >> 16 != 3:
            await self._log(process, "invalid length of startup packet")
            return
        fields = b"SFATAL\0VFATAL\0C28P01\0Mpassword authentication failed for user\0\0"
        await connection.write(b"E" + struct.pack("!I", len(fields) + 4) + fields)

    async def _client(self, process: Process) -> int:
        args = process.argv[1:]
        values = {arg: args[i + 1] for i, arg in enumerate(args[:-1]) if arg in ("-h", "-p", "-U", "-d", "-c", "-t")}
        host = values.get("-h", process.env.get("PGHOST", ""))
        port = values.get("-p", process.env.get("PGPORT", "5432"))
        number = int(port) if port.isdigit() else PORT
        result = await process.container.network.connect(host or "127.0.0.1", number, timeout=3.0)
        if result.connection is not None:
            result.connection.close()
        place = f"{host or '/var/run/postgresql'}:{number}"
        if process.binary == "pg_isready":
            up = result.outcome is Outcome.CONNECTED
            await process.write(f"{place} - {'accepting connections' if up else 'no response'}\n")
            return 0 if up else 2
        if result.outcome is not Outcome.CONNECTED:
            await process.error(_psql_error(host, result.address, number))
            return 2
        if values.get("-c", "").strip().rstrip(";").lower() == "select 1":
            await process.write(" ?column? \n----------\n        1\n(1 row)\n\n")
            return 0
        await process.error("psql: error: this server keeps no tables\n")
        return 1


def _psql_error(host: str, address: str, port: int) -> str:
    if not host:
        return (
            f'psql: error: connection to server on socket "/var/run/postgresql/.s.PGSQL.{port}" failed: '
            "No such file or directory\n\tIs the server running locally and accepting connections on that socket?\n"
        )
    return (
        f'psql: error: connection to server at "{host}" ({address}), port {port} failed: Connection refused\n'
        "\tIs the server running on that host and accepting TCP/IP connections?\n"
    )
