"""TiDB: SQL in front of TiKV. It starts once PD and a store answer, and fails when they do not for long."""

from __future__ import annotations

import json
from typing import ClassVar

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.base import PATH, Program
from srearena.cluster.embedded.node.programs.registry import program
from srearena.cluster.embedded.node.programs.serving import Flags, go_bind_error, stop_signal
from srearena.cluster.embedded.node.programs.tidb.asking import Unanswered, ask
from srearena.cluster.embedded.node.programs.tidb.loglines import unified
from srearena.cluster.embedded.node.sockets import Connection, HttpRequest, HttpResponse, Listener

PORT, STATUS_PORT = 4000, 10080
PATIENCE = 15
"""How often it looks for its store before it gives up."""
BOOTSTRAP_SECONDS = 3.0


@program("pingcap/tidb")
class TidbServer(Program):
    entrypoint = ("/tidb-server",)
    base = "alpine"
    follows_tag = False
    env: ClassVar = {"PATH": PATH}
    tools = ("curl",)
    binaries = ("/tidb-server",)
    ports = (PORT, STATUS_PORT)
    idle_cpu = 0.02
    idle_memory = 210 * 1024 * 1024
    default_version = "8.1.0"

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:])
        stop = stop_signal(process)
        process.set_memory(self.idle_memory // 3)
        await unified(process, "INFO", "printer.go:47", "Welcome to TiDB.", release_version=f"v{self.version}")
        pd = flags.get("path", "127.0.0.1:2379")
        for attempt in range(1, PATIENCE + 1):
            trouble = await self._trouble(process, pd)
            if not trouble:
                break
            await unified(process, "WARN", "tidb.go:460", "open store failed", retry=attempt, error=trouble)
            if await stop.wait(2.0):
                return 0
        else:
            await unified(process, "FATAL", "terror.go:309", "unexpected error", error=trouble)
            return 1
        await process.sleep(BOOTSTRAP_SECONDS)
        return await self._serve(process, pd)

    async def _trouble(self, process: Process, pd: str) -> str:
        """Why no data can be reached; empty where it can."""
        try:
            answer = await ask(process, f"http://{pd}/pd/api/v1/stores")
        except Unanswered as silence:
            return f"[pd] failed to get cluster id: {silence}"
        if any(row["store"]["state_name"] == "Up" for row in answer["stores"]):
            return ""
        return "[tikv:9001]PD server timeout: no store is up"

    async def _serve(self, process: Process, pd: str) -> int:
        listener: Listener | None = None

        async def greet(connection: Connection) -> None:
            version = f"8.0.11-TiDB-v{self.version}".encode()
            body = b"\x0a" + version + b"\0" + bytes((8, 0, 0, 0)) + b"12345678\0" + bytes(40)
            await connection.write(len(body).to_bytes(3, "little") + b"\0" + body)
            while await connection.read():
                pass

        async def status(request: HttpRequest) -> HttpResponse:
            connections = listener.accepted if listener is not None else 0
            if request.path == "/metrics":
                return HttpResponse.text(
                    f"# TYPE tidb_server_connections gauge\ntidb_server_connections {connections}\n"
                )
            if request.path != "/status":
                return HttpResponse.text("404 page not found\n", 404)
            body = {"connections": connections, "version": f"8.0.11-TiDB-v{self.version}", "git_hash": "none"}
            return HttpResponse(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

        stop = stop_signal(process)
        try:
            listener = process.container.namespace.listen(process, PORT, stream=greet)
            process.container.namespace.listen(process, STATUS_PORT, http=status)
        except OSError as error:
            await unified(process, "FATAL", "terror.go:309", "unexpected error", error=go_bind_error(PORT, error))
            return 1
        process.set_memory(self.idle_memory)
        await unified(process, "INFO", "server.go:342", "server is running MySQL protocol", addr=f"0.0.0.0:{PORT}")
        await stop.wait()
        listener.close()
        await unified(process, "INFO", "signal_posix.go:54", "got signal to exit", signal="terminated")
        return 0
