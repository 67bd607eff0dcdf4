"""metrics-server as a program: ready once it has scraped the nodes for the first time.

What it would serve is read from the nodes' own meters by the API; the program decides whether that is available.
"""

from __future__ import annotations

from signal import Signals

from srearena.cluster.embedded.component_logs import METRICS_SERVER, ComponentLogs
from srearena.cluster.embedded.machine.containers.runtime import Sandbox
from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.timestamps import klog_line

_MEMORY = 32 * 1024 * 1024
_FIRST_SCRAPE = 15.0
_DEFAULT_PORT = 10250
_GREETING = (
    "serving.go:380] Generated self-signed cert (/tmp/apiserver.crt, /tmp/apiserver.key)",
    "handler.go:288] Adding GroupVersion metrics.k8s.io v1beta1 to ResourceManager",
    'requestheader_controller.go:180] "Starting controller" name="RequestHeaderAuthRequestController"',
)


@program("metrics-server")
class MetricsServer(Program):
    entrypoint = ("/metrics-server",)
    binaries = ("/metrics-server",)
    threads = 10
    idle_cpu = 0.003
    idle_network = (880.0, 170.0)
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
        log = process.container.log

        def write(severity: str, text: str) -> None:
            place, _, message = text.partition("] ")
            log.write("stderr", klog_line(process, severity, place, message).encode())

        for line in _GREETING:
            write("I", line)
        write("I", f"secure_serving.go:213] Serving securely on [::]:{_port(process.argv)}")
        host = process.container.host
        logs = host.machine.component_logs if isinstance(host, Sandbox) else ComponentLogs()
        logs.open(METRICS_SERVER, write)
        try:
            await stop.wait()
        finally:
            logs.close(METRICS_SERVER, write)
        return 0


def _port(arguments: list[str]) -> int:
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name == "--secure-port" and value.isdigit():
            return int(value)
    return _DEFAULT_PORT
