"""The interface between a machine and the cluster's network.

The `network` package implements `PodNetwork`; without it every pod is isolated.
"""

from __future__ import annotations

from typing import Protocol

from srearena.cluster.embedded.machine.networking.loopback import LoopbackNetwork
from srearena.cluster.embedded.machine.networking.reachability import NetworkFacade
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.objects import Obj


class PodNetwork(Protocol):
    def attach_node(self, name: str, sockets: NetworkNamespace, pod_cidr: str = "") -> object:
        """A machine appears, with the addresses of its namespace and the range its pods' addresses come from."""
        ...

    def set_node_up(self, name: str, up: bool) -> None:
        """Set whether the machine is powered and connected."""
        ...

    def shape(
        self, node: str, pod: str, *, delay: float, jitter: float, loss: float, corruption: float, bandwidth: float
    ) -> None:
        """Set netem-style impairments of outgoing traffic of a machine or of one of its pods; all zeros remove them."""
        ...

    def attach_pod(self, pod: Obj, sockets: NetworkNamespace) -> NetworkFacade:
        """Connect a sandbox; returns the network interface of its containers."""
        ...

    def detach_pod(self, uid: str) -> None: ...


class NoNetwork:
    """A disconnected network."""

    def attach_node(self, name: str, sockets: NetworkNamespace, pod_cidr: str = "") -> None:
        return None

    def set_node_up(self, name: str, up: bool) -> None:
        return None

    def shape(
        self, node: str, pod: str, *, delay: float, jitter: float, loss: float, corruption: float, bandwidth: float
    ) -> None:
        return None

    def attach_pod(self, pod: Obj, sockets: NetworkNamespace) -> NetworkFacade:
        return LoopbackNetwork(sockets)

    def detach_pod(self, uid: str) -> None:
        return None
