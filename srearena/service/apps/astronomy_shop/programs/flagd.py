"""flagd: feature flags from a watched file, over RPC and OFREP; and the demo's user interface for them.

The traffic engine calls `evaluate` of the running flagd (`listener.server` of its port); a client that cannot reach it
uses its defaults, as every OpenFeature client does.
"""

from __future__ import annotations

import json
from typing import Any

from srearena.cluster.program_models import (
    Flags,
    Glance,
    GrpcHealth,
    HttpRequest,
    HttpResponse,
    Process,
    Program,
    go_bind_error,
    program,
    stamp,
    stop_signal,
    until_stopped,
)
from srearena.service.apps.astronomy_shop.programs.flag_definitions import BadDefinitions, FlagDefinitions, FlagError

RPC_PORT, MANAGEMENT_PORT, SYNC_PORT = 8013, 8014, 8015
POLL_SECONDS = 2.0
"""The polling interval of the file; the real flagd uses inotify."""
_OFREP = "/ofrep/v1/evaluate/flags"
_RPC = "/flagd.evaluation.v1.Service/"
_STATUS = {"FLAG_NOT_FOUND": 404}


class FlagServer:
    """The flags of one running flagd, from the last valid version of the file."""

    def __init__(self, process: Process, path: str) -> None:
        self._process = process
        self.path = path
        self._glance: Glance | None = None
        self.definitions = FlagDefinitions({})
        self._changes = 0
        self.file_error = ""
        """The error in the current file; the flags then keep their previous values."""

    @property
    def epoch(self) -> int:
        """Increases when a flag may have a new value."""
        self.refresh()
        return self._changes

    def refresh(self) -> bool:
        """Read the file again if it was modified; True where its content changed."""
        if self._glance is not None and self._glance.current():
            return False
        glance = self._process.files.glance(self.path)
        if glance is None or (self._glance is not None and glance.content == self._glance.content):
            self._glance = glance or self._glance
            return False
        self._glance = glance
        self._changes += 1
        try:
            self.definitions = FlagDefinitions.parse(glance.content, self.path)
            self.file_error = ""
        except BadDefinitions as problem:
            self.file_error = str(problem)
        return True

    def evaluate(self, flag: str) -> tuple[Any, str]:
        """The current value of a flag and the name of its variant; nothing where it cannot be evaluated."""
        self.refresh()
        try:
            found = self.definitions.evaluate(flag)
        except FlagError:
            return None, ""
        return found.value, found.variant

    async def answer(self, request: HttpRequest) -> HttpResponse:
        await self._process.spend(0.0001)
        self.refresh()
        if request.path == _OFREP:
            return _json({"flags": [self._evaluated(name)[1] for name in self.definitions.names]})
        if request.path.startswith(f"{_OFREP}/"):
            return _json(*reversed(self._evaluated(request.path.removeprefix(f"{_OFREP}/"))))
        if request.path.startswith(_RPC):
            return self._rpc(request)
        return HttpResponse.text("404 page not found\n", 404)

    def _evaluated(self, name: str) -> tuple[int, dict[str, Any]]:
        try:
            found = self.definitions.evaluate(name)
        except FlagError as error:
            return _STATUS.get(error.code, 400), {"key": name, "errorCode": error.code, "errorDetails": str(error)}
        return 200, {"value": found.value, "key": name, "reason": found.reason, "variant": found.variant}

    def _rpc(self, request: HttpRequest) -> HttpResponse:
        """The JSON form of the Connect RPC: `ResolveBoolean` and similar methods, `ResolveAll`."""
        try:
            name = str(json.loads(request.body or b"{}").get("flagKey", ""))
        except (ValueError, AttributeError):
            return _json({"code": "invalid_argument", "message": "unmarshal message"}, 400)
        status, answer = self._evaluated(name)
        if status != 200:
            return _json({"code": "not_found", "message": answer["errorDetails"]}, status)
        return _json({key: answer[key] for key in ("value", "reason", "variant")})


def _json(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


@program("open-feature/flagd")
class Flagd(Program):
    threads = 11
    entrypoint = ("/flagd-build",)
    cmd = ("start",)
    base = "distroless"
    follows_tag = False
    binaries = ("/flagd-build",)
    ports = (RPC_PORT, MANAGEMENT_PORT, SYNC_PORT)
    idle_cpu = 0.002
    idle_memory = 18 * 1024 * 1024
    default_version = "0.12.9"

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[2:])
        short = {"p": "port", "m": "management-port", "f": "uri", "r": "ofrep-port", "g": "sync-port"}
        for letter, name in short.items():
            if letter in flags.values:
                flags.values.setdefault(name, flags.values[letter])
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        await self._log(
            process, "info", "cmd/start.go:132", f"flagd version: v{self.version} (HEAD), built at: unknown"
        )
        kind, colon, path = flags.get("uri").partition(":")
        if not colon or kind != "file":
            why = "no sync implementation set" if not colon else f"invalid sync uri argument: {flags.get('uri')}"
            await self._log(process, "fatal", "cmd/start.go:174", why)
            return 1
        full = path if path.startswith("/") else f"{process.cwd.rstrip('/')}/{path.removeprefix('./')}"
        server = FlagServer(process, full)
        if process.files.glance(full) is None:
            where = f"error adding watcher {path}: no such file or directory"
            await self._log(process, "fatal", "cmd/start.go:183", f"sync provider Init returned error: {where}")
            return 1
        try:
            listeners = self._listen(process, server, flags)
        except OSError as error:
            await self._log(process, "fatal", "cmd/start.go:183", go_bind_error(flags.port("port", RPC_PORT), error))
            return 1
        await self._log(process, "info", "file/filepath_sync.go:78", f"watching filepath: {path}")
        for listener in listeners:
            where = "Flag IResolver" if listener.port == flags.port("port", RPC_PORT) else "service"
            text = f"{where} listening at [::]:{listener.port}"
            await self._log(process, "info", "flag-evaluation/connect_service.go:250", text)
        server.refresh()
        await self._log_error(process, server)
        process.spawn_thread(self._follow(process, server))
        await until_stopped(process, stop, listeners, grace=0.0)
        return 0

    def _listen(self, process: Process, server: FlagServer, flags: Flags) -> list[Any]:
        async def manage(request: HttpRequest) -> HttpResponse:
            known = request.path in ("/healthz", "/readyz", "/metrics")
            return HttpResponse(200) if known else HttpResponse.text("404 page not found\n", 404)

        async def health(service: str) -> GrpcHealth:
            return GrpcHealth.SERVING

        namespace = process.container.namespace
        rpc = namespace.listen(process, flags.port("port", RPC_PORT), http=server.answer, grpc_health=health)
        listeners = [rpc, namespace.listen(process, flags.port("management-port", MANAGEMENT_PORT), http=manage)]
        listeners.append(
            namespace.listen(process, flags.port("sync-port", SYNC_PORT), http=server.answer, grpc_health=health)
        )
        if "ofrep-port" in flags.values:
            listeners.append(namespace.listen(process, flags.port("ofrep-port", 8016), http=server.answer))
        for listener in listeners:
            listener.server = server
        return listeners

    async def _follow(self, process: Process, server: FlagServer) -> None:
        seen = server.definitions, server.file_error
        while True:
            await process.sleep(POLL_SECONDS)
            server.refresh()
            if (server.definitions, server.file_error) != seen:
                seen = server.definitions, server.file_error
                await self._log(process, "info", "file/filepath_sync.go:118", "filepath event: " + server.path)
                await self._log_error(process, server)

    async def _log_error(self, process: Process, server: FlagServer) -> None:
        if server.file_error:
            await self._log(process, "error", "runtime/runtime.go:153", f"set state: {server.file_error}")

    @staticmethod
    async def _log(process: Process, level: str, caller: str, text: str) -> None:
        moment = stamp(process, "%Y-%m-%dT%H:%M:%S.%LZ")
        line = {"level": level, "ts": moment, "caller": caller, "msg": text}
        await process.error(json.dumps(line, separators=(",", ":")) + "\n")


class FlagdUi(Program):
    """The demo's user interface for flags: it reads and writes the file that flagd watches."""

    threads = 26
    entrypoint = ("/app/bin/server",)
    working_dir = "/app"
    base = "debian"
    follows_tag = False
    binaries = ("/app/bin/server",)
    idle_cpu = 0.003
    idle_memory = 110 * 1024 * 1024
    file = "/app/data/demo.flagd.json"

    async def run(self, process: Process) -> int:
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        text = process.env.get("FLAGD_UI_PORT", "4000")
        port = int(text) if text.isdigit() else 4000

        async def answer(request: HttpRequest) -> HttpResponse:
            await process.spend(0.001)
            return self._answer(process, request)

        try:
            listener = process.container.namespace.listen(process, port, http=answer)
        except OSError as error:
            await process.error(f"[error] Failed to start Ranch listener on port {port}: {error.strerror}\n")
            return 1
        clock = stamp(process, "%H:%M:%S.%L")
        await process.write(f"{clock} [info] Running FlagdUiWeb.Endpoint with Bandit at :::{port} (http)\n")
        await until_stopped(process, stop, [listener])
        return 0

    def _answer(self, process: Process, request: HttpRequest) -> HttpResponse:
        path = request.path.removeprefix("/feature")
        try:
            if path == "/api/read":
                return HttpResponse(200, process.files.read_bytes(self.file), {"Content-Type": "application/json"})
            if path == "/api/write" and request.method == "POST":
                document = json.loads(request.body)
                data = json.dumps(document.get("data", document), indent=2).encode()
                process.files.write_bytes(self.file, data)
                return HttpResponse(200)
        except (OSError, ValueError, AttributeError) as problem:
            return HttpResponse.text(f"{problem}\n", 500)
        if path in ("", "/", "/advanced"):
            page = "<!DOCTYPE html><html><head><title>Flagd Configurator</title></head><body></body></html>\n"
            return HttpResponse.text(page, content_type="text/html; charset=utf-8")
        return HttpResponse.text("Not Found\n", 404)
