"""Small HTTP servers made to be looked at: http-echo, whoami, hello-app, echoserver, httpbin."""

from __future__ import annotations

import json
import re
from typing import ClassVar

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import stamp

MAX_DELAY = 10.0


class HttpProgram(Program):
    """A server of one port that answers with `respond`."""

    base = "distroless"
    follows_tag = False
    idle_memory = 6 * 1024 * 1024

    async def serve(self, process: Process, port: int, greeting: str = "") -> int:
        async def answer(request: HttpRequest) -> HttpResponse:
            await process.spend(0.0002)
            return await self.respond(process, request)

        stop = stop_signal(process)
        try:
            listener = process.container.namespace.listen(process, port, http=answer)
        except OSError as error:
            await process.error(f"{stamp(process, '%Y/%m/%d %H:%M:%S')} {go_bind_error(port, error)}\n")
            return 1
        process.set_memory(self.idle_memory)
        if greeting:
            await process.error(f"{greeting}\n")
        await until_stopped(process, stop, [listener])
        return 0

    async def respond(self, process: Process, request: HttpRequest) -> HttpResponse:
        return HttpResponse.text("ok\n")


@program("hashicorp/http-echo")
class HttpEcho(HttpProgram):
    entrypoint = ("/http-echo",)
    user = "65532"
    ports = (5678,)
    binaries = ("/http-echo",)
    default_version = "1.0.0"

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:], frozenset(("version",)))
        if "version" in flags.values:
            await process.error(f"http-echo v{self.version}\n")
            return 0
        text = flags.get("text") or process.env.get("ECHO_TEXT", "")
        if not text:
            await process.error("Missing -text option!\n")
            return 127
        port = flags.port("listen", 5678)
        return await self.serve(
            process, port, f"{stamp(process, '%Y/%m/%d %H:%M:%S')} [INFO] server is listening on :{port}"
        )

    async def respond(self, process: Process, request: HttpRequest) -> HttpResponse:
        flags = Flags(process.argv[1:])
        if request.path == "/health":
            return HttpResponse(200, b'{"status":"ok"}\n', {"Content-Type": "application/json"})
        text = flags.get("text") or process.env.get("ECHO_TEXT", "")
        status = flags.get("status-code", "200")
        body = f"{text}\n".encode()
        when = stamp(process, "%Y/%m/%d %H:%M:%S")
        line = f'{request.header("Host")} {request.peer} "{request.method} {request.target} {request.version}"'
        await process.write(f'{when} {line} {status} {len(body)} "{request.header("User-Agent")}" 20.1µs\n')
        headers = {"X-App-Name": "http-echo", "X-App-Version": self.version}
        return HttpResponse(int(status) if status.isdigit() else 200, body, headers)


@program("traefik/whoami", "containous/whoami")
class Whoami(HttpProgram):
    entrypoint = ("/whoami",)
    base = "scratch"
    ports = (80,)
    binaries = ("/whoami",)

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:], frozenset(("verbose",)))
        variable = process.env.get("WHOAMI_PORT_NUMBER", "80")
        port = flags.port("port", int(variable) if variable.isdigit() else 80)
        return await self.serve(process, port, f"{stamp(process, '%Y/%m/%d %H:%M:%S')} Starting up on port {port}")

    async def respond(self, process: Process, request: HttpRequest) -> HttpResponse:
        if request.path == "/health":
            return HttpResponse(200)
        addresses = "".join(f"IP: {address}\n" for address in ("127.0.0.1", *process.container.namespace.addresses))
        headers = "".join(f"{name}: {value}\n" for name, value in request.headers.items())
        text = (
            f"Hostname: {process.container.host.hostname}\n{addresses}RemoteAddr: {request.peer}:0\n"
            f"{request.method} {request.target} HTTP/1.1\n{headers}\n"
        )
        return HttpResponse.text(text)


@program("google-samples/hello-app", "samples/hello-app")
class HelloApp(HttpProgram):
    entrypoint = ("/hello-app",)
    ports = (8080,)
    binaries = ("/hello-app",)

    async def run(self, process: Process) -> int:
        port = process.env.get("PORT", "8080")
        number = int(port) if port.isdigit() else 8080
        return await self.serve(
            process, number, f"{stamp(process, '%Y/%m/%d %H:%M:%S')} Server listening on port {number}"
        )

    async def respond(self, process: Process, request: HttpRequest) -> HttpResponse:
        await process.error(f"{stamp(process, '%Y/%m/%d %H:%M:%S')} Serving request: {request.path}\n")
        text = f"Hello, world!\nVersion: {self.version}.0.0\nHostname: {process.container.host.hostname}\n"
        return HttpResponse.text(text.replace(".0.0.0", ".0.0"))


@program("echoserver", "ealen/echo-server", "mendhak/http-https-echo")
class EchoServer(HttpProgram):
    entrypoint = ("/usr/local/bin/echoserver",)
    base = "debian"
    ports = (8080,)
    binaries = ("/usr/local/bin/echoserver",)

    async def run(self, process: Process) -> int:
        port = process.env.get("PORT", "80" if "ealen" in self.reference.repository else "8080")
        return await self.serve(process, int(port) if port.isdigit() else 8080, "Generating self-signed cert")

    async def respond(self, process: Process, request: HttpRequest) -> HttpResponse:
        headers = "".join(f"\t{name.lower()}={value}\n" for name, value in sorted(request.headers.items()))
        text = (
            f"\n\nHostname: {process.container.host.hostname}\n\nPod Information:\n\t-no pod information available-\n\n"
            f"Request Information:\n\tclient_address={request.peer}\n\tmethod={request.method}\n"
            f"\treal path={request.target}\n\nRequest Headers:\n{headers}\n"
            f"Request Body:\n\t{request.body.decode(errors='replace') or '-no body in request-'}\n\n"
        )
        return HttpResponse.text(text)


@program("kennethreitz/httpbin", "mccutchen/go-httpbin", "httpbin")
class HttpBin(HttpProgram):
    entrypoint = ("/usr/local/bin/gunicorn",)
    cmd = ("-b", "0.0.0.0:80", "httpbin:app", "-k", "gevent")
    base = "debian"
    binaries = ("/usr/local/bin/gunicorn",)
    ports = (80,)
    env: ClassVar = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    idle_memory = 60 * 1024 * 1024

    async def run(self, process: Process) -> int:
        port = 8080 if "mccutchen" in self.reference.repository else 80
        when = stamp(process, "%Y-%m-%d %H:%M:%S +0000")
        return await self.serve(
            process, port, f"[{when}] [{process.pid}] [INFO] Listening at: http://0.0.0.0:{port} ({process.pid})"
        )

    async def respond(self, process: Process, request: HttpRequest) -> HttpResponse:
        status = re.match(r"/status/(\d{3})$", request.path)
        if status is not None:
            return HttpResponse(int(status.group(1)))
        delay = re.match(r"/delay/(\d+(?:\.\d+)?)$", request.path)
        if delay is not None:
            await process.sleep(min(MAX_DELAY, float(delay.group(1))))
        facts = {
            "args": {name: values[-1] for name, values in request.query.items()},
            "headers": request.headers,
            "origin": request.peer,
            "url": f"http://{request.header('Host')}{request.target}",
        }
        if request.body:
            facts["data"] = request.body.decode(errors="replace")
        return HttpResponse(200, (json.dumps(facts, indent=2) + "\n").encode(), {"Content-Type": "application/json"})
