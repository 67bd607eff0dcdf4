"""fortio: an echo server, and a load tester that opens connections and keeps them open.

Up to a limit it opens real connections, and again when they break; more than that it only declares as a number, since
filling a connection tracking table needs no sockets. The local ports of a network namespace for one peer are the limit
of its connections.
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
_MAX_SOCKETS = 2000
"""The largest number of connections that are opened as sockets."""
_RETRY_SECONDS = 5.0
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
    requested = int(flags.get("c", "4")) if flags.get("c", "4").isdigit() else 4
    if not isinstance(facade, NetworkClient) or not url.hostname:
        await process.error("Error: need a url\n")
        return 1
    stop = stop_signal(process)
    host, port = url.hostname, url.port or 80
    first = await facade.connect(host, port, timeout=3.0)
    if first.outcome is not Outcome.CONNECTED or first.connection is None:
        await process.error(f"{_when(process)} [ERR] Unable to connect to {host}:{port} : {first.outcome.value}\n")
        return 1
    if requested <= _MAX_SOCKETS:
        await _keep_open(process, facade, (host, port), requested, stop)
        first.connection.close()
        return 0
    network = facade.network
    flows, path = network.fabric.flows, network.reach(facade.host, host, port).path
    count = min(requested, flows.ports(facade.host).size)
    server = path.host.node if path is not None and path.host is not None else ""
    nodes = {node for node in (process.container.host.node_name, server) if node}
    purpose = f"{facade.host.address}:{process.pid}"
    process.set_memory(_MEMORY + count * _PER_CONNECTION)
    await process.error(f"{_when(process)} [INF] Starting at {flags.get('qps', '8')} qps with {count} thread(s)\n")
    try:
        for node in nodes:
            flows.carry(node, purpose, count)
        await stop.wait()
    finally:
        for node in nodes:
            flows.carry(node, purpose, 0)
        first.connection.close()
    return 0


async def _keep_open(
    process: Process, facade: NetworkClient, server: tuple[str, int], requested: int, stop: Signal[int]
) -> None:
    """Keep a number of connections open until the stop signal."""
    await process.error(f"{_when(process)} [INF] Starting with {requested} thread(s)\n")
    connections: list[Connection] = []
    try:
        while not stop.is_set:
            connections = [one for one in connections if one.incoming.writer_open]
            while len(connections) < requested and not stop.is_set:
                result = await facade.connect(*server, timeout=3.0)
                if result.connection is None:
                    await process.error(f"{_when(process)} [ERR] Unable to connect : {result.outcome.value}\n")
                    break
                connections.append(result.connection)
            await stop.wait(_RETRY_SECONDS)
    finally:
        for one in connections:
            one.close()


def _when(process: Process) -> str:
    return stamp(process, "%H:%M:%S.%L")
