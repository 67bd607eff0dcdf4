"""fortio: a server that echoes, and a load tester that opens connections and keeps them.

A few connections it really opens, and opens again when they break; many it keeps in numbers, since nobody needs a
hundred thousand sockets to fill a table. A network namespace has only so many local ports for one peer, so that a
tester holds no more than that.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.machine.networking.connections import Connection
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.network.network_client import NetworkClient
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import stamp

PORT = 8080
_MEMORY = 24 * 1024 * 1024
_PER_CONNECTION = 4 * 1024
_REAL = 2000
"""Up to how many connections are really opened."""
_AGAIN = 5.0
_SWITCHES = frozenset({"keepalive", "quiet", "a", "stdclient", "allow-initial-errors"})


@program("fortio/fortio")
class Fortio(Program):
    entrypoint = ("/usr/bin/fortio",)
    cmd = ("server",)
    base = "distroless"
    follows_tag = False
    binaries = ("/usr/bin/fortio",)
    idle_memory = _MEMORY
    default_version = "1.69.5"

    async def run(self, process: Process) -> int:
        command = process.argv[1] if len(process.argv) > 1 else "server"
        if command == "server":
            return await _serve(process)
        if command == "load":
            return await _load(process, Flags(process.argv[2:], _SWITCHES))
        await process.error(f"Error: unknown command {command}\n")
        return 1


async def _serve(process: Process) -> int:
    async def echo(request: HttpRequest) -> HttpResponse:
        return HttpResponse(200, request.body)

    stop = stop_signal(process)
    process.set_memory(_MEMORY)
    try:
        listener = process.container.namespace.listen(process, PORT, http=echo)
    except OSError as error:
        await process.error(f"{_when(process)} [ERR] http_server.go> {go_bind_error(PORT, error)}\n")
        return 1
    await process.error(f"{_when(process)} [INF] Fortio server listening on tcp [::]:{PORT}\n")
    await until_stopped(process, stop, [listener])
    return 0


async def _load(process: Process, flags: Flags) -> int:
    facade = process.container.network
    url = urlsplit(flags.operands[-1] if flags.operands else "")
    wanted = int(flags.get("c", "4")) if flags.get("c", "4").isdigit() else 4
    if not isinstance(facade, NetworkClient) or not url.hostname:
        await process.error("Error: need a url\n")
        return 1
    stop = stop_signal(process)
    host, port = url.hostname, url.port or 80
    tried = await facade.connect(host, port, timeout=3.0)
    if tried.outcome is not Outcome.CONNECTED or tried.connection is None:
        await process.error(f"{_when(process)} [ERR] Unable to connect to {host}:{port} : {tried.outcome.value}\n")
        return 1
    if wanted <= _REAL:
        await _hold(process, facade, (host, port), wanted, stop)
        tried.connection.close()
        return 0
    network = facade.network
    flows, path = network.fabric.flows, network.reach(facade.host, host, port).path
    held = min(wanted, flows.ports(facade.host).size)
    server = path.host.node if path is not None and path.host is not None else ""
    nodes = {node for node in (process.container.host.node_name, server) if node}
    purpose = f"{facade.host.address}:{process.pid}"
    process.set_memory(_MEMORY + held * _PER_CONNECTION)
    await process.error(f"{_when(process)} [INF] Starting at {flags.get('qps', '8')} qps with {held} thread(s)\n")
    try:
        for node in nodes:
            flows.carry(node, purpose, held)
        await stop.wait()
    finally:
        for node in nodes:
            flows.carry(node, purpose, 0)
        tried.connection.close()
    return 0


async def _hold(
    process: Process, facade: NetworkClient, server: tuple[str, int], wanted: int, stop: Signal[int]
) -> None:
    """Keep so many connections open until told to stop."""
    await process.error(f"{_when(process)} [INF] Starting with {wanted} thread(s)\n")
    held: list[Connection] = []
    try:
        while not stop.is_set:
            held = [one for one in held if one.incoming.writer_open]
            while len(held) < wanted and not stop.is_set:
                made = await facade.connect(*server, timeout=3.0)
                if made.connection is None:
                    await process.error(f"{_when(process)} [ERR] Unable to connect : {made.outcome.value}\n")
                    break
                held.append(made.connection)
            await stop.wait(_AGAIN)
    finally:
        for one in held:
            one.close()


def _when(process: Process) -> str:
    return stamp(process, "%H:%M:%S.%L")
