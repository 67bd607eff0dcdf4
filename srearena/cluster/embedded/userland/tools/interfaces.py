"""ip, ifconfig, netstat, ss and ping: the network as the pod has it."""

from __future__ import annotations

import math

from srearena.cluster.embedded.machine.files.procfs import descriptor_of
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace, SocketEntry
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.idling import duration
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool
from srearena.cluster.embedded.userland.tools.wording import speaks_busybox


def gateway_of(address: str) -> str:
    """Pods reach everything through the first address of their node's range."""
    return address.rpartition(".")[0] + ".1" if "." in address else "::"


def _broadcast(address: str) -> str:
    return address.rpartition(".")[0] + ".255"


def hardware_address(address: str) -> str:
    parts = [int(part) for part in address.split(".")] if address.count(".") == 3 else [0, 0, 0, 0]
    return "0a:58:" + ":".join(f"{part & 0xFF:02x}" for part in parts)


@tool("ip")
async def ip(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    namespace = process.container.namespace
    what = words[0] if words else ""
    device = namespace.interface
    if len(words) > 1 and words[1] in _CHANGES:
        return await _change(process, what, words[1:])
    if what.startswith("ru"):
        await process.write(_RULES)
        return 0
    if what.startswith("r"):
        if words[1:2] == ["get"] and len(words) > 2:
            return await _route_get(process, words[2])
        if namespace.address:
            gateway = gateway_of(namespace.address)
            network = namespace.address.rpartition(".")[0] + ".0/24"
            await process.write(f"default via {gateway} dev {device} \n")
            await process.write(f"{network} via {gateway} dev {device}  src {namespace.address} \n")
        return 0
    if what.startswith(("a", "l")):
        counted = any(arg.startswith("-s") for arg in args)
        await process.write(_links(process, with_addresses=what[0] == "a", counted=counted))
        return 0
    if what.startswith("n"):
        if namespace.address:
            gateway = gateway_of(namespace.address)
            await process.write(f"{gateway} dev {device} lladdr {hardware_address(gateway)} REACHABLE\n")
        return 0
    raise UsageError(f'Object "{what}" is unknown, try "ip help".')


_RULES = "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n32767:\tfrom all lookup default\n"
_CHANGES = frozenset({"add", "append", "change", "del", "delete", "flush", "replace", "set"})
_RTNETLINK_STATUS = 2


async def _change(process: Process, what: str, words: list[str]) -> int:
    """A change of the network's configuration; of those permitted, dummy interfaces come and go."""
    dummies = process.container.namespace.dummies
    verb, *rest = words
    names = [word for word in rest if word not in ("dev", "name", "type", "dummy")]
    refusal = "Operation not supported"
    if not process.credentials.can("NET_ADMIN"):
        refusal = "Operation not permitted"
    elif what.startswith("l") and names:
        present = names[0] in (*dummies, process.container.namespace.interface, "lo")
        if verb == "add" and rest[-2:] == ["type", "dummy"]:
            refusal = "File exists" if present else ""
            dummies += [] if present else [names[0]]
        elif verb in ("del", "delete") and names[0] in dummies:
            refusal = ""
            dummies.remove(names[0])
        elif verb in ("del", "delete", "set") and not present:
            refusal = "No such device"
    if refusal:
        prefix = "ip: " if speaks_busybox(process) else ""
        await process.error(f"{prefix}RTNETLINK answers: {refusal}\n")
        return _RTNETLINK_STATUS
    return 0


async def _route_get(process: Process, target: str) -> int:
    namespace = process.container.namespace
    if target.count(".") != 3:
        await process.error(f'Error: any valid prefix is expected rather than "{target}".\n')
        return 1
    if target == namespace.address or target.startswith("127."):
        await process.write(f"local {target} dev lo src {target} uid {process.credentials.uid} \n    cache <local> \n")
        return 0
    if not namespace.address:
        await process.error("RTNETLINK answers: Network unreachable\n")
        return _RTNETLINK_STATUS
    way = f"via {gateway_of(namespace.address)} dev {namespace.interface} src {namespace.address}"
    await process.write(f"{target} {way} uid {process.credentials.uid} \n    cache \n")
    return 0


def _counters(namespace: NetworkNamespace) -> str:
    received, packets_in, sent, packets_out, lost = map(int, namespace.carried.totals(namespace.clock.now))
    head = "    {0}:  bytes  packets  errors  dropped {1}\n"
    return (
        head.format("RX", "missed  mcast")
        + f"    {received:<10d} {packets_in:<8d} 0       0       0       0\n"
        + head.format("TX", "carrier collsns")
        + f"    {sent:<10d} {packets_out:<8d} 0       {lost:<7d} 0       0\n"
    )


def _links(process: Process, *, with_addresses: bool, counted: bool) -> str:
    namespace = process.container.namespace
    device = namespace.interface
    forever = "       valid_lft forever preferred_lft forever\n"
    text = (
        "1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN qlen 1000\n"
        "    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00\n"
    )
    if with_addresses:
        text += f"    inet 127.0.0.1/8 scope host lo\n{forever}"
    if namespace.address:
        text += f"2: {device}@if5: <BROADCAST,MULTICAST,UP,LOWER_UP,M-DOWN> mtu 1450 qdisc noqueue state UP \n"
        text += f"    link/ether {hardware_address(namespace.address)} brd ff:ff:ff:ff:ff:ff\n"
        text += _counters(namespace) if counted and not with_addresses else ""
    if with_addresses:
        for address in namespace.addresses:
            text += f"    inet {address}/24 brd {_broadcast(address)} scope global {device}\n{forever}"
    for number, name in enumerate(namespace.dummies, 3):
        text += f"{number}: {name}: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN qlen 1000\n"
        text += "    link/ether 0a:58:00:00:00:00 brd ff:ff:ff:ff:ff:ff\n"
    return text


@tool("ifconfig")
async def ifconfig(process: Process, args: list[str]) -> int:
    namespace = process.container.namespace
    text = ""
    if namespace.address:
        text = (
            f"{namespace.interface:<10}Link encap:Ethernet  HWaddr {hardware_address(namespace.address).upper()}  \n"
            f"          inet addr:{namespace.address}  Bcast:{_broadcast(namespace.address)}  Mask:255.255.255.0\n"
            "          UP BROADCAST RUNNING MULTICAST  MTU:1450  Metric:1\n\n"
        )
    text += (
        "lo        Link encap:Local Loopback  \n          inet addr:127.0.0.1  Mask:255.0.0.0\n"
        "          UP LOOPBACK RUNNING  MTU:65536  Metric:1\n\n"
    )
    await process.write(text)
    return 0


def _shown_owner(process: Process, owner: object | None) -> str:
    """Whose socket it is, for those who may know."""
    if not isinstance(owner, Process) or process.container.pids.get(owner.pid) is not owner:
        return "-"
    return f"{owner.pid}/{owner.name}"


def _users(process: Process, entry: SocketEntry) -> str:
    """The process that has a socket, as ss shows it."""
    shown = _shown_owner(process, entry.owner)
    pid, _, name = shown.partition("/")
    if not name or not isinstance(entry.owner, Process):
        return ""
    return f'users:(("{name}",pid={pid},fd={descriptor_of(entry.owner, entry.inode)}))'


@tool("netstat")
async def netstat(process: Process, args: list[str]) -> int:
    options = parse(args, "tulnpaerWxs")
    namespace = process.container.namespace
    if "r" in options:
        head = "Destination     Gateway         Genmask         Flags   MSS Window  irtt Iface"
        route = f"0.0.0.0         {gateway_of(namespace.address):<15} 0.0.0.0         UG        0 0          0"
        await process.write(f"Kernel IP routing table\n{head}\n{route} {namespace.interface}\n")
        return 0
    only_listening = "l" in options
    everything = "a" in options
    protocols = (
        {"TCP", "UDP"}
        if not {"t", "u"} & options.flags
        else {p for p, f in (("TCP", "t"), ("UDP", "u")) if f in options}
    )
    owner = "p" in options
    kind = "(only servers)" if only_listening else "(servers and established)" if everything else "(w/o servers)"
    lines = [f"Active Internet connections {kind}"]
    head = "Proto Recv-Q Send-Q Local Address           Foreign Address         State       "
    lines.append(head + ("PID/Program name    " if owner else ""))
    for listener in namespace.listeners():
        if listener.protocol not in protocols or not (only_listening or everything):
            continue
        local = f"{listener.address}:{listener.port}"
        state = "LISTEN" if listener.protocol == "TCP" else ""
        row = f"{listener.protocol.lower():<5}      0      0 {local:<23} {'0.0.0.0:*':<23} {state:<11} "
        lines.append(row + (_shown_owner(process, listener.owner) if owner else ""))
    if not only_listening and "TCP" in protocols:
        for entry in namespace.sockets():
            if entry.listener is None:
                local, peer = f"{entry.local[0]}:{entry.local[1]}", f"{entry.peer[0]}:{entry.peer[1]}"
                row = f"tcp        0      0 {local:<23} {peer:<23} {'ESTABLISHED':<11} "
                lines.append(row + (_shown_owner(process, entry.owner) if owner else ""))
    await process.write("\n".join(lines) + "\n")
    return 0


async def _socket_summary(process: Process) -> int:
    entries = list(process.container.namespace.sockets())
    listening = [one.listener for one in entries if one.listener is not None]
    established = len(entries) - len(listening)
    tcp = established + sum(one.protocol == "TCP" for one in listening)
    udp = len(entries) - tcp
    lines = [f"Total: {len(entries)}", f"TCP:   {tcp} (estab {established}, closed 0, orphaned 0, timewait 0)", ""]
    lines += ["Transport Total     IP        IPv6"]
    rows = (("RAW", 0), ("UDP", udp), ("TCP", tcp), ("INET", tcp + udp), ("FRAG", 0))
    lines += [f"{name:<9} {number:<9} {number:<9} 0        " for name, number in rows]
    await process.write("\n".join(lines) + "\n\n")
    return 0


@tool("ss")
async def ss(process: Process, args: list[str]) -> int:
    options = parse(args, "tulnpaesix4Hom")
    namespace = process.container.namespace
    if "s" in options:
        return await _socket_summary(process)
    lines = ["State    Recv-Q   Send-Q     Local Address:Port     Peer Address:Port  Process"]
    wanted = (
        {"TCP", "UDP"}
        if not {"t", "u"} & options.flags
        else {p for p, f in (("TCP", "t"), ("UDP", "u")) if f in options}
    )
    if {"l", "a"} & options.flags:
        for entry in namespace.sockets():
            listener = entry.listener
            if listener is None or listener.protocol not in wanted:
                continue
            local = f"{listener.address}:{listener.port}"
            state = "LISTEN" if listener.protocol == "TCP" else "UNCONN"
            users = _users(process, entry) if "p" in options else ""
            queues = f"{listener.waiting:<8} {listener.backlog:<10}"
            lines.append(f"{state:<8} {queues} {local:>18} {'0.0.0.0:*':>21}  {users}".rstrip())
    if "l" not in options and "TCP" in wanted:
        for entry in namespace.sockets():
            if entry.listener is None:
                local, peer = f"{entry.local[0]}:{entry.local[1]}", f"{entry.peer[0]}:{entry.peer[1]}"
                users = _users(process, entry) if "p" in options else ""
                lines.append(f"{'ESTAB':<8} {0:<8} {0:<10} {local:>18} {peer:>21}  {users}".rstrip())
    await process.write("\n".join(lines) + "\n")
    return 0


@tool("ping")
async def ping(process: Process, args: list[str]) -> int:
    options = parse(args, "qnv46AaU", "cwWisItM")
    if not options.operands:
        raise UsageError("usage error: Destination address required")
    host = options.operands[0]
    busybox = speaks_busybox(process)
    if process.credentials.uid == 0 and not process.credentials.can("NET_RAW"):
        text = "permission denied (are you root?)" if busybox else "socket: Operation not permitted"
        await process.error(f"ping: {text}\n")
        return 1
    count = int(options.value("c")) if options.value("c").isdigit() else None
    deadline = duration(options.value("w")) if "w" in options else None
    patience = (duration(options.value("W", "")) if "W" in options else None) or 10.0
    interval = duration(options.value("i", "1")) or 1.0
    started = process.clock.now
    sent = received = 0
    times: list[float] = []
    address = ""
    while count is None or sent < count:
        if deadline is not None and process.clock.now - started >= deadline:
            break
        began = process.clock.now
        result = await process.container.network.ping(host, timeout=patience)
        if result.outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
            text = f"bad address '{host}'" if busybox else f"{host}: Name or service not known"
            await process.error(f"ping: {text}\n")
            return 1 if busybox else 2
        if not sent:
            address = result.address
            size = ": 56 data bytes" if busybox else " 56(84) bytes of data."
            await process.write(f"PING {host} ({address}){size}\n")
        sent += 1
        if result.outcome is Outcome.CONNECTED:
            received += 1
            milliseconds = result.seconds * 1000
            times.append(milliseconds)
            label = f"seq={sent - 1}" if busybox else f"icmp_seq={sent}"
            await process.write(f"64 bytes from {address}: {label} ttl=64 time={milliseconds:.3f} ms\n")
        if count is None or sent < count:
            await process.sleep(max(0.0, interval - (process.clock.now - began)))
    lost = (sent - received) * 100 // sent if sent else 0
    await process.write(f"\n--- {host} ping statistics ---\n{sent} packets transmitted, {received} ")
    if busybox:
        await process.write(f"packets received, {lost}% packet loss\n")
    else:
        await process.write(f"received, {lost}% packet loss, time {int((process.clock.now - started) * 1000)}ms\n")
    if times:
        mean = sum(times) / len(times)
        name = "round-trip min/avg/max" if busybox else "rtt min/avg/max/mdev"
        spread = math.sqrt(max(sum(time * time for time in times) / len(times) - mean * mean, 0.0))
        tail = "" if busybox else f"/{spread:.3f}"
        await process.write(f"{name} = {min(times):.3f}/{mean:.3f}/{max(times):.3f}{tail} ms\n")
    return 0 if received else 1
