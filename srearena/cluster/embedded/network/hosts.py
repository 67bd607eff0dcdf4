"""The hosts of the network: pod sandboxes, nodes and external hosts, each with its sockets and addresses.

A `Host` is one network namespace as seen from the network. A pod with `hostNetwork: true` has a `Host` of its own
(policies and links refer to it as a pod) but shares the sockets and addresses of its node. Every change advances the
epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.network.addresses import within
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of, uid_of


class HostKind(StrEnum):
    POD = "pod"
    NODE = "node"
    OUTSIDE = "outside"


@dataclass(eq=False, slots=True, repr=False)
class Host:
    kind: HostKind
    node: str
    """Name of its node; empty outside the cluster."""
    sockets: NetworkNamespace
    addresses: tuple[str, ...]
    pod_namespace: str = ""
    pod_name: str = ""
    uid: str = ""
    host_network: bool = False
    up: bool = True

    @property
    def address(self) -> str:
        return self.addresses[0] if self.addresses else ""

    @property
    def is_isolable(self) -> bool:
        """Whether network policies can select it: only pods with a network namespace of their own."""
        return self.kind is HostKind.POD and not self.host_network

    def __repr__(self) -> str:
        if self.kind is HostKind.POD:
            return f"pod {self.pod_namespace}/{self.pod_name}"
        return f"node {self.node}" if self.kind is HostKind.NODE else "outside"


class Hosts:
    """All hosts of a cluster, by address, pod and node."""

    def __init__(self, changed: Callable[[], object]) -> None:
        self._changed = changed
        self.by_address: dict[str, Host] = {}
        self.nodes: dict[str, Host] = {}
        self.pods: dict[str, Host] = {}
        """By UID."""
        self._pod_ranges: dict[str, str] = {}
        self._host_ports: dict[tuple[str, int, str], list[tuple[str, Host, int]]] = {}

    # Nodes

    def attach_node(self, name: str, sockets: NetworkNamespace, pod_cidr: str = "") -> Host:
        """Add a node. Its addresses, the gateway of its pod range among them, are those of `sockets`."""
        host = Host(HostKind.NODE, name, sockets, sockets.addresses)
        self.detach_node(name)
        self.nodes[name] = host
        for address in sockets.addresses:
            self.by_address[address] = host
        if pod_cidr:
            self._pod_ranges[pod_cidr] = name
        sockets.changed = self._changed
        self._changed()
        return host

    def detach_node(self, name: str) -> None:
        host = self.nodes.pop(name, None)
        if host is None:
            return
        self._forget_addresses(host)
        self._pod_ranges = {cidr: node for cidr, node in self._pod_ranges.items() if node != name}
        host.sockets.changed = None
        self._changed()

    def set_node_up(self, name: str, up: bool) -> None:
        """Set whether a node has power and a link. One without neither sends nor receives packets."""
        host = self.nodes.get(name)
        if host is not None and host.up != up:
            host.up = up
            self._changed()

    def is_up(self, node: str) -> bool:
        """Whether a node has a network; nodes that were never attached count as up."""
        host = self.nodes.get(node)
        return host is None or host.up

    # Pods

    def attach_pod(self, pod: Obj, sockets: NetworkNamespace) -> Host:
        """Add a pod whose sandbox is ready. A pod on the host network passes the sockets of its node."""
        self.detach_pod(uid_of(pod))
        host_network = bool(dig(pod, "spec", "hostNetwork", default=False))
        node = str(dig(pod, "spec", "nodeName", default=""))
        host = Host(
            HostKind.POD,
            node,
            sockets,
            sockets.addresses,
            namespace_of(pod),
            name_of(pod),
            uid_of(pod),
            host_network,
        )
        self.pods[host.uid] = host
        if not host_network:
            for address in sockets.addresses:
                self.by_address[address] = host
            sockets.changed = self._changed
            for host_ip, port, protocol, target in _host_ports(pod):
                self._host_ports.setdefault((node, port, protocol), []).append((host_ip, host, target))
        self._changed()
        return host

    def detach_pod(self, uid: str) -> None:
        host = self.pods.pop(uid, None)
        if host is None:
            return
        if not host.host_network:
            self._forget_addresses(host)
            host.sockets.changed = None
            for place, entries in list(self._host_ports.items()):
                remaining = [entry for entry in entries if entry[1] is not host]
                if len(remaining) != len(entries):
                    self._host_ports[place] = remaining
                if not remaining:
                    del self._host_ports[place]
        self._changed()

    def attach_external(self, host: Host) -> Host:
        for address in host.addresses:
            self.by_address[address] = host
        host.sockets.changed = self._changed
        self._changed()
        return host

    # Lookups

    def host_port(self, node: str, address: str, port: int, protocol: str) -> tuple[Host, int] | None:
        """The pod, and its port, behind a hostPort of that node."""
        for host_ip, host, target in self._host_ports.get((node, port, protocol), ()):
            if host_ip in ("", "0.0.0.0", "::", address):
                return host, target
        return None

    def owner_of_range(self, address: str) -> str | None:
        """The node whose pod range holds that address."""
        for cidr, node in self._pod_ranges.items():
            if within(address, cidr):
                return node
        return None

    def _forget_addresses(self, host: Host) -> None:
        for address in host.addresses:
            if self.by_address.get(address) is host:
                del self.by_address[address]


def _host_ports(pod: Obj) -> list[tuple[str, int, str, int]]:
    """Host address, host port, protocol and container port of each hostPort of a pod."""
    found: list[tuple[str, int, str, int]] = []
    for container in dig(pod, "spec", "containers", default=()):
        for port in container.get("ports") or ():
            if port.get("hostPort"):
                protocol = port.get("protocol") or "TCP"
                found.append((port.get("hostIP") or "", int(port["hostPort"]), protocol, int(port["containerPort"])))
    return found
