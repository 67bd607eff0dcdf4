"""The default program of an image: a server that listens on the ports of the pod's spec.

It is honest about nothing else: it starts, answers every request with 200, stops when asked to, and does no work.
"""

from __future__ import annotations

import errno
from signal import Signals

from srearena.cluster.embedded.machine.networking.sockets import GrpcHealth, HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program

_PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
_HANDLERS = ("httpGet", "tcpSocket", "grpc")
_CANNOT_EXECUTE = 126
"""The exit status of shells and container runtimes for a file that is no program of this machine."""


def declared_ports(process: Process) -> list[tuple[int, str]]:
    """Where an unknown server probably listens: its declared ports, else $PORT, else where its probes knock."""
    config = process.container.config
    ports = [(int(port["containerPort"]), str(port.get("protocol", "TCP"))) for port in config.ports]
    if ports:
        return ports
    wanted = process.env.get("PORT", "")
    if wanted.isdigit() and 0 < int(wanted) < 65536:
        return [(int(wanted), "TCP")]
    spec = dig(process.container.host.pod, "spec", default={})
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    own: Obj = next((c for c in containers if c.get("name") == config.name), {})
    knocks = [dig(own, probe, handler, "port") for probe in _PROBES for handler in _HANDLERS]
    return [(port, "TCP") for port in dict.fromkeys(knocks) if isinstance(port, int)]


async def serve_declared_ports(process: Process, *, memory: int) -> int:
    """Listen, answer, and end with 0 on SIGTERM."""
    stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
    process.set_memory(memory)

    async def answer(request: HttpRequest) -> HttpResponse:
        await process.spend(0.001)
        # It has no metrics, so a scrape is empty.
        return HttpResponse.text("" if request.path == "/metrics" else "ok\n")

    async def health(service: str) -> GrpcHealth:
        return GrpcHealth.SERVING

    async def echo(data: bytes, peer: str) -> bytes | None:
        return data

    bound: list[str] = []
    for port, protocol in declared_ports(process):
        try:
            if protocol == "UDP":
                process.container.namespace.listen(process, port, protocol="UDP", datagram=echo)
            else:
                process.container.namespace.listen(process, port, protocol=protocol, http=answer, grpc_health=health)
        except OSError as error:
            reason = "address already in use" if error.errno == errno.EADDRINUSE else str(error.strerror).lower()
            await process.error(f"listen {protocol.lower()} :{port}: bind: {reason}\n")
            return 1
        bound.append(f":{port}")
    await process.write(f"listening on {', '.join(bound)}\n" if bound else "started\n")
    await stop.wait()
    return 0


async def run_unmodelled(process: Process, *, memory: int) -> int:
    """Run a file of which only the runtime is modelled.

    As the container's own command it is a server like any other. Executed by hand it is refused: what it would print,
    and whether it would end, is not known.
    """
    ancestor = process
    while ancestor.parent is not None:
        ancestor = ancestor.parent
    if ancestor is process.container.main:
        return await serve_declared_ports(process, memory=memory)
    await process.error(f"{process.argv[0]}: exec format error\n")
    return _CANNOT_EXECUTE


@program("*")
class GenericServer(Program):
    entrypoint = ("/app/server",)
    working_dir = "/app"
    base = "debian"
    binaries = ("/app/server",)
    idle_cpu = 0.001
    idle_memory = 32 * 1024 * 1024

    async def run(self, process: Process) -> int:
        return await serve_declared_ports(process, memory=self.idle_memory)
