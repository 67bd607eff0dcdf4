"""Images people start to look around with: curl, netshoot, dnsutils."""

from __future__ import annotations

from typing import ClassVar

from srearena.cluster.embedded.machine.processes.accounts import Account
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program

_NETWORK_TOOLS = (
    "bash",
    "curl",
    "dig",
    "host",
    "ss",
    "getent",
    "nc",
    "ping",
    "ip",
    "netstat",
    "nslookup",
    "wget",
    "ps",
)
_NETSHOOT_TOOLS = (
    *_NETWORK_TOOLS,
    *("traceroute", "tracepath", "mtr", "nmap", "tc", "conntrack", "sysctl", "telnet", "tcpdump", "strace"),
    *("iperf3", "iperf", "openssl", "ethtool", "fping", "arping", "iptables", "nft"),
)
_PACKAGED = frozenset(("nslookup", "dig", "host", "ping", "ip", "ss", "nc", "tracepath", "fping", "arping"))
"""Of netshoot's tools: BIND's, iputils', iproute2's and OpenBSD's; the others that BusyBox has are BusyBox's."""


@program("curlimages/curl", "appropriate/curl")
class Curl(Program):
    entrypoint = ("/entrypoint.sh",)
    cmd = ("curl",)
    user = "curl_user"
    base = "alpine"
    follows_tag = False
    tools = ("curl",)
    binaries = ("/entrypoint.sh",)
    accounts_added = (Account("curl_user", 100, 101, "/home/curl_user"),)
    idle_cpu = 0.0

    async def run(self, process: Process) -> int:
        """The entrypoint: options are curl's, anything else is a command."""
        words = process.argv[1:] or ["curl"]
        if words[0].startswith("-") or not process.files.search(words[0], process.env.get("PATH", "")):
            words = ["curl", *words]
        process.execute(words, process.env)
        return 0


@program("nicolaka/netshoot", "wbitt/network-multitool", "praqma/network-multitool", "giantswarm/tiny-tools")
class Netshoot(Program):
    cmd = ("zsh",)
    base = "alpine"
    follows_tag = False
    tools = _NETSHOOT_TOOLS
    packaged_tools = _PACKAGED
    links: ClassVar = {"/bin/zsh": "/usr/bin/bash"}
    idle_cpu = 0.0


@program("jessie-dnsutils", "tutum/dnsutils", "infoblox/dnstools", "dnsutils")
class DnsUtils(Program):
    cmd = ("/bin/bash",)
    base = "debian"
    follows_tag = False
    tools = _NETWORK_TOOLS
    idle_cpu = 0.0


@program("radial/busyboxplus", "yauritux/busybox-curl")
class BusyboxPlus(Program):
    cmd = ("/bin/sh",)
    base = "busybox"
    follows_tag = False
    tools = ("curl",)
    idle_cpu = 0.0
