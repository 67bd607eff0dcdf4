"""iperf3: throughput between two pods, as TCP would reach it over the path's delay and loss."""

from __future__ import annotations

from math import sqrt

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import Connection
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool

PORT = 5201
_SEGMENT = 1398.0
"""Bytes of data in a segment of the pods' network (an MTU of 1450)."""
_WINDOW = 3.0e6
"""Bytes that the kernel's default buffers let be under way."""
_WIRE = 1.15e9
"""Bytes per second of a 10 Gbit/s interface, less headers."""
_GREETING = b"\x09"
"""The server's state PARAM_EXCHANGE, with which a test begins."""
_PATIENCE = 5.0
_PINGS = 20
_LEAST = 1e-5
_REASONS = {Outcome.REFUSED: "Connection refused", Outcome.TIMEOUT: "Operation timed out"}
_REASONS |= {Outcome.NO_ROUTE: "Host is unreachable", Outcome.NXDOMAIN: "Bad address"}
_LINE = "- - - - - - - - - - - - - - - - - - - - - - - - -\n"
_LONG = {"server": "s", "client=": "c", "time=": "t", "port=": "p", "reverse": "R", "json": "J", "version": "v"}


@tool("iperf3", "iperf")
async def iperf3(process: Process, args: list[str]) -> int:
    options = parse(args, "sRJ1Dv46u", "cptPiwbf", long=_LONG)
    port = options.number("p", PORT)
    if "v" in options:
        await process.write("iperf 3.17.1 (cJSON 1.7.15)\n")
        return 0
    if "s" in options:
        return await _serve(process, port)
    if "c" not in options:
        raise UsageError("parameter error - must either be a client (-c) or server (-s)")
    return await _measure(process, options.value("c"), port, options.number("t", 10))


async def _serve(process: Process, port: int) -> int:
    async def accept(connection: Connection) -> None:
        await connection.write(_GREETING)
        connection.close()

    try:
        process.container.namespace.listen(process, port, stream=accept)
    except OSError as error:
        await process.error(f"iperf3: error - unable to start listener for connections: {error.strerror}\n")
        return 1
    bar = "-" * 59
    await process.write(f"{bar}\nServer listening on {port} (test #1)\n{bar}\n")
    while True:
        await process.sleep(3600.0)


async def _measure(process: Process, host: str, port: int, seconds: int) -> int:
    network = process.container.network
    result = await network.connect(host, port, timeout=10.0)
    if result.outcome is not Outcome.CONNECTED or result.connection is None:
        reason = _REASONS.get(result.outcome, "Network unreachable")
        cause = "unable to connect to server - server may have stopped running or use a different port, firewall issue"
        await process.error(f"iperf3: error - {cause}, etc.: {reason}\n")
        return 1
    connection = result.connection
    peer, local = connection.peer, connection.local
    greeted = await connection.incoming.readable(_PATIENCE) and await connection.read(1) == _GREETING
    connection.close()
    if not greeted:
        cause = "unable to receive control message - port may not be available, the other side may have stopped running"
        await process.error(f"iperf3: error - {cause}, etc.: Connection reset by peer\n")
        return 1
    await process.write(f"Connecting to host {host}, port {port}\n")
    await process.write(f"[  5] local {local[0]} port {local[1]} connected to {peer[0]} port {peer[1]}\n")
    await process.write("[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n")
    times = []
    for _ in range(_PINGS):
        answer = await network.ping(result.address, timeout=1.0)
        if answer.outcome is Outcome.CONNECTED:
            times.append(answer.seconds)
    if not times:
        await process.error("iperf3: error - control socket has closed unexpectedly\n")
        return 1
    lost = 1 - len(times) / _PINGS
    trip = max(_LEAST, sum(times) / len(times))
    # Of the loss that pings meet on both ways, data meets half; then TCP's rate follows Mathis' formula.
    rate = min(_WIRE, _WINDOW / trip, _SEGMENT / trip * sqrt(1.5 / (lost / 2)) if lost else _WIRE)
    total, again = 0.0, 0
    for second in range(max(1, min(seconds, 600))):
        await process.sleep(1.0)
        sent = rate * (0.96 + 0.08 * process.container.random.random())
        retried = int(sent / _SEGMENT * lost / 2)
        total, again = total + sent, again + retried
        window = f"{min(_WINDOW, sent * trip) / 1024:.0f} KBytes"
        await process.write(
            f"[  5] {second:5.2f}-{second + 1:<5.2f} sec  {_amounts(sent, 1)}  {retried:3d}   {window}\n"
        )
    process.container.namespace.carried.add(total / 40, total / _SEGMENT / 2, total, total / _SEGMENT)
    await process.write(f"{_LINE}[ ID] Interval           Transfer     Bitrate         Retr\n")
    interval = f"[  5]  0.00-{float(seconds):<5.2f} sec  {_amounts(total, seconds)}"
    await process.write(
        f"{interval}  {again:3d}             sender\n{interval}                  receiver\n\niperf Done.\n"
    )
    return 0


def _amounts(size: float, seconds: int) -> str:
    bits = size * 8 / max(1, seconds)
    transfer = f"{size / 2**30:5.2f} GBytes" if size >= 2**30 else f"{size / 2**20:5.1f} MBytes"
    speed = f"{bits / 1e9:5.2f} Gbits/sec" if bits >= 1e9 else f"{bits / 1e6:5.1f} Mbits/sec"
    return f"{transfer}  {speed}"
