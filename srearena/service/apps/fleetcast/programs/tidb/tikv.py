"""TiKV: a store that reports to PD, and does not start without it."""

from __future__ import annotations

from typing import ClassVar

from srearena.cluster.program_models import (
    PATH,
    Connection,
    Flags,
    HttpRequest,
    HttpResponse,
    Process,
    Program,
    go_bind_error,
    program,
    stop_signal,
)
from srearena.service.apps.fleetcast.programs.tidb.http_client import RequestFailed, request_json
from srearena.service.apps.fleetcast.programs.tidb.loglines import unified

PORT, STATUS_PORT = 20160, 20180
HEARTBEAT_SECONDS = 10.0
PATIENCE = 10
"""How often it asks PD before it gives up."""


@program("pingcap/tikv")
class Tikv(Program):
    threads = 62
    entrypoint = ("/tikv-server",)
    base = "alpine"
    follows_tag = False
    env: ClassVar = {"PATH": PATH}
    tools = ("curl",)
    binaries = ("/tikv-server", "/tikv-ctl")
    ports = (PORT,)
    idle_cpu = 0.02
    idle_memory = 320 * 1024 * 1024
    default_version = "8.1.0"

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:])
        stop = stop_signal(process)
        process.set_memory(self.idle_memory // 4)
        await unified(process, "INFO", "lib.rs:93", "Welcome to TiKV")
        await unified(process, "INFO", "lib.rs:98", "Release Version: ", version=self.version)
        pd = flags.get("pd", "http://127.0.0.1:2379").split(",")[0]
        report = {"address": flags.get("advertise-addr", f"127.0.0.1:{PORT}"), "version": self.version}
        try:
            report["mark"] = _mark(process, flags.get("data-dir", "/var/lib/tikv"))
        except OSError as error:
            await unified(process, "FATAL", "server.rs:330", f"failed to create data dir: {error.strerror}")
            return 1
        for attempt in range(1, PATIENCE + 1):
            try:
                answer = await request_json(process, f"{pd}/pd/api/v1/stores", method="POST", body=report)
                break
            except RequestFailed as failure:
                text = "validate PD endpoints failed"
                await unified(process, "WARN", "util.rs:657", text, err=failure, retry=attempt)
            if await stop.wait(1.0):
                return 0
        else:
            await unified(process, "FATAL", "server.rs:1402", "failed to start: PD is not reachable", endpoints=pd)
            return 1
        return await self._serve(process, pd, report, answer["id"])

    async def _serve(self, process: Process, pd: str, report: dict[str, str], store: int) -> int:
        async def quiet(connection: Connection) -> None:
            while await connection.read():
                pass

        async def status(request: HttpRequest) -> HttpResponse:
            if request.path == "/metrics":
                return HttpResponse.text("# TYPE tikv_engine_size_bytes gauge\ntikv_engine_size_bytes 33554432\n")
            return HttpResponse(200 if request.path == "/status" else 404)

        stop = stop_signal(process)
        try:
            process.container.namespace.listen(process, PORT, stream=quiet)
            process.container.namespace.listen(process, STATUS_PORT, http=status)
        except OSError as error:
            await unified(process, "FATAL", "server.rs:1040", go_bind_error(PORT, error))
            return 1
        process.set_memory(self.idle_memory)
        await unified(process, "INFO", "node.rs:236", "put store to PD", store_id=store, address=report["address"])
        await unified(process, "INFO", "server.rs:1166", "TiKV is ready to serve")
        while not await stop.wait(HEARTBEAT_SECONDS):
            try:
                await request_json(process, f"{pd}/pd/api/v1/stores", method="POST", body=report)
            except RequestFailed as failure:
                await unified(process, "ERROR", "pd.rs:1322", "store heartbeat failed", err=failure, store_id=store)
        await unified(process, "INFO", "signal_handler.rs:21", "receive signal, stopping server...", signal="15")
        return 0


def _mark(process: Process, folder: str) -> str:
    """What tells the data of this volume from those of any other; made with the first start."""
    path = f"{folder}/db/IDENTITY"
    if not process.files.is_file(path):
        process.files.mkdir(f"{folder}/db", 0o755, parents=True)
        process.files.write_bytes(path, f"{process.container.host.random.getrandbits(128):032x}".encode())
    return process.files.read_text(path)
