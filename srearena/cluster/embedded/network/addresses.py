"""The address plan of a cluster: the ranges of nodes, pods and Services.

Nodes share one flat network, every node owns a part of the pod range, and the Service range exists only in the rules
of kube-proxy. Addresses are text everywhere; checks made for every packet are cached.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

NODE_RANGE = "172.18.0.0/16"
GATEWAY = "172.18.0.1"
"""The way out of the nodes' network: the machine that hosts the cluster, which also resolves names for the nodes."""
LOOPBACK = "127.0.0.1"


@lru_cache(maxsize=65536)
def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=16384)
def is_loopback(text: str) -> bool:
    return is_address(text) and ip_address(text).is_loopback


@lru_cache(maxsize=16384)
def is_ipv6(text: str) -> bool:
    return is_address(text) and ip_address(text).version == 6


@lru_cache(maxsize=4096)
def network_of(cidr: str) -> IPv4Network | IPv6Network | None:
    """The range a CIDR names; None where it names none."""
    try:
        return ip_network(cidr, strict=False)
    except ValueError:
        return None


@lru_cache(maxsize=65536)
def within(address: str, cidr: str) -> bool:
    network = network_of(cidr)
    return network is not None and is_address(address) and ip_address(address) in network
