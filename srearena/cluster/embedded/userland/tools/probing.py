"""traceroute, tracepath, mtr and nmap: the path to a host, and its open ports."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import pstdev

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool

MAX_HOPS = 30
SILENT_SECONDS = 5.0
"""How long a probe without an answer is waited for, by default of traceroute."""
SCANNED = (
    *(21, 22, 23, 25, 53, 80, 81, 88, 110, 111, 113, 135, 139, 143, 179, 199, 389, 443, 445, 465, 514, 587, 631, 636),
    *(873, 990, 993, 995, 1080, 1433, 1521, 2049, 2181, 3000, 3128, 3306, 3389, 4443, 5000, 5432, 5601, 5672, 5900),
    *(6379, 7001, 8000, 8008, 8080, 8081, 8086, 8088, 8090, 8443, 8888, 9000, 9090, 9092, 9100, 9200, 9999, 10000),
    *(11211, 15672, 27017, 50000, 50051),
)
"""Ports that nmap tries here by default, of the thousand most common ones."""
_SERVICES = {22: "ssh", 53: "domain", 80: "http", 443: "https", 3306: "mysql", 5432: "postgresql", 5672: "amqp"}
_SERVICES |= {6379: "redis", 8080: "http-proxy", 8443: "https-alt", 9090: "zeus-admin", 9092: "XmlIpcRegSvc"}
_SERVICES |= {9100: "jetdirect", 11211: "memcache", 27017: "mongod", 8081: "blackice-icecap", 50051: "unknown"}


def _hops(own: str, target: str) -> list[str]:
    """Routers between a pod and an address: the bridge of its node, and the tunnel's end at the other node."""
    network, other = own.rpartition(".")[0], target.rpartition(".")[0]
    if network == other:
        return []
    first = f"{network}.1"
    return [first, f"{other}.0"] if other.split(".")[:2] == network.split(".")[:2] else [first]


async def _address(process: Process, host: str, name: str) -> str | None:
    if host.replace(".", "").isdigit():
        return host
    found = await process.container.network.resolve(host)
    if not found.addresses:
        await process.error(f"{name}: unknown host {host}\n")
        return None
    return found.addresses[0]


@tool("traceroute", "tracepath")
async def traceroute(process: Process, args: list[str]) -> int:
    options = parse(args, "nIT46dFrvU", "mqwpfsiz")
    if not options.operands:
        raise UsageError("usage: traceroute [-n] [-m max_ttl] host")
    host = options.operands[0]
    address = await _address(process, host, process.name)
    if address is None:
        return 2
    most = int(options.value("m")) if options.value("m").isdigit() else MAX_HOPS
    await process.write(f"traceroute to {host} ({address}), {most} hops max, 46 byte packets\n")
    hops = _hops(process.container.namespace.address, address)
    for number, hop in enumerate(hops[:most], 1):
        await process.write(f"{number:2d}  {_three(hop, 0.02 * number)}\n")
    number = len(hops) + 1
    result = await process.container.network.ping(address, timeout=SILENT_SECONDS)
    if number <= most and result.outcome is Outcome.CONNECTED:
        await process.write(f"{number:2d}  {_three(address, result.seconds * 1000)}\n")
        return 0
    for silent in range(number, most + 1):
        await process.sleep(SILENT_SECONDS)
        await process.write(f"{silent:2d}  *  *  *\n")
    return 0


def _three(address: str, milliseconds: float) -> str:
    times = "  ".join(f"{milliseconds * factor:.3f} ms" for factor in (1.0, 0.8, 0.75))
    return f"{address} ({address})  {times}"


@tool("mtr")
async def mtr(process: Process, args: list[str]) -> int:
    options = parse(args, "rnwbezT4u6j", "cisPmG", long={"report": "r", "report-wide": "w", "report-cycles=": "c"})
    if not options.operands:
        raise UsageError("mtr: no host specified")
    if not {"r", "w"} & options.flags:
        await process.error("mtr: unable to open terminal\n")
        return 1
    host = options.operands[0]
    address = await _address(process, host, "mtr")
    if address is None:
        return 1
    count = int(options.value("c")) if options.value("c").isdigit() else 10
    at = datetime.fromtimestamp(process.clock.now, UTC).strftime("%Y-%m-%dT%H:%M:%S+0000")
    times: list[float] = []
    for _ in range(count):
        began = process.clock.now
        result = await process.container.network.ping(address, timeout=1.0)
        if result.outcome is Outcome.CONNECTED:
            times.append(result.seconds * 1000)
        await process.sleep(max(0.0, 1.0 - (process.clock.now - began)))
    name = process.container.host.hostname
    lines = [f"Start: {at}", f"HOST: {name:<28} Loss%   Snt   Last   Avg  Best  Wrst StDev"]
    hops = _hops(process.container.namespace.address, address)
    lines += [_hop(number, hop, [0.05 * number] * count, count) for number, hop in enumerate(hops, 1)]
    lines.append(_hop(len(hops) + 1, address if times else "???", times, count))
    await process.write("\n".join(lines) + "\n")
    return 0


def _hop(number: int, address: str, times: list[float], sent: int) -> str:
    lost = 100 * (sent - len(times)) / max(1, sent)
    figures = (times[-1], sum(times) / len(times), min(times), max(times), pstdev(times)) if times else (0.0,) * 5
    return f"{number:3d}.|-- {address:<26} {lost:5.1f}% {sent:5d} " + " ".join(f"{figure:5.1f}" for figure in figures)


@tool("nmap")
async def nmap(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-T")]
    options = parse([w for w in words if w not in ("-Pn", "-sT", "-sS", "-sV", "-sn")], "nvFAO46", "p")
    if not options.operands:
        raise UsageError("nmap: no targets were specified")
    started = process.clock.now
    at = datetime.fromtimestamp(started, UTC).strftime("%Y-%m-%d %H:%M UTC")
    await process.write(f"Starting Nmap 7.97 ( https://nmap.org ) at {at}\n")
    up = 0
    for host in options.operands:
        address = await _address(process, host, "nmap")
        if address is None:
            continue
        ports = _ports(options.value("p")) if "p" in options else list(SCANNED)
        states = {} if "-sn" in words else {port: await _state(process, address, port) for port in ports}
        if "-sn" in words:
            alive = (await process.container.network.ping(address, timeout=2.0)).outcome is Outcome.CONNECTED
        else:
            alive = "-Pn" in words or any(state != "filtered" for state in states.values())
        if not alive:
            continue
        up += 1
        await process.write(_report(host, address, states, every="p" in options))
    if not up:
        await process.write("Note: Host seems down. If it is really up, but blocking our ping probes, try -Pn\n")
    noun = "IP address" if len(options.operands) == 1 else "IP addresses"
    hosts = "1 host up" if up == 1 else f"{up} hosts up"
    taken = process.clock.now - started
    await process.write(f"Nmap done: {len(options.operands)} {noun} ({hosts}) scanned in {taken:.2f} seconds\n")
    return 0


def _ports(text: str) -> list[int]:
    ports: list[int] = []
    for part in text.split(","):
        low, dash, high = part.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise UsageError(f'nmap: Found no matches for the service mask "{part}" and your specified protocols')
        ports += range(int(low), min(int(high) if dash else int(low), int(low) + 2000) + 1)
    return ports


async def _state(process: Process, address: str, port: int) -> str:
    result = await process.container.network.connect(address, port, timeout=1.0)
    if result.connection is not None:
        result.connection.close()
    return {Outcome.CONNECTED: "open", Outcome.REFUSED: "closed"}.get(result.outcome, "filtered")


def _report(host: str, address: str, states: dict[int, str], *, every: bool) -> str:
    name = host if host == address else f"{host} ({address})"
    lines = [f"Nmap scan report for {name}", "Host is up (0.00012s latency)."]
    shown = {port: state for port, state in states.items() if every or state == "open"}
    hidden = len(states) - len(shown)
    if hidden:
        lines.append(f"Not shown: {hidden} closed tcp ports (conn-refused)")
    if shown:
        lines.append(f"\n{'PORT':<9} {'STATE':<8} SERVICE")
        lines += [
            f"{f'{port}/tcp':<9} {state:<8} {_SERVICES.get(port, 'unknown')}" for port, state in sorted(shown.items())
        ]
    return "\n".join(lines) + "\n\n"
