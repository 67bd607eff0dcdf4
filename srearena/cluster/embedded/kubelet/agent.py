"""What the API server requests from kubelets: logs, containers for exec, sockets for port-forward, and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.kubelet.node.usage import Usage, dial_error
from srearena.cluster.embedded.kubelet.summary import Summary
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.machine.files import host_tree
from srearena.cluster.embedded.machine.files.inodes import Directory
from srearena.cluster.embedded.machine.networking.sockets import NetworkNamespace
from srearena.cluster.embedded.objects import Obj, uid_of

if TYPE_CHECKING:
    from srearena.cluster.embedded.kubelet.nodes import Nodes

LOGS = "/var/log"


class Agent:
    """Implements the API's `NodeAgent`."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def dial_error(self, node: str) -> str:
        """The dial error for an unreachable kubelet, in the wording of Go's dialer; empty where it is reachable."""
        return dial_error(self._nodes.kubelet(node))

    def _sandbox(self, pod: Obj) -> Sandbox | None:
        kubelet = self._nodes.kubelet_of(pod)
        return kubelet.machine.sandboxes.get(uid_of(pod)) if kubelet is not None else None

    def record(self, pod: Obj, container: str, *, previous: bool = False) -> ContainerRecord | None:
        """The latest attempt at running that container (or the one before)."""
        sandbox = self._sandbox(pod)
        if sandbox is None:
            return None
        return sandbox.previous(container) if previous else sandbox.latest(container)

    def sockets(self, pod: Obj) -> NetworkNamespace | None:
        sandbox = self._sandbox(pod)
        return sandbox.namespace if sandbox is not None and sandbox.ready else None

    def pods_of(self, node: str) -> list[Obj]:
        """The pods that the kubelet of a node manages."""
        kubelet = self._nodes.kubelets[node]
        return [worker.pod for worker in kubelet.workers.values()]

    def running_pods(self, node: str) -> list[Obj]:
        """The pods that the container runtime of a node runs, as far as the runtime knows them."""
        found = []
        for sandbox in self._nodes.kubelets[node].machine.sandboxes.values():
            running = [
                {"name": record.name, "image": record.image.digest, "resources": {}} for record in sandbox.running()
            ]
            if sandbox.ready and running:
                metadata = {key: sandbox.pod["metadata"][key] for key in ("name", "namespace", "uid")}
                spec = {"containers": running}
                found.append({"metadata": {**metadata, "creationTimestamp": None}, "spec": spec, "status": {}})
        return found

    def summary(self, node: str) -> Obj:
        """What a node and its pods use."""
        return Summary(self._nodes.kubelets[node], self._nodes.usage).document()

    def configuration(self, node: str) -> Obj:
        """All settings that the kubelet of a node runs with."""
        return self._nodes.kubelets[node].configuration.document

    def log_files(self, node: str) -> Directory:
        """/var/log of a node."""
        found = host_tree.find(self._nodes.kubelets[node].machine.files.root, LOGS)
        return found if isinstance(found, Directory) else Directory()

    def node_usage(self, node: str) -> Usage | None:
        return self._nodes.usage.of_node(node)

    def pod_usage(self, pod: Obj) -> dict[str, Usage] | None:
        kubelet = self._nodes.kubelet_of(pod)
        return self._nodes.usage.of_pod(kubelet, pod) if kubelet is not None else None
