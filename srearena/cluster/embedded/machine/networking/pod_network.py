"""How a machine is plugged into the cluster's network, without knowing what that network is.

The `network` package implements `PodNetwork`; where there is none, every pod is alone with itself.
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
        """Whether the machine is powered and plugged in."""
        ...

    def shape(
        self, node: str, pod: str, *, delay: float, jitter: float, loss: float, corruption: float, bandwidth: float
    ) -> None:
        """Disturb what leaves a machine, or one of its pods; all zeros end it."""
        ...

    def attach_pod(self, pod: Obj, sockets: NetworkNamespace) -> NetworkFacade:
        """A sandbox is up; returns the network as its containers see it."""
        ...

    def detach_pod(self, uid: str) -> None: ...


class NoNetwork:
    """A cable that leads nowhere."""

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
