"""TiDB: an SQL server on TiKV. It starts once PD and a store respond, and exits when they do not for long."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from srearena.cluster.program_models import (
    PATH,
    Connection,
    Flags,
    HttpRequest,
    HttpResponse,
    Process,
    Program,
    Programs,
    go_bind_error,
    per_cluster,
    stop_signal,
)
from srearena.service.apps.fleetcast.programs.tidb.http_client import RequestFailed, request_json
from srearena.service.apps.fleetcast.programs.tidb.loglines import unified
from srearena.service.apps.fleetcast.programs.tidb.storage import TidbSql, TikvData
from srearena.service.products.mysql.connections import serve_connection

PORT, STATUS_PORT = 4000, 10080
PATIENCE = 15
"""Attempts to reach a store before it exits."""
BOOTSTRAP_SECONDS = 3.0
LOOK_SECONDS = 10.0


class NoStore(Exception):
    """No store is reachable; the text says why."""


class TidbServer(Program):
    threads = 16
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
    data: ClassVar[TikvData]
    """The data of the cluster's TiKV stores."""

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:])
        stop = stop_signal(process)
        process.set_memory(self.idle_memory // 3)
        await unified(process, "INFO", "printer.go:47", "Welcome to TiDB.", release_version=f"v{self.version}")
        pd = flags.get("path", "127.0.0.1:2379")
        for attempt in range(1, PATIENCE + 1):
            try:
                sql = await self._open(process, pd)
                break
            except NoStore as trouble:
                why = str(trouble)
            await unified(process, "WARN", "tidb.go:460", "open store failed", retry=attempt, error=why)
            if await stop.wait(2.0):
                return 0
        else:
            await unified(process, "FATAL", "terror.go:309", "unexpected error", error=why)
            return 1
        await process.sleep(BOOTSTRAP_SECONDS)
        process.set_memory(self.idle_memory)
        return await self._serve(process, pd, sql)

    async def _open(self, process: Process, pd: str) -> TidbSql:
        """Create a server on the stores' data; NoStore where they are unreachable."""
        marks = await _marks(process, pd)
        shared = self.data.find(marks)
        server = TidbSql(process, self.version, PORT, shared)
        if shared is None:
            self.data.begin(marks, server)
        return server

    async def _serve(self, process: Process, pd: str, sql: TidbSql) -> int:
        async def speak(connection: Connection) -> None:
            await serve_connection(sql, connection)

        async def status(request: HttpRequest) -> HttpResponse:
            connections = len(sql.sessions)
            if request.path == "/metrics":
                sql.settle()
                lines = ["# TYPE tidb_server_connections gauge", f"tidb_server_connections {connections}"]
                lines.append("# TYPE tidb_executor_statement_total counter")
                lines += [
                    f'tidb_executor_statement_total{{type="{word.capitalize()}"}} {statements}'
                    for word, statements in sql.commands.items()
                ]
                return HttpResponse.text("\n".join(lines) + "\n")
            if request.path != "/status":
                return HttpResponse.text("404 page not found\n", 404)
            body = {"connections": connections, "version": sql.version, "git_hash": "none"}
            return HttpResponse(200, json.dumps(body).encode(), {"Content-Type": "application/json"})

        await self._seen(process, pd, sql)
        stop = stop_signal(process)
        try:
            listener = process.container.namespace.listen(process, PORT, stream=speak)
            process.container.namespace.listen(process, STATUS_PORT, http=status)
        except OSError as error:
            await unified(process, "FATAL", "terror.go:309", "unexpected error", error=go_bind_error(PORT, error))
            return 1
        listener.server = sql
        await unified(process, "INFO", "server.go:342", "server is running MySQL protocol", addr=f"0.0.0.0:{PORT}")
        while not await stop.wait(LOOK_SECONDS):
            await self._look(process, pd, sql)
        listener.close()
        await unified(process, "INFO", "signal_posix.go:54", "got signal to exit", signal="terminated")
        return 0

    async def _seen(self, process: Process, pd: str, sql: TidbSql) -> list[str]:
        """Return the marks of the volumes behind the stores that are up, and note the members of the cluster."""
        up = await _up_stores(process, pd)
        own = process.container.host.hostname
        sql.members = [
            ("tidb", f"{own}:{PORT}", f"{own}:{STATUS_PORT}", self.version),
            ("pd", pd, pd, self.version),
            *(
                ("tikv", str(store["address"]), f"{str(store['address']).rpartition(':')[0]}:20180", self.version)
                for store in up
            ),
        ]
        return [store["deploy_path"] for store in up]

    async def _look(self, process: Process, pd: str, sql: TidbSql) -> None:
        """Check the stores, and share the data with new ones."""
        try:
            marks = await self._seen(process, pd, sql)
            if self.data.find(marks) is None:
                raise NoStore("[tikv:9005]Region is unavailable")
        except NoStore as trouble:
            await unified(process, "WARN", "backoff.go:158", "backoffer.maxSleep 40000ms is exceeded", errors=trouble)
            sql.available = False
            return
        sql.available = True


@per_cluster
def add_tidb(programs: Programs) -> None:
    """TiDB servers of one cluster share the data of its TiKV stores."""
    programs.register(type("TidbServer", (TidbServer,), {"data": TikvData()}), "pingcap/tidb")


async def _marks(process: Process, pd: str) -> list[str]:
    """The marks of the volumes behind the stores that are up."""
    return [store["deploy_path"] for store in await _up_stores(process, pd)]


async def _up_stores(process: Process, pd: str) -> list[dict[str, Any]]:
    try:
        answer = await request_json(process, f"http://{pd}/pd/api/v1/stores")
    except RequestFailed as failure:
        raise NoStore(f"[pd] failed to get cluster id: {failure}") from None
    stores = [row["store"] for row in answer["stores"]]
    up = [store for store in stores if store["state_name"] == "Up"]
    if not up:
        raise NoStore("[tikv:9001]PD server timeout: no store is up")
    return up
