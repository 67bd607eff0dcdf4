"""MongoDB: JSON log lines, the data directory, a port that recognises lost web browsers."""

from __future__ import annotations

import json
from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.accounts import Account
from srearena.cluster.embedded.node.programs.base import Program
from srearena.cluster.embedded.node.programs.registry import program
from srearena.cluster.embedded.node.programs.rootfs import Folder
from srearena.cluster.embedded.node.programs.serving import Flags
from srearena.cluster.embedded.node.programs.timestamps import stamp
from srearena.cluster.embedded.node.reachability import Outcome
from srearena.cluster.embedded.node.sockets import Connection, HttpResponse

PORT = 27017
START_SECONDS = 0.8
_LOST = "It looks like you are trying to access MongoDB over HTTP on the native driver port.\r\n"


@program("mongo", "mongodb", "bitnami/mongodb", "mongodb/mongodb-community-server")
class Mongo(Program):
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("mongod",)
    base = "ubuntu"
    ports = (PORT,)
    binaries = ("/usr/local/bin/docker-entrypoint.sh", "/usr/bin/mongod", "/usr/bin/mongosh", "/usr/bin/mongo")
    accounts_added = (Account("mongodb", 999, 999, "/data/db"),)
    folders: ClassVar = {"/data/db": Folder(0o755, 999, 999), "/data/configdb": Folder(0o755, 999, 999)}
    idle_cpu = 0.004
    idle_memory = 90 * 1024 * 1024
    default_version = "8.0.15"

    async def run(self, process: Process) -> int:
        if process.binary in ("mongosh", "mongo"):
            return await self._client(process)
        words = process.argv[1:]
        if (
            process.binary == "docker-entrypoint.sh"
            and words
            and words[0] not in ("mongod",)
            and not words[0].startswith("-")
        ):
            process.execute(words, process.env)
        return await self._server(process, words)

    async def _log(
        self, process: Process, number: int, component: str, text: str, context: str = "initandlisten", **facts: object
    ) -> None:
        record: dict[str, object] = {
            "t": {"$date": stamp(process, "%Y-%m-%dT%H:%M:%S.%L+00:00")},
            "s": "I",
            "c": component,
            "id": number,
            "ctx": context,
            "msg": text,
        }
        if facts:
            record["attr"] = facts
        await process.write(json.dumps(record, separators=(",", ":")) + "\n")

    async def _server(self, process: Process, words: list[str]) -> int:
        flags = Flags(words, frozenset(("auth", "quiet", "bind_ip_all")))
        port = flags.port("port", PORT)
        data = flags.get("dbpath", "/data/db")
        host = process.container.host.hostname
        await self._log(
            process,
            4615611,
            "CONTROL",
            "MongoDB starting",
            pid=process.pid,
            port=port,
            dbPath=data,
            architecture="64-bit",
            host=host,
        )
        await self._log(process, 23403, "CONTROL", "Build Info", buildInfo={"version": self.version})
        try:
            process.files.mkdir(data, 0o755, parents=True)
            process.files.write_bytes(f"{data}/mongod.lock", f"{process.pid}\n".encode())
            if not process.files.is_file(f"{data}/WiredTiger"):
                process.files.write_bytes(f"{data}/WiredTiger", b"WiredTiger\n")
        except OSError as error:
            reason = f"IllegalOperation: Attempted to create a lock file on a read-only directory: {data}"
            if error.errno == 28:
                reason = f"WiredTiger error: {error.strerror}"
            await self._log(process, 20557, "CONTROL", "DBException in initAndListen, terminating", error=reason)
            await self._log(process, 23138, "CONTROL", "Shutting down", exitCode=100)
            return 100
        await process.sleep(START_SECONDS)

        async def serve(connection: Connection) -> None:
            first = await connection.read()
            if first.split(b" ")[0] in (b"GET", b"POST", b"HEAD"):
                await connection.write(HttpResponse.text(_LOST).encode())
                return
            while await connection.read():
                await process.spend()

        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        try:
            listener = process.container.namespace.listen(process, port, stream=serve)
        except OSError as error:
            text = f"SocketException: {error.strerror}"
            await self._log(process, 23024, "CONTROL", "Failed to set up listener", error=text)
            return 48
        process.set_memory(self.idle_memory)
        await self._log(process, 23015, "NETWORK", "Listening on", "listener", address="0.0.0.0")
        await self._log(process, 23016, "NETWORK", "Waiting for connections", "listener", port=port, ssl="off")
        await stop.wait()
        listener.close()
        await self._log(
            process,
            23377,
            "CONTROL",
            "Received signal",
            "SignalHandler",
            signal=stop.value,
            error=Signals(stop.value).name,
        )
        await self._log(process, 23138, "CONTROL", "Shutting down", "SignalHandler", exitCode=0)
        return 0

    async def _client(self, process: Process) -> int:
        flags = Flags(process.argv[1:], frozenset(("quiet", "norc")))
        host, _, port = flags.get("host", "127.0.0.1").partition(":")
        number = flags.port("port", int(port) if port.isdigit() else PORT)
        result = await process.container.network.connect(host, number, timeout=5.0)
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            await process.error(f"MongoNetworkError: connect ECONNREFUSED {result.address or host}:{number}\n")
            return 1
        result.connection.close()
        if "ping" in flags.get("eval"):
            await process.write("{ ok: 1 }\n")
        return 0
