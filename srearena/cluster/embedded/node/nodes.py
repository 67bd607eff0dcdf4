"""All nodes of a cluster: starting them, finding them, telling each of the pods that concern it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from srearena.cluster.embedded.node.catalogue import Catalogue
from srearena.cluster.embedded.node.environment import ServiceVariables
from srearena.cluster.embedded.node.kubelet import Kubelet
from srearena.cluster.embedded.node.machine import Machine, NetworkProvider, NodeSpec
from srearena.cluster.embedded.node.pod_worker import PodWorker
from srearena.cluster.embedded.node.projections import TokenProvider
from srearena.cluster.embedded.node.runtime import Sandbox
from srearena.cluster.embedded.node.volumes import PersistentStorage
from srearena.cluster.embedded.objects import Obj, dig, name_of, namespace_of, uid_of
from srearena.cluster.embedded.store import Change

if TYPE_CHECKING:
    from srearena.cluster.embedded.world import World


class Nodes:
    """Finds kubelets, machines and pods' sandboxes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.catalogue = Catalogue()
        self.storage = PersistentStorage()
        self.kubelets: dict[str, Kubelet] = {}
        self.token_provider: TokenProvider = _no_token
        """Makes service account tokens for projected volumes."""
        self.network_provider: NetworkProvider | None = None
        """Makes the network as a pod sees it; without one, a pod sees only itself."""
        self._services = ServiceVariables(world)
        world.store.add_index("pods", "node", _node_of)
        world.on_change("pods", self._hear)

    def add(self, spec: NodeSpec) -> Kubelet:
        """Switch a new node on; it registers itself."""
        world = self.world
        machine = Machine(
            spec,
            len(self.kubelets),
            world.clock,
            world.randomness.stream(f"node/{spec.name}"),
            self.catalogue,
        )
        if self.network_provider is not None:
            machine.network_provider = self.network_provider
        kubelet = Kubelet(world, machine, self._services, self.storage, self._token)
        self.kubelets[spec.name] = kubelet
        kubelet.start()
        return kubelet

    def _token(self, pod: Obj, audience: str, seconds: int) -> str:
        return self.token_provider(pod, audience, seconds)

    def connect(self, provider: NetworkProvider) -> None:
        """Give every pod, now and later, the network that `provider` makes for its sandbox."""
        self.network_provider = provider
        for kubelet in self.kubelets.values():
            kubelet.machine.network_provider = provider

    def _hear(self, change: Change) -> None:
        name = change.new["spec"].get("nodeName")
        kubelet = self.kubelets.get(name) if name else None
        if kubelet is not None:
            kubelet.hear(change)

    # Finding

    def kubelet(self, node: str) -> Kubelet | None:
        return self.kubelets.get(node)

    def kubelet_of(self, pod: Obj) -> Kubelet | None:
        return self.kubelets.get(dig(pod, "spec", "nodeName", default=""))

    def worker(self, namespace: str, name: str) -> PodWorker | None:
        """Who takes care of a pod, if somebody does."""
        pod = self.world.store.get("pods", namespace, name)
        kubelet = self.kubelet_of(pod) if pod is not None else None
        return kubelet.workers.get(uid_of(pod)) if kubelet is not None and pod is not None else None

    def sandbox(self, namespace: str, name: str) -> Sandbox | None:
        pod = self.world.store.get("pods", namespace, name)
        kubelet = self.kubelet_of(pod) if pod is not None else None
        return kubelet.machine.sandboxes.get(uid_of(pod)) if kubelet is not None and pod is not None else None

    def sandbox_at(self, address: str) -> Sandbox | None:
        """The running pod that has an address."""
        for kubelet in self.kubelets.values():
            found = kubelet.machine.sandbox_at(address)
            if found is not None:
                return found
        return None

    def machine_at(self, address: str) -> Machine | None:
        return next((k.machine for k in self.kubelets.values() if k.machine.address == address), None)


def start_nodes(world: World, specs: Iterable[NodeSpec]) -> Nodes:
    """Switch the machines of a cluster on; each registers its node and takes care of the pods bound to it."""
    nodes = Nodes(world)
    for spec in specs:
        nodes.add(spec)
    return nodes


def _node_of(pod: Obj) -> tuple[str, ...]:
    name = dig(pod, "spec", "nodeName")
    return (name,) if name else ()


def _no_token(pod: Obj, audience: str, seconds: int) -> str:
    return f"{namespace_of(pod)}.{name_of(pod)}.{audience}"
