"""The agnhost image and the liveness example: one binary that does what its first argument says."""

from __future__ import annotations

from typing import ClassVar

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import Connection, HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import (
    COMMANDS,
    MEMORY,
    command,
    hostname,
    log_time,
    serve,
)
from srearena.cluster.embedded.programs.base import PATH, Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped

HEALTHY_SECONDS = 10.0
"""How long the liveness server is well before it starts to fail."""


@program("agnhost")
class Agnhost(Program):
    entrypoint: ClassVar[tuple[str, ...]] = ("/agnhost",)
    cmd: ClassVar[tuple[str, ...]] = ("pause",)
    base = "alpine"
    follows_tag = False
    binaries = ("/agnhost", "/agnhost-2", "/server")
    tools = ("curl", "dig", "bash")
    env: ClassVar = {"PATH": PATH}
    idle_memory = MEMORY
    default_version = "2.53"

    async def run(self, process: Process) -> int:
        name = "liveness" if process.binary == "server" else process.argv[1] if len(process.argv) > 1 else ""
        if name in COMMANDS:
            return await COMMANDS[name](process, Flags(process.argv[2:]))
        if name in ("", "help", "--help"):
            await process.write("Usage:\n  app [command]\n")
            return 0
        await process.error(f'Error: unknown command "{name}" for "app"\nRun \'app --help\' for usage.\n')
        return 1


@program("liveness")
class LivenessExample(Agnhost):
    """The image of the liveness-probe page: the same server, without an entrypoint."""

    entrypoint = ()
    cmd = ("/server",)


@command("pause")
async def pause(process: Process, flags: Flags) -> int:
    await process.write("Paused\n")
    stop = stop_signal(process)
    await stop.wait()
    return 0


@command("liveness")
async def liveness(process: Process, flags: Flags) -> int:
    async def answer(request: HttpRequest) -> HttpResponse:
        age = process.clock.now - process.started_at
        if request.path == "/started":
            return HttpResponse.text(f"{age}s")
        if request.path == "/redirect":
            location = request.query.get("loc", [""])[-1]
            return HttpResponse(302, headers={"Location": location})
        if request.path == "/healthz" and age > HEALTHY_SECONDS:
            return HttpResponse(500, f"error: {age}s".encode())
        return HttpResponse(200, b"ok" if request.path == "/healthz" else b"")

    return await serve(process, {8080: answer})


@command("serve-hostname")
async def serve_hostname(process: Process, flags: Flags) -> int:
    port = flags.port("port", 9376)
    name = hostname(process)

    async def answer(request: HttpRequest) -> HttpResponse:
        return HttpResponse.text(name)

    async def stream(connection: Connection) -> None:
        await connection.write(name.encode())
        connection.close()

    async def datagram(data: bytes, peer: str) -> bytes:
        return name.encode()

    raw = {protocol: flags.get(protocol) == "true" for protocol in ("tcp", "udp")}
    if not any(raw.values()):
        return await serve(process, {port: answer})
    stop = stop_signal(process)
    process.set_memory(MEMORY)
    listeners = []
    try:
        if raw["tcp"]:
            listeners.append(process.container.namespace.listen(process, port, stream=stream))
        if raw["udp"]:
            listeners.append(process.container.namespace.listen(process, port, protocol="UDP", datagram=datagram))
    except OSError as error:
        await process.error(f"{log_time(process)} {go_bind_error(port, error)}\n")
        return 1
    await until_stopped(process, stop, listeners)
    return 0


@command("connect")
async def connect(process: Process, flags: Flags) -> int:
    target = flags.operands[0] if flags.operands else ""
    host, _, port = target.rpartition(":")
    if not host or not port.isdigit():
        await process.error(f"OTHER: address {target}: missing port in address\n")
        return 1
    seconds = flags.get("timeout", "0s").removesuffix("s")
    timeout = float(seconds) if seconds.replace(".", "").isdigit() and float(seconds) > 0 else None
    protocol = flags.get("protocol", "tcp").upper()
    if protocol == "UDP":
        data = f"{flags.get('udp-data', 'hostname')}\n".encode()
        reply = await process.container.network.datagram(host, int(port), data, timeout=timeout or 3600.0)
        if reply is None:
            await process.error("TIMEOUT\n")
        return int(reply is None)
    result = await process.container.network.connect(host, int(port), protocol, timeout=timeout)
    if result.outcome is Outcome.CONNECTED:
        if result.connection is not None:
            result.connection.close()
        return 0
    words = {Outcome.TIMEOUT: "TIMEOUT", Outcome.REFUSED: "REFUSED", Outcome.NXDOMAIN: "DNS"}
    await process.error(f"{words.get(result.outcome, 'OTHER')}\n")
    return 1
