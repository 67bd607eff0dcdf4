"""Traffic counters of a network interface, as `ip -s link` and exporters show them.

Two kinds of traffic: what single transfers and the load add, and steady exchanges (probes of the kubelet, heartbeats of
clients, watches of the API) that happen at a known rate. The latter are computed when read, so that they cost nothing.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

SEGMENT = 66.0
"""Bytes of a TCP segment without data: Ethernet, IP and TCP headers with timestamps."""
IDLE_PACKET = 240.0
"""Bytes of a packet of an idle program: small requests, and acknowledgements. Chosen."""
_HANDSHAKE_RECEIVED, _HANDSHAKE_SENT = 4, 3
"""Segments without data of a short connection at its server: SYN, two acknowledgements and FIN; SYN, one and FIN."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Bytes and packets at one end."""

    received_bytes: float
    received_packets: float
    sent_bytes: float
    sent_packets: float

    @classmethod
    def of_connection(cls, request: float, response: float) -> Exchange:
        """A short connection at its server: handshake, one request, one response."""
        received, sent = _HANDSHAKE_RECEIVED + (request > 0), _HANDSHAKE_SENT + (response > 0)
        return cls(received * SEGMENT + request, received, sent * SEGMENT + response, sent)

    def times(self, number: float) -> Exchange:
        """So many of them; of a second's share where `number` is a rate."""
        return Exchange(
            self.received_bytes * number,
            self.received_packets * number,
            self.sent_bytes * number,
            self.sent_packets * number,
        )

    @property
    def reversed(self) -> Exchange:
        """The same exchange at the other end."""
        return Exchange(self.sent_bytes, self.sent_packets, self.received_bytes, self.received_packets)


_NOTHING = Exchange(0.0, 0.0, 0.0, 0.0)


@dataclass(slots=True)
class Carried:
    """Bytes and packets since the interface exists; updated by every transfer, single or bulk."""

    received_bytes: float = 0.0
    sent_bytes: float = 0.0
    received_packets: float = 0.0
    sent_packets: float = 0.0
    lost_packets: float = 0.0
    """Packets sent from here that were lost on the way; TCP sends them again."""
    _steady: dict[Hashable, Exchange] = field(default_factory=dict)
    _rate: Exchange = _NOTHING
    """The sum of what is steady, per second."""
    _since: float = 0.0

    def add(self, received_bytes: float, received_packets: float, sent_bytes: float, sent_packets: float) -> None:
        self.received_bytes += received_bytes
        self.received_packets += received_packets
        self.sent_bytes += sent_bytes
        self.sent_packets += sent_packets

    def add_exchange(self, one: Exchange) -> None:
        self.add(one.received_bytes, one.received_packets, one.sent_bytes, one.sent_packets)

    def set_steady(self, key: Hashable, rate: Exchange | None, now: float) -> None:
        """Carry so much per second from now on, until set again; None ends it."""
        if self._steady.get(key) == rate:
            return
        self.add_exchange(self._rate.times(now - self._since))
        self._since = now
        if rate is None:
            del self._steady[key]
        else:
            self._steady[key] = rate
        rates = self._steady.values()
        self._rate = Exchange(
            sum(one.received_bytes for one in rates),
            sum(one.received_packets for one in rates),
            sum(one.sent_bytes for one in rates),
            sum(one.sent_packets for one in rates),
        )

    def totals(self, now: float) -> tuple[float, float, float, float, float]:
        """Bytes and packets received, then sent, then packets lost, up to now."""
        rate, passed = self._rate, now - self._since
        return (
            self.received_bytes + rate.received_bytes * passed,
            self.received_packets + rate.received_packets * passed,
            self.sent_bytes + rate.sent_bytes * passed,
            self.sent_packets + rate.sent_packets * passed,
            self.lost_packets,
        )
