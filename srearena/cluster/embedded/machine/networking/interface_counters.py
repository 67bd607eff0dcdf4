"""Traffic counters of a network interface, as `ip -s link` and exporters show them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Carried:
    """Bytes and packets since the interface exists; updated by every transfer, single or bulk."""

    received_bytes: float = 0.0
    sent_bytes: float = 0.0
    received_packets: float = 0.0
    sent_packets: float = 0.0
    lost_packets: float = 0.0
    """Packets sent from here that were lost on the way; TCP sends them again."""

    def add(self, received_bytes: float, received_packets: float, sent_bytes: float, sent_packets: float) -> None:
        self.received_bytes += received_bytes
        self.received_packets += received_packets
        self.sent_bytes += sent_bytes
        self.sent_packets += sent_packets
