"""metrics-server as a program: ready once it has scraped the nodes for the first time.

What it would serve is read from the nodes' own meters by the API; the program decides whether that is available.
"""

from __future__ import annotations

from signal import Signals

from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program

_MEMORY = 32 * 1024 * 1024
_FIRST_SCRAPE = 15.0
_DEFAULT_PORT = 10250


@program("metrics-server")
class MetricsServer(Program):
    entrypoint = ("/metrics-server",)
    binaries = ("/metrics-server",)
    idle_cpu = 0.003
    idle_memory = _MEMORY

    async def run(self, process: Process) -> int:
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        process.set_memory(_MEMORY)
        started = process.clock.now

        async def answer(request: HttpRequest) -> HttpResponse:
            scraped = process.clock.now >= started + _FIRST_SCRAPE
            if request.path.startswith("/readyz") and not scraped:
                return HttpResponse.text("[-]metric-storage-ready failed: reason withheld\n", 500)
            return HttpResponse.text("ok")

        identity = TlsIdentity(("metrics-server", "localhost"), "metrics-server-ca")
        process.container.namespace.listen(process, _port(process.argv), http=answer, tls=identity)
        await process.error(f"Serving securely on [::]:{_port(process.argv)}\n")
        await stop.wait()
        return 0


def _port(arguments: list[str]) -> int:
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name == "--secure-port" and value.isdigit():
            return int(value)
    return _DEFAULT_PORT
