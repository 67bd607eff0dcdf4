"""route, arp, arping, fping, ethtool, iptables and nft: what a pod sees of its network beside `ip`."""

from __future__ import annotations

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.userland.tools.interfaces import gateway_of, hardware_address
from srearena.cluster.embedded.userland.tools.options import UsageError, parse
from srearena.cluster.embedded.userland.tools.registry import tool

_NOT_PERMITTED = "Operation not permitted"
_FPING_TIMEOUT = 0.5


@tool("route")
async def route(process: Process, args: list[str]) -> int:
    if any(arg in ("add", "del") for arg in args):
        await process.error(f"route: SIOC{'ADD' if 'add' in args else 'DEL'}RT: {_NOT_PERMITTED}\n")
        return 1
    namespace = process.container.namespace
    lines = ["Kernel IP routing table"]
    lines += ["Destination     Gateway         Genmask         Flags Metric Ref    Use Iface"]
    if namespace.address:
        own = namespace.address.rpartition(".")[0] + ".0"
        default = "0.0.0.0" if "-n" in args else "default"
        for target, mask, flags in ((default, "0.0.0.0", "UG"), (own, "255.255.255.0", "UG")):
            gateway = gateway_of(namespace.address)
            lines.append(f"{target:<15} {gateway:<15} {mask:<15} {flags:<5} 0      0        0 {namespace.interface}")
    await process.write("\n".join(lines) + "\n")
    return 0


@tool("arp")
async def arp(process: Process, args: list[str]) -> int:
    namespace = process.container.namespace
    if namespace.address:
        gateway = gateway_of(namespace.address)
        await process.write(f"? ({gateway}) at {hardware_address(gateway)} [ether]  on {namespace.interface}\n")
    return 0


@tool("arping")
async def arping(process: Process, args: list[str]) -> int:
    options = parse(args, "fqbDUAa", "cwIsi")
    if not options.operands:
        raise UsageError("usage: arping [-c COUNT] [-I IFACE] DST_IP")
    namespace = process.container.namespace
    if not process.credentials.can("NET_RAW"):
        await process.error(f"arping: socket: {_NOT_PERMITTED}\n")
        return 2
    target, count = options.operands[0], options.number("c", 3)
    answers = target in (gateway_of(namespace.address), namespace.address)
    await process.write(f"ARPING {target} from {namespace.address} {namespace.interface}\n")
    for _ in range(min(count, 100)):
        if answers:
            await process.write(f"Unicast reply from {target} [{hardware_address(target).upper()}]  0.519ms\n")
        await process.sleep(1.0)
    replies = count if answers else 0
    await process.write(f"Sent {count} probes (1 broadcast(s))\nReceived {replies} response(s)\n")
    return 0 if answers else 1


@tool("fping")
async def fping(process: Process, args: list[str]) -> int:
    options = parse(args, "aeqsuAdgn", "ciprtCB")
    if not options.operands:
        raise UsageError("usage: fping [options] [targets...]")
    status = 0
    for host in options.operands:
        result = await process.container.network.ping(host, timeout=_FPING_TIMEOUT)
        if result.outcome in (Outcome.NXDOMAIN, Outcome.DNS_FAILURE):
            await process.error(f"{host}: Name does not resolve\n")
            status = 2
        elif result.outcome is not Outcome.CONNECTED:
            await process.write("" if "a" in options else f"{host} is unreachable\n")
            status = max(status, 1)
        else:
            took = f" ({result.seconds * 1000:.3g} ms)" if "e" in options else ""
            await process.write("" if "u" in options else f"{host} is alive{took}\n")
    return status


@tool("ethtool")
async def ethtool(process: Process, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    if not words:
        raise UsageError("bad command line argument(s)")
    device = words[0]
    if device not in ("lo", process.container.namespace.interface):
        await process.error("netlink error: no device matches name (offset 24)\nnetlink error: No such device\n")
        return 1
    if "-S" in args or "--statistics" in args:
        lost = int(process.container.namespace.carried.lost_packets)
        await process.write(f"NIC statistics:\n     peer_ifindex: 5\n     tx_queue_0_xdp_xmit_errors: {lost}\n")
        return 0
    if "-i" in args or "--driver" in args:
        await process.write("driver: veth\nversion: 1.0\nfirmware-version: \nbus-info: \n")
        return 0
    await process.write(
        f"Settings for {device}:\n\tSpeed: 10000Mb/s\n\tDuplex: Full\n\tAuto-negotiation: off\n\tPort: Twisted Pair\n"
        "\tPHYAD: 0\n\tTransceiver: internal\n\tMDI-X: Unknown\n\tLink detected: yes\n"
    )
    return 0


@tool("iptables", "nft")
async def iptables(process: Process, args: list[str]) -> int:
    """The tables of the pod's own network namespace, which are empty; kube-proxy's are the node's."""
    if not process.credentials.can("NET_ADMIN") or getattr(process.container.host, "host_network", False):
        if process.name == "nft":
            await process.error(f"{_NOT_PERMITTED} (you must be root)\nnetlink: Error: cache initialization failed\n")
            return 1
        refused = "Could not fetch rule set generation id: Permission denied (you must be root)"
        await process.error(f"iptables v1.8.10 (nf_tables): {refused}\n")
        return 4
    if process.name == "nft":
        return 0
    table = args[args.index("-t") + 1] if "-t" in args[:-1] else "filter"
    chains = {"nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING")}.get(table, ("INPUT", "FORWARD", "OUTPUT"))
    if "-S" in args:
        await process.write("".join(f"-P {chain} ACCEPT\n" for chain in chains))
    elif any(arg.startswith("-") and "L" in arg for arg in args):
        head = "target     prot opt source               destination         \n"
        await process.write("\n".join(f"Chain {chain} (policy ACCEPT)\n{head}" for chain in chains))
    else:
        await process.error("iptables v1.8.10 (nf_tables): RULE_APPEND failed (Operation not supported)\n")
        return 4
    return 0
