"""Connection attempts: the packets a client's kernel sends until it gets a response or gives up.

Everything that takes time is a generator of waits: it yields the seconds until its next step and returns its result.
A simulated process sleeps them one by one, so the cluster may change meanwhile; a prediction (`elapse`) adds them up.
Both therefore get the same results.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.fabric import Fabric
from srearena.cluster.embedded.network.flows import Flow
from srearena.cluster.embedded.network.hosts import Host
from srearena.cluster.embedded.network.routes import Path, Route

T = TypeVar("T")
Waits = Generator[float, None, T]

SYN_WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Waits between the first packet of a connection and its repetitions (tcp_syn_retries = 6): 127 seconds in all."""
RESEND_AFTER = 0.2
"""The shortest time after which TCP sends a packet again."""
RESEND_LIMIT = 15
PACKET = 1448
"""Bytes of payload in a full packet."""
MOST_PACKETS_DRAWN = 64
_SPREAD = 0.1


@dataclass(frozen=True, slots=True)
class ConnectAttempt:
    """The result of an attempt to open a flow. Where it succeeded, the caller must end `flow`."""

    outcome: Outcome
    path: Path
    route: Route
    flow: Flow | None = None


def elapse(waits: Waits[T], limit: float = float("inf")) -> tuple[T | None, float]:
    """The result and how long it would take; None with `limit` where that is exceeded. No time passes."""
    total = 0.0
    while True:
        try:
            total += next(waits)
        except StopIteration as stop:
            return stop.value, total
        if total >= limit:
            waits.close()
            return None, limit


class Dialer:
    def __init__(self, fabric: Fabric, random: Random) -> None:
        self._fabric = fabric
        self._random = random

    def choose(self, source: Host, route: Route) -> Path:
        """Choose the path of a new flow: a random one, unless the Service has session affinity."""
        paths, rule = route.paths, route.rule
        if rule is not None and rule.affinity_seconds and paths[0].backend is not None:
            proxies, now = self._fabric.proxies, self._fabric.clock.now
            backend = proxies.affinity(route.proxy_node, rule, source.address, now)
            place = (backend.address, backend.port) if backend is not None else None
            path = next((p for p in paths if (p.address, p.port) == place), None) or self._any(paths)
            if path.backend is not None:
                proxies.set_affinity(route.proxy_node, rule, source.address, path.backend, now)
            return path
        return paths[0] if len(paths) == 1 else self._any(paths)

    def _any(self, paths: tuple[Path, ...]) -> Path:
        return paths[self._random.randrange(len(paths))]

    def dial(self, source: Host, address: str, port: int) -> Waits[ConnectAttempt]:
        """Open a TCP connection, for as long as the kernel tries."""
        fabric = self._fabric
        route = fabric.routes.find(source, address, port, "TCP")
        path = self.choose(source, route)
        flow = fabric.flows.begin(source, (address, port, "TCP"))
        if flow is None:
            return ConnectAttempt(Outcome.NO_PORT, path, route)
        connected = False
        try:
            for wait in SYN_WAITS:
                if path.outcome is Outcome.TIMEOUT or self._goes_missing(path):
                    yield wait
                    path = self._repeated(source, address, port, path)
                    continue
                yield self.round_trip(path)
                connected = path.outcome is Outcome.CONNECTED
                if path.host is not None and path.host.sockets is not source.sockets:
                    fabric.flows.track(flow, source.node, path.host.node)
                return ConnectAttempt(path.outcome, path, route, flow if connected else None)
            return ConnectAttempt(Outcome.TIMEOUT, path, route)
        finally:
            if not connected:
                flow.end(linger=False)

    def _repeated(self, source: Host, address: str, port: int, path: Path) -> Path:
        """The path of the next packet of the same attempt: an address translation, once made, stays."""
        if path.backend is not None and path.host is not None:
            return self._fabric.routes.again(source, path, "TCP", established=False)
        return self.choose(source, self._fabric.routes.find(source, address, port, "TCP"))

    def send(self, source: Host, address: str, port: int) -> Waits[tuple[Path, bool]]:
        """Send one UDP datagram: the path it took, and whether it arrived and a response can come back.

        A refusal (ICMP) takes a round trip; a lost datagram causes no response.
        """
        route = self._fabric.routes.find(source, address, port, "UDP")
        path = self.choose(source, route)
        if path.outcome is Outcome.TIMEOUT or self._goes_missing(path):
            return path, False
        yield self.round_trip(path)
        return path, path.outcome is Outcome.CONNECTED

    def connect_udp(self, source: Host, address: str, port: int) -> ConnectAttempt:
        """Connect a UDP socket, which sends no packet: only an immediate refusal is detected."""
        route = self._fabric.routes.find(source, address, port, "UDP")
        path = self.choose(source, route)
        silent = path.outcome is Outcome.TIMEOUT
        return ConnectAttempt(Outcome.CONNECTED if silent else path.outcome, path, route)

    def echo(self, source: Host, address: str) -> tuple[Outcome, float]:
        """Ping an address: the outcome and the round trip. Service addresses do not respond to pings."""
        path = self._fabric.routes.find(source, address, 0, "ICMP").paths[0]
        if path.outcome is Outcome.TIMEOUT or self._goes_missing(path):
            return Outcome.TIMEOUT, 0.0
        alive = path.outcome in (Outcome.REFUSED, Outcome.CONNECTED)
        return (Outcome.CONNECTED if alive else path.outcome), self.round_trip(path)

    def transfer(self, source: Host, path: Path, size: int, *, back: bool = False) -> Waits[bool]:
        """Transfer bytes over an open connection; False once TCP gives up on it."""
        tries = 0
        current = path
        while True:
            quality = current.reverse if back else current.forward
            if current.outcome is not Outcome.TIMEOUT:
                break
            tries += 1
            if tries > RESEND_LIMIT:
                return False
            yield min(120.0, RESEND_AFTER * 2**tries)
            current = self._fabric.routes.again(source, path, "TCP")
        if quality.largest and min(size, PACKET) > quality.largest:
            yield sum(min(120.0, RESEND_AFTER * 2**number) for number in range(1, RESEND_LIMIT + 1))
            return False
        packets = max(1, -(-size // PACKET))
        delay = self.one_way(current, back=back)
        if quality.bandwidth:
            delay += size / quality.bandwidth
        if quality.lost:
            delay += self._resending(packets, quality.lost, current.round_trip + quality.delay)
            sending = path.host if back else source
            if sending is not None:
                sending.sockets.carried.lost_packets += packets * quality.lost / (1 - min(quality.lost, 0.9))
        yield delay
        target = path.host
        if target is not None and target.sockets is not source.sockets:
            local, remote = source.sockets.carried, target.sockets.carried
            sender, receiver = (remote, local) if back else (local, remote)
            sender.sent_bytes += size
            sender.sent_packets += packets
            receiver.received_bytes += size
            receiver.received_packets += packets
        return True

    def _resending(self, packets: int, lost: float, round_trip: float) -> float:
        """Seconds that lost packets cost: most are detected by the packets behind them, the last only by a timer."""
        drawn = min(packets, MOST_PACKETS_DRAWN)
        total = 0.0
        for number in range(drawn):
            tries = 0
            while tries < RESEND_LIMIT and self._random.random() < lost:
                quick = tries == 0 and drawn - number > 3
                total += round_trip if quick else min(120.0, (RESEND_AFTER + round_trip) * 2**tries)
                tries += 1
        return total * packets / drawn

    def round_trip(self, path: Path) -> float:
        """A draw of the time until the answer to a small packet."""
        return self.one_way(path) + self.one_way(path, back=True)

    def one_way(self, path: Path, *, back: bool = False) -> float:
        quality = path.reverse if back else path.forward
        base = path.round_trip / 2 * self._random.uniform(1 - _SPREAD, 1 + _SPREAD)
        if not quality.delay and not quality.jitter:
            return base
        return base + max(0.0, quality.delay + quality.jitter * self._random.uniform(-1, 1))

    def _goes_missing(self, path: Path) -> bool:
        lost = path.lost
        return bool(lost) and self._random.random() < lost
