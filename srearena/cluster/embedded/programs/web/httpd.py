"""Apache httpd: static files below htdocs, and the CPU-hungry PHP page of the autoscaling walkthrough."""

from __future__ import annotations

import re
from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.root_filesystem import Folder
from srearena.cluster.embedded.programs.serving import until_stopped
from srearena.cluster.embedded.programs.timestamps import common_log_time, stamp
from srearena.cluster.embedded.programs.web.web_root import Webroot

PAGE_COST = 0.05
"""Seconds of processor time that the autoscaling example's page takes: a million square roots in PHP."""


_CONFIG = """\
ServerRoot "/usr/local/apache2"
Listen 80
DocumentRoot "/usr/local/apache2/htdocs"
"""


@program("httpd", "bitnami/apache")
class Httpd(Program):
    cmd = ("httpd-foreground",)
    working_dir = "/usr/local/apache2"
    env: ClassVar = {
        "PATH": "/usr/local/apache2/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HTTPD_PREFIX": "/usr/local/apache2",
    }
    ports = (80,)
    binaries = ("/usr/local/apache2/bin/httpd", "/usr/local/bin/httpd-foreground")
    folders: ClassVar = {"/usr/local/apache2/logs": Folder(0o755)}
    files: ClassVar = {
        "/usr/local/apache2/conf/httpd.conf": _CONFIG,
        "/usr/local/apache2/htdocs/index.html": "<html><body><h1>It works!</h1></body></html>\n",
    }
    stop_signal = Signals.SIGWINCH
    idle_memory = 10 * 1024 * 1024
    default_version = "2.4.65"
    config = "/usr/local/apache2/conf/httpd.conf"

    async def run(self, process: Process) -> int:
        if "-v" in process.argv:
            await process.write(f"Server version: Apache/{self.version} (Unix)\n")
            return 0
        try:
            text = process.files.read_text(self.config)
        except OSError as error:
            await process.error(f"httpd: Could not open configuration file {self.config}: {error.strerror}\n")
            return 1
        ports = [int(port) for port in re.findall(r"(?mi)^\s*Listen\s+(?:[\w.*]+:)?(\d+)", text)]
        root = re.search(r'(?mi)^\s*DocumentRoot\s+"?([^"\n]+)"?', text)
        folder = root.group(1) if root else "/usr/local/apache2/htdocs"
        address = process.container.namespace.address or "127.0.0.1"
        named = (
            "AH00558: httpd: Could not reliably determine the server's fully qualified domain name, "
            f"using {address}. Set the 'ServerName' directive globally to suppress this message\n"
        )
        await process.error(named * 2)
        files = Webroot(process)
        listeners = []
        for port in ports:
            try:
                listeners.append(
                    process.container.namespace.listen(
                        process, port, http=lambda request: self._answer(process, files, folder, request)
                    )
                )
            except OSError as error:
                await process.error(
                    f"(98){error.strerror}: AH00072: make_sock: could not bind to address 0.0.0.0:{port}\n"
                    "no listening sockets available, shutting down\nAH00015: Unable to open logs\n"
                )
                return 1
        if not listeners:
            await process.error("no listening sockets available, shutting down\nAH00015: Unable to open logs\n")
            return 1
        process.set_memory(self.idle_memory)
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT, Signals.SIGWINCH)
        await self._log(
            process, "mpm_event", f"AH00489: Apache/{self.version} (Unix) configured -- resuming normal operations"
        )
        await self._log(process, "core", "AH00094: Command line: 'httpd -D FOREGROUND'")
        await until_stopped(process, stop, listeners)
        gentle = stop.value == Signals.SIGWINCH
        text = (
            "AH00492: caught SIGWINCH, shutting down gracefully" if gentle else "AH00491: caught SIGTERM, shutting down"
        )
        await self._log(process, "mpm_event", text)
        return 0

    async def _log(self, process: Process, module: str, text: str) -> None:
        when = stamp(process, "%a %b %d %H:%M:%S.%f %Y")
        await process.error(f"[{when}] [{module}:notice] [pid {process.pid}:tid {process.pid}] {text}\n")

    async def _answer(self, process: Process, files: Webroot, root: str, request: HttpRequest) -> HttpResponse:
        response = await self.respond(process, files, root, request)
        response.headers = {"Server": f"Apache/{self.version} (Unix)", **response.headers}
        line = f'{request.peer} - - [{common_log_time(process)}] "{request.method} {request.target} {request.version}"'
        await process.write(f"{line} {response.status} {len(response.body)}\n")
        return response

    async def respond(self, process: Process, files: Webroot, root: str, request: HttpRequest) -> HttpResponse:
        await process.spend(0.0001)
        found = files.find(root, request.path)
        if found.response is not None:
            return found.response
        status = 403 if found.error is not None and found.error.errno in (1, 13) else 404
        title = f"{status} {HttpResponse(status).phrase}"
        phrase = HttpResponse(status).phrase
        body = f"<html><head>\n<title>{title}</title>\n</head><body>\n<h1>{phrase}</h1>\n</body></html>\n"
        return HttpResponse(status, body.encode(), {"Content-Type": "text/html; charset=iso-8859-1"})


@program("hpa-example")
class HpaExample(Httpd):
    """registry.k8s.io/hpa-example: every request computes for a while and says OK!"""

    follows_tag = False

    async def respond(self, process: Process, files: Webroot, root: str, request: HttpRequest) -> HttpResponse:
        await process.sleep(process.container.meter.burn(PAGE_COST))
        return HttpResponse(200, b"OK!", {"Content-Type": "text/html; charset=UTF-8"})
