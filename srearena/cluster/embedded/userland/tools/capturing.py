"""tcpdump, lsof and strace: packets of a pod's connections, and open files of its processes.

Packets are those of the load, which sends no bytes: each of its requests on a connection is a packet there, one back
and an acknowledgement, at the rate and with the sizes that the interface counters have. Packets of single requests are
not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from random import Random
from signal import Signals
from typing import NamedTuple

from srearena.cluster.embedded.machine.networking.sockets import BulkConnection, NetworkNamespace
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.options import parse
from srearena.cluster.embedded.userland.tools.registry import tool

_SECONDS = 1.0
_BUFFER = 2000
"""Packets of a second that fit into the kernel's buffer; more are dropped. Chosen: what a terminal can print."""
_REQUEST_BYTES = 400
Test = Callable[["Packet"], bool]


class Packet(NamedTuple):
    time: float
    source: tuple[str, int]
    target: tuple[str, int]
    direction: str
    length: int
    connection: tuple[tuple[str, int], tuple[str, int]]


class FilterError(Exception):
    """The expression is not understood."""


class _Filter:
    """A filter of pcap: hosts, ports, protocols, and their combinations."""

    def __init__(self, words: list[str]) -> None:
        text = " ".join(words)
        for mark in ("(", ")", "!"):
            text = text.replace(mark, f" {mark} ")
        self._words = text.split()

    def test(self) -> Test:
        if not self._words:
            return lambda packet: True
        found = self._either()
        if self._words:
            raise FilterError
        return found

    def _next(self) -> str:
        if not self._words:
            raise FilterError
        return self._words.pop(0)

    def _either(self) -> Test:
        tests = [self._both()]
        while self._words and self._words[0] in ("or", "||"):
            self._words.pop(0)
            tests.append(self._both())
        return lambda packet: any(test(packet) for test in tests)

    def _both(self) -> Test:
        tests = [self._one()]
        while self._words and self._words[0] not in ("or", "||", ")"):
            if self._words[0] in ("and", "&&"):
                self._words.pop(0)
            tests.append(self._one())
        return lambda packet: all(test(packet) for test in tests)

    def _one(self) -> Test:
        word = self._next()
        if word in ("not", "!"):
            test = self._one()
            return lambda packet: not test(packet)
        if word == "(":
            test = self._either()
            if self._next() != ")":
                raise FilterError
            return test
        if word in ("ip", "tcp"):
            return self._one() if self._words and self._words[0] in ("src", "dst", "port", "host") else _always
        if word in ("udp", "icmp", "arp", "ip6"):
            if self._words and self._words[0] in ("src", "dst", "port", "host"):
                self._one()
            return lambda packet: False
        side = ""
        if word in ("src", "dst"):
            side, word = word, self._next()
        if word == "port":
            number = self._next()
            if not number.isdigit():
                raise FilterError
            return lambda packet: any(port == int(number) for _, port in _ends(packet, side))
        name = self._next() if word == "host" else word
        if name.count(".") != 3:
            raise FilterError
        return lambda packet: any(address == name for address, _ in _ends(packet, side))


def _always(packet: Packet) -> bool:
    return True


def _ends(packet: Packet, side: str) -> tuple[tuple[str, int], ...]:
    return {"src": (packet.source,), "dst": (packet.target,)}.get(side, (packet.source, packet.target))


@tool("tcpdump")
async def tcpdump(process: Process, args: list[str]) -> int:
    options = parse(args, "nNqvtXxAeSlpUDK", "icsrwBGWCyZ")
    namespace = process.container.namespace
    device = options.value("i", namespace.interface)
    if not process.credentials.can("NET_RAW"):
        await process.error(
            f"tcpdump: {device}: You don't have permission to perform this capture on that device\n"
            "(socket: Operation not permitted)\n"
        )
        return 1
    if device not in ("any", "lo", namespace.interface):
        await process.error(f"tcpdump: {device}: No such device exists\n(No such device exists)\n")
        return 1
    for letter in "rw":
        if letter in options:
            await process.error(f"tcpdump: {options.value(letter)}: Permission denied\n")
            return 1
    try:
        wanted = _Filter(options.operands).test()
    except FilterError:
        await process.error("tcpdump: can't parse filter expression: syntax error\n")
        return 1
    kind = "LINUX_SLL2 (Linux cooked v2)" if device == "any" else "EN10MB (Ethernet)"
    if "v" not in options:
        await process.error("tcpdump: verbose output suppressed, use -v[v]... for full protocol decode\n")
    await process.error(f"listening on {device}, link-type {kind}, snapshot length 262144 bytes\n")
    most = int(options.value("c")) if options.value("c").isdigit() else None
    capture = _Capture(namespace, process.container.random)
    stop = process.catch(Signals.SIGINT, Signals.SIGTERM)
    shown = dropped = 0
    while most is None or shown < most:
        since = process.clock.now
        if await stop.wait(_SECONDS):
            break
        if device == "lo":
            continue
        found = [packet for packet in capture.packets(since, process.clock.now) if wanted(packet)]
        dropped += max(0, len(found) - _BUFFER)
        lines = []
        for packet in found[: min(_BUFFER, most - shown if most is not None else _BUFFER)]:
            where = f"{namespace.interface:<5} {packet.direction:<3} " if device == "any" else ""
            moment = "" if "t" in options else datetime.fromtimestamp(packet.time, UTC).strftime("%H:%M:%S.%f ")
            lines.append(f"{moment}{where}{capture.text(packet)}\n")
        shown += len(lines)
        await process.write("".join(lines))
    await process.error(f"\n{shown} packets captured\n{shown + dropped} packets received by filter\n")
    await process.error(f"{dropped} packets dropped by kernel\n")
    return 0


class _Capture:
    """The packets of the load's connections in a network namespace."""

    def __init__(self, namespace: NetworkNamespace, random: Random) -> None:
        self._namespace = namespace
        self._random = random
        self._sent: dict[tuple[tuple[str, int], tuple[str, int]], int] = {}
        """Per direction of a connection, the bytes so far."""

    def packets(self, since: float, until: float) -> list[Packet]:
        bulk = self._namespace.bulk
        found = [
            packet for one in (bulk.entries() if bulk is not None else ()) for packet in self._of(one, since, until)
        ]
        return sorted(found, key=lambda packet: packet.time)

    def _of(self, one: BulkConnection, since: float, until: float) -> Iterator[Packet]:
        expected = one.requests * (until - since)
        count = int(expected) + (self._random.random() < expected % 1)
        client, server = (one.local, one.peer) if one.is_client else (one.peer, one.local)
        out, back = ("Out", "In") if one.is_client else ("In", "Out")
        for _ in range(min(count, _BUFFER)):
            begin = since + self._random.random() * (until - since)
            end = begin + one.seconds
            key = (client, server)
            yield Packet(begin, client, server, out, _REQUEST_BYTES, key)
            yield Packet(end, server, client, back, one.response_bytes, key)
            yield Packet(end + 0.00004, client, server, out, 0, key)

    def text(self, packet: Packet) -> str:
        """A packet as tcpdump prints it, with relative sequence numbers."""
        here, there = (packet.source, packet.target), (packet.target, packet.source)
        begin = self._sent.get(here, 1)
        end = self._sent[here] = begin + packet.length
        acknowledged = self._sent.get(there, 1)
        flags, sequence = ("P.", f"seq {begin}:{end}, ") if packet.length else (".", "")
        (source, source_port), (target, target_port) = packet.source, packet.target
        return (
            f"IP {source}.{source_port} > {target}.{target_port}: Flags [{flags}], {sequence}ack {acknowledged}, "
            f"win 502, length {packet.length}"
        )


@tool("lsof")
async def lsof(process: Process, args: list[str]) -> int:
    """As BusyBox has it: the links of every process that the caller may read."""
    lines = []
    for pid in process.container.pids.processes:
        folder = f"/proc/{pid}"
        try:
            program = process.files.readlink(f"{folder}/exe")
            numbers = sorted(process.files.listdir(f"{folder}/fd"), key=int)
            lines += [f"{pid}\t{program}\t{process.files.readlink(f'{folder}/fd/{number}')}\n" for number in numbers]
        except OSError:
            continue
    await process.write("".join(lines))
    return 0


@tool("strace")
async def strace(process: Process, args: list[str]) -> int:
    options = parse(args, "cCfFqvtTyxrkiwd", "peosSPbauO", stop_early=True)
    target = options.value("p")
    if not target and not options.operands:
        await process.error("strace: must have PROG [ARGS] or -p PID\nTry 'strace -h' for more information.\n")
        return 1
    if target and (not target.isdigit() or process.container.pids.get(int(target)) is None):
        await process.error(f"strace: attach: ptrace(PTRACE_SEIZE, {target}): No such process\n")
        return 1
    # Container runtimes leave out the capability SYS_PTRACE, and AppArmor's default profile denies tracing others.
    what = f"attach: ptrace(PTRACE_SEIZE, {target})" if target else "test_ptrace_get_syscall_info: PTRACE_TRACEME"
    await process.error(f"strace: {what}: Operation not permitted\n")
    return 1
