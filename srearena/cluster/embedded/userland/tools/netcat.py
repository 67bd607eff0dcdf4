"""nc and telnet: raw connections."""

from __future__ import annotations

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.machine.files.streams import CHUNK
from srearena.cluster.embedded.machine.networking.reachability import ConnectResult, Outcome
from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.idling import duration
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.urls import REASONS
from srearena.cluster.embedded.userland.tools.wording import speaks_busybox

MAX_PORTS = 1024


def _ports(text: str) -> list[int]:
    low, dash, high = text.partition("-")
    if not low.isdigit() or (dash and not high.isdigit()):
        raise UsageError(f"port number invalid: {text}")
    last = int(high) if dash else int(low)
    if not 0 <= int(low) <= last <= 65535:
        raise UsageError(f"port number invalid: {text}")
    return list(range(int(low), min(last, int(low) + MAX_PORTS) + 1))


@tool("nc")
async def nc(process: Process, args: list[str]) -> int:
    options = parse(args, "zvlnuNkdDtrq46hUC", "wpsieq")
    timeout = duration(options.value("w")) if "w" in options else None
    if "l" in options:
        wanted = options.value("p") or (options.operands[-1] if options.operands else "0")
        return await _listen(process, _ports(wanted)[0])
    if len(options.operands) < 2:
        raise UsageError("missing port number" if options.operands else "usage: nc [-zvlunw] [host] [port]")
    host, *texts = options.operands
    protocol = "UDP" if "u" in options else "TCP"
    status = 0
    ports = [port for text in texts for port in _ports(text)]
    for port in ports:
        if protocol == "UDP":
            status = await _datagrams(process, host, port, scan="z" in options, verbose="v" in options)
            continue
        result = await process.container.network.connect(host, port, protocol, timeout=timeout)
        connection = result.connection
        if result.outcome is not Outcome.CONNECTED or connection is None:
            await _complain(process, host, port, result, verbose="v" in options)
            status = 1
            continue
        if "v" in options:
            await process.error(_opened_text(process, host, port, result))
        if "z" in options:
            connection.close()
            continue
        status = await _relay(process, connection, timeout)
    return status


def _opened_text(process: Process, host: str, port: int, result: ConnectResult) -> str:
    if speaks_busybox(process):
        return f"{host} ({result.address}:{port}) open\n"
    shown = host if host == result.address else f"{host} ({result.address})"
    return f"Connection to {shown} {port} port [tcp/*] succeeded!\n"


async def _complain(process: Process, host: str, port: int, result: ConnectResult, *, verbose: bool) -> None:
    if result.outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
        text = (
            f"bad address '{host}'"
            if speaks_busybox(process)
            else f'getaddrinfo for host "{host}" port {port}: {REASONS[result.outcome]}'
        )
        await process.error(f"nc: {text}\n")
        return
    reason = REASONS[result.outcome]
    if speaks_busybox(process):
        await process.error(f"nc: {host} ({result.address}:{port}): {reason}\n")
        return
    if verbose:
        shown = host if host == result.address else f"{host} ({result.address})"
        await process.error(f"nc: connect to {shown} port {port} (tcp) failed: {reason}\n")


async def _datagrams(process: Process, host: str, port: int, *, scan: bool, verbose: bool) -> int:
    if scan:
        if verbose:
            await process.error(f"{host} ({host}:{port}) open\n")
        return 0
    while data := await process.read(CHUNK):
        answer = await process.container.network.datagram(host, port, data)
        if answer is None:
            return 1
        await process.write(answer)
    return 0


async def _relay(process: Process, connection: Connection, idle: float | None) -> int:
    """Standard input to the peer, the peer to standard output, until the peer is done."""

    async def send() -> None:
        try:
            while data := await process.read(CHUNK):
                await connection.write(data)
            connection.close_writing()
        except OSError:
            return

    sender = process.spawn_thread(send())
    try:
        while True:
            if not await connection.incoming.readable(idle):
                return 1
            data = await connection.read(CHUNK)
            if not data:
                return 0
            await process.write(data)
    except ConnectionResetError:
        # Every netcat takes an error of a read for the end: a server that does not read its input resets.
        return 0
    finally:
        sender.cancel()
        connection.close()


async def _listen(process: Process, port: int) -> int:
    """Serve one connection."""
    arrived: Signal[Connection] = Signal(process.clock)
    finished: Signal[None] = Signal(process.clock)

    async def accept(connection: Connection) -> None:
        arrived.set(connection)
        await finished.wait()

    try:
        listener = process.container.namespace.listen(process, port, stream=accept)
    except OSError as error:
        text = f"bind: {error.strerror}" if speaks_busybox(process) else str(error.strerror)
        await process.error(f"nc: {text}\n")
        return 1
    await arrived.wait()
    listener.close()
    try:
        return await _relay(process, arrived.value, None)
    finally:
        finished.set(None)


@tool("telnet")
async def telnet(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    if not words:
        raise UsageError("usage: telnet HOST [PORT]")
    host, port = words[0], int(words[1]) if len(words) > 1 and words[1].isdigit() else 23
    result = await process.container.network.connect(host, port, timeout=127.0)
    if result.outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
        await process.error(f"telnet: bad address '{host}'\n")
        return 1
    if result.connection is None:
        reason = REASONS[result.outcome]
        await process.error(f"telnet: can't connect to remote host ({result.address}): {reason}\n")
        return 1
    await process.write("Connected to " + host + "\n" if speaks_busybox(process) else f"Connected to {host}.\n")
    status = await _relay(process, result.connection, None)
    await process.error("Connection closed by foreign host\n")
    return status
