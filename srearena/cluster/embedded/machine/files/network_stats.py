"""/proc/net/dev, snmp and sockstat: counters of the network namespace that a process is in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.containers.container import Container

_IP = ("Forwarding", "DefaultTTL", "InReceives", "InHdrErrors", "InAddrErrors", "InDelivers", "OutRequests")
_TCP = ("RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn", "CurrEstab", "InSegs", "OutSegs", "RetransSegs", "InErrs")


def net_dev(container: Container) -> str:
    namespace = container.namespace
    bytes_in, packets_in, bytes_out, packets_out, _ = map(int, namespace.carried.totals(namespace.clock.now))
    received, sent = f"{bytes_in:8d} {packets_in:7d}", f"{bytes_out:8d} {packets_out:7d}"
    nothing = f"{0:8d} {0:7d}"
    rows = (("lo", nothing, nothing), ("eth0", received, sent))
    return (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|"
        "bytes    packets errs drop fifo colls carrier compressed\n"
        + "".join(
            f"{name:>6}: {inbound}    0    0    0     0          0         0 "
            f"{outbound}    0    0    0     0       0          0\n"
            for name, inbound, outbound in rows
        )
    )


def net_snmp(container: Container) -> str:
    namespace = container.namespace
    _, received, _, sent, lost = map(int, namespace.carried.totals(namespace.clock.now))
    established = sum(one.listener is None for one in namespace.sockets())
    rows = (
        ("Ip", _IP, (1, 64, received, 0, 0, received, sent)),
        ("Tcp", _TCP, (1, 200, 120000, -1, established, received, sent, lost, 0)),
    )
    return "".join(f"{name}: {' '.join(heads)}\n{name}: {' '.join(map(str, row))}\n" for name, heads, row in rows)


def net_sockstat(container: Container) -> str:
    entries = list(container.namespace.sockets())
    tcp = sum(one.protocol == "TCP" for one in entries)
    return (
        f"sockets: used {len(entries) + 2}\nTCP: inuse {tcp} orphan 0 tw 0 alloc {tcp} mem {tcp // 4}\n"
        f"UDP: inuse {len(entries) - tcp} mem 0\nUDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n"
    )
