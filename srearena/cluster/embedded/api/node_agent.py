"""What the API asks of nodes: the kubelets, behind logs, exec, attach, port-forward and metrics.

These are protocols: the `node` package fits them without knowing this one. Nothing here waits; what takes time
happens inside containers, whose logs, pipes and signals tell when to look again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.machine.containers.log import ContainerLog
from srearena.cluster.embedded.machine.files.inodes import Directory
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.objects import Obj


class ContainerView(Protocol):
    """One attempt at running a container."""

    @property
    def id(self) -> str:
        """As in `containerID`, without the runtime's name."""
        ...

    @property
    def log(self) -> ContainerLog: ...

    @property
    def running(self) -> bool: ...

    @property
    def container(self) -> Container | None:
        """None once it is only remembered for its log."""
        ...


class Usage(Protocol):
    """What a container or a node used, as metrics-server last scraped it."""

    @property
    def cores(self) -> float: ...

    @property
    def working_set(self) -> int:
        """In bytes."""
        ...

    @property
    def at(self) -> float:
        """When it was measured."""
        ...

    @property
    def window(self) -> float:
        """Over how many seconds the cores are averaged."""
        ...


class NodeAgent(Protocol):
    """All nodes of the cluster; pods are given as stored objects (bound to a node by `spec.nodeName`)."""

    def dial_error(self, node: str) -> str:
        """Why the kubelet of that node cannot be reached (`connect: connection refused`, `i/o timeout`); or nothing."""
        ...

    def record(self, pod: Obj, container: str, *, previous: bool = False) -> ContainerView | None:
        """The latest attempt at running that container of the pod (or the one before); None if there was none."""
        ...

    def sockets(self, pod: Obj) -> NetworkNamespace | None:
        """The network namespace of the pod; None while it has no sandbox."""
        ...

    def configuration(self, node: str) -> Obj:
        """All settings that the kubelet of a node runs with."""
        ...

    def pods_of(self, node: str) -> list[Obj]:
        """The pods that the kubelet of a node manages."""
        ...

    def running_pods(self, node: str) -> list[Obj]:
        """The pods that the container runtime of a node runs, as far as the runtime knows them."""
        ...

    def summary(self, node: str) -> Obj:
        """What a node and its pods use, as the kubelet's summary."""
        ...

    def log_files(self, node: str) -> Directory:
        """/var/log of a node."""
        ...

    def node_usage(self, node: str) -> Usage | None:
        """None where metrics-server has nothing of it yet."""
        ...

    def pod_usage(self, pod: Obj) -> Mapping[str, Usage] | None:
        """By container; None where metrics-server has nothing of the pod yet."""
        ...
