"""agnhost, the many-in-one image of Kubernetes' own tests, and the liveness example."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import PATH, Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.system.admission_server import serve_reviews
from srearena.cluster.embedded.programs.timestamps import stamp
from srearena.cluster.embedded.programs.web.echo_servers import MAX_DELAY

Answer = Callable[[Process, HttpRequest], Coroutine[Any, Any, HttpResponse]]
HEALTHY_SECONDS = 10.0
"""How long the liveness server is well before it starts to fail."""


@program("agnhost")
class Agnhost(Program):
    entrypoint: ClassVar[tuple[str, ...]] = ("/agnhost",)
    cmd: ClassVar[tuple[str, ...]] = ("pause",)
    base = "alpine"
    follows_tag = False
    binaries = ("/agnhost", "/server")
    tools = ("curl", "dig", "bash")
    env: ClassVar = {"PATH": PATH}
    idle_memory = 8 * 1024 * 1024
    default_version = "2.53"

    async def run(self, process: Process) -> int:
        if process.binary == "server":
            return await self._serve(process, 8080, self._liveness)
        command, flags = (process.argv[1] if len(process.argv) > 1 else ""), Flags(process.argv[2:])
        if command == "netexec":
            return await self._netexec(process, flags)
        if command in ("serve-hostname", "test-webserver"):
            port = flags.port("port", 9376 if command == "serve-hostname" else 80)
            return await self._serve(process, port, self._hostname)
        if command == "liveness":
            return await self._serve(process, 8080, self._liveness)
        if command == "connect":
            return await self._connect(process, flags)
        if command == "webhook":
            return await serve_reviews(process, flags)
        if command == "pause":
            await process.write("Paused\n")
            stop = stop_signal(process)
            await stop.wait()
            return 0
        if command in ("", "help", "--help"):
            await process.write("Usage:\n  app [command]\n")
            return 0
        await process.error(f'Error: unknown command "{command}" for "app"\nRun \'app --help\' for usage.\n')
        return 1

    async def _serve(self, process: Process, port: int, answer: Answer) -> int:
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        try:
            listener = process.container.namespace.listen(process, port, http=lambda request: answer(process, request))
        except OSError as error:
            await process.error(f"{stamp(process, '%Y/%m/%d %H:%M:%S')} {go_bind_error(port, error)}\n")
            return 1
        await until_stopped(process, stop, [listener])
        return 0

    async def _liveness(self, process: Process, request: HttpRequest) -> HttpResponse:
        age = process.clock.now - process.started_at
        if request.path == "/started":
            return HttpResponse.text(f"{age}s")
        if request.path == "/healthz" and age > HEALTHY_SECONDS:
            return HttpResponse(500, f"error: {age}s".encode())
        return HttpResponse(200, b"ok" if request.path == "/healthz" else b"")

    async def _hostname(self, process: Process, request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, process.container.host.hostname.encode())

    async def _netexec(self, process: Process, flags: Flags) -> int:
        http_port, udp_port = flags.port("http-port", 8080), flags.port("udp-port", 8081)
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        namespace = process.container.namespace

        async def answer(request: HttpRequest) -> HttpResponse:
            return await self._execute(process, request)

        async def datagram(data: bytes, peer: str) -> bytes | None:
            return process.container.host.hostname.encode() if data.strip().lower() == b"hostname" else data

        try:
            listeners = [namespace.listen(process, http_port, http=answer)]
            if udp_port > 0 and flags.get("udp-port") != "-1":
                listeners.append(namespace.listen(process, udp_port, protocol="UDP", datagram=datagram))
        except OSError as error:
            await process.error(f"{stamp(process, '%Y/%m/%d %H:%M:%S')} {go_bind_error(http_port, error)}\n")
            return 1
        when = stamp(process, "%Y/%m/%d %H:%M:%S")
        await process.error(
            f"{when} Started HTTP server on port {http_port}\n{when} Started UDP server on port  {udp_port}\n"
        )
        await until_stopped(process, stop, listeners)
        return 0

    async def _execute(self, process: Process, request: HttpRequest) -> HttpResponse:
        query = {name: values[-1] for name, values in request.query.items()}
        when = stamp(process, "%Y/%m/%d %H:%M:%S")
        await process.error(f"{when} {request.method} {request.target}\n")
        match request.path:
            case "/hostname" | "/hostName":
                return HttpResponse.text(process.container.host.hostname)
            case "/clientip":
                return HttpResponse.text(f"{request.peer}:0")
            case "/echo":
                code = query.get("code", "200")
                return HttpResponse.text(query.get("msg", ""), int(code) if code.isdigit() else 200)
            case "/healthz":
                return HttpResponse(200)
            case "/header":
                return HttpResponse.text(request.header(query.get("key", "")))
            case "/delay":
                await process.sleep(min(MAX_DELAY, float(query.get("seconds", "0") or 0)))
                return HttpResponse(200)
            case "/exit":
                code = query.get("code", "0")
                process.end(int(code) if code.isdigit() else 0)
                return HttpResponse(200)
            case "/dial":
                return await self._dial(process, query)
        return HttpResponse.text(f"NOW: {stamp(process, '%Y-%m-%d %H:%M:%S.%f')} +0000 UTC m=+1.0")

    async def _dial(self, process: Process, query: dict[str, str]) -> HttpResponse:
        port = query.get("port", "80")
        request = HttpRequest("GET", "/" + query.get("request", ""), {"Host": query.get("host", "")})
        result = await process.container.network.http(
            query.get("host", ""), int(port) if port.isdigit() else 80, request, timeout=5.0
        )
        if result.response is None:
            return HttpResponse.text(f'{{"errors":["{result.outcome}"]}}')
        return HttpResponse.text(f'{{"responses":["{result.response.body.decode(errors="replace")}"]}}')

    async def _connect(self, process: Process, flags: Flags) -> int:
        target = flags.operands[0] if flags.operands else ""
        host, _, port = target.rpartition(":")
        if not host or not port.isdigit():
            await process.error(f"OTHER: address {target}: missing port in address\n")
            return 1
        seconds = flags.get("timeout", "0s").removesuffix("s")
        timeout = float(seconds) if seconds.replace(".", "").isdigit() and float(seconds) > 0 else None
        protocol = flags.get("protocol", "tcp").upper()
        result = await process.container.network.connect(host, int(port), protocol, timeout=timeout)
        if result.outcome is Outcome.CONNECTED:
            if result.connection is not None:
                result.connection.close()
            return 0
        words = {Outcome.TIMEOUT: "TIMEOUT", Outcome.REFUSED: "REFUSED", Outcome.NXDOMAIN: "DNS"}
        await process.error(f"{words.get(result.outcome, 'OTHER')}\n")
        return 1


@program("liveness")
class LivenessExample(Agnhost):
    """The image of the liveness-probe page: the same server, without an entrypoint."""

    entrypoint = ()
    cmd = ("/server",)
