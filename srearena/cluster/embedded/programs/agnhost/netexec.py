"""agnhost netexec: a server over HTTP and UDP that tells who it is, dials others and runs commands."""

from __future__ import annotations

import json

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.machine.files.streams import Capture, NullFile
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.execution import ExecError
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import MEMORY, command, hostname, identity, log_time
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import stamp
from srearena.cluster.embedded.programs.web.echo_servers import MAX_DELAY

_DIAL_SECONDS = 5.0


@command("netexec")
async def netexec(process: Process, flags: Flags) -> int:
    http_port = flags.port("http-port", 8080)
    udp_port = -1 if flags.get("udp-port") == "-1" else flags.port("udp-port", 8081)
    certificate = None
    if flags.get("tls-cert-file"):
        certificate = await identity(process, flags)
        if certificate is None:
            return 1
    stop = stop_signal(process)
    server = _Server(process, http_port, udp_port, stop)
    override = flags.get("http-override")

    async def answer(request: HttpRequest) -> HttpResponse:
        return await server.answer(HttpRequest("GET", override, peer=request.peer) if override else request)

    process.set_memory(MEMORY)
    namespace = process.container.namespace
    try:
        listeners = [namespace.listen(process, http_port, http=answer, tls=certificate)]
        for address in flags.get("udp-listen-addresses", "0.0.0.0").split(",") if udp_port > 0 else ():
            listeners.append(
                namespace.listen(process, udp_port, address=address, protocol="UDP", datagram=server.datagram)
            )
    except OSError as error:
        await process.error(f"{log_time(process)} {go_bind_error(http_port, error)}\n")
        return 1
    when = log_time(process)
    await process.error(f"{when} Started HTTP server on port {http_port}\n")
    if udp_port > 0:
        await process.error(f"{when} Started UDP server on port  {udp_port}\n")
    delay = flags.get("delay-shutdown", "0")
    if delay.isdigit() and int(delay) > 0:
        await stop.wait()
        await process.error(f"{log_time(process)} Sleeping {delay} seconds before terminating...\n")
        await process.sleep(int(delay))
    await until_stopped(process, stop, listeners)
    return 0


class _Server:
    def __init__(self, process: Process, http_port: int, udp_port: int, stop: Signal[int]) -> None:
        self._process = process
        self._http_port = http_port
        self._udp_port = udp_port
        self._stop = stop

    async def datagram(self, data: bytes, peer: str) -> bytes | None:
        text = data.decode(errors="replace").strip().lower()
        if text.startswith("echo "):
            return text.partition(" ")[2].encode()
        answers = {"hostname": hostname(self._process), "clientip": f"{peer}:0", "serverport": str(self._udp_port)}
        return answers[text].encode() if text in answers else None

    async def answer(self, request: HttpRequest) -> HttpResponse:
        process = self._process
        query = {name: values[-1] for name, values in request.query.items()}
        await process.error(f"{log_time(process)} {request.method} {request.target}\n")
        match request.path:
            case "/hostname" | "/hostName":
                return HttpResponse.text(hostname(process))
            case "/clientip":
                return HttpResponse.text(f"{request.peer}:0")
            case "/serverport":
                return HttpResponse.text(str(self._http_port))
            case "/echo":
                code = query.get("code", "200")
                return HttpResponse.text(query.get("msg", ""), int(code) if code.isdigit() else 200)
            case "/healthz":
                return HttpResponse(200)
            case "/readyz":
                stopping = self._stop.is_set
                return HttpResponse.text("shutting down", 503) if stopping else HttpResponse.text("ok")
            case "/header":
                key = query.get("key", "")
                return HttpResponse.text(request.header(key) if key else json.dumps(request.headers))
            case "/delay":
                await process.sleep(min(MAX_DELAY, float(query.get("seconds", "0") or 0)))
                return HttpResponse(200)
            case "/redirect":
                code = query.get("code", "302")
                return HttpResponse(
                    int(code) if code.isdigit() else 302, headers={"Location": query.get("location", "")}
                )
            case "/exit" | "/shutdown":
                code = query.get("code", "0")
                process.end(int(code) if code.isdigit() else 0)
                return HttpResponse(200)
            case "/shell":
                return await self._shell(query.get("shellCommand") or query.get("cmd", ""))
            case "/dial":
                return await self._dial(query)
        return HttpResponse.text(f"NOW: {stamp(process, '%Y-%m-%d %H:%M:%S.%f')} +0000 UTC m=+1.0")

    async def _shell(self, text: str) -> HttpResponse:
        """Run a command; its output and errors go into one document."""
        output, result = Capture(), {}
        try:
            child = self._process.spawn(["/bin/sh", "-c", text], fds={0: NullFile(), 1: output, 2: output})
            code = await self._process.wait(child)
        except ExecError as error:
            return HttpResponse.text(json.dumps({"error": str(error)}))
        if output.data:
            result["output"] = output.data.decode(errors="replace")
        if code:
            result["error"] = f"exit status {code}"
        return HttpResponse.text(json.dumps(result, separators=(",", ":")))

    async def _dial(self, query: dict[str, str]) -> HttpResponse:
        host, port, tries = query.get("host", ""), query.get("port", "80"), query.get("tries", "1")
        path = query.get("request", "")
        if not tries.isdigit() or not port.isdigit() or not path:
            what = "tries parameter is invalid." if not tries.isdigit() else "request parameter not specified."
            return HttpResponse.text(f"{what} <nil>\n", 400)
        udp = query.get("protocol", "http").lower() == "udp"
        responses, errors = [], []
        for _ in range(int(tries)):
            if udp:
                answer = await self._process.container.network.datagram(
                    host, int(port), path.encode(), timeout=_DIAL_SECONDS
                )
                good, text = bool(answer), (answer or b"").decode(errors="replace")
                problem = "reading from udp connection failed. err:'i/o timeout'"
            else:
                request = HttpRequest("GET", f"/{path}", {"Host": f"{host}:{port}"})
                result = await self._process.container.network.http(host, int(port), request, timeout=_DIAL_SECONDS)
                good = result.response is not None
                text = result.response.body.decode(errors="replace") if result.response is not None else ""
                problem = f'Get "http://{host}:{port}/{path}": {result.outcome}'
            if good:
                responses.append(text)
            else:
                errors.append(problem)
        document = {**({"responses": responses} if responses else {}), **({"errors": errors} if errors else {})}
        return HttpResponse.text(json.dumps(document, separators=(",", ":")))
