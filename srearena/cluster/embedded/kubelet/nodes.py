"""All nodes of a cluster: start them, look them up, and dispatch pod changes to their kubelets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from srearena.cluster.embedded.kubelet.access import NodeAccess
from srearena.cluster.embedded.kubelet.agent import Agent
from srearena.cluster.embedded.kubelet.environment import ServiceVariables
from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.node import configuration
from srearena.cluster.embedded.kubelet.node.control_plane import PRELOADED, control_plane_manifests
from srearena.cluster.embedded.kubelet.node.services import services_of
from srearena.cluster.embedded.kubelet.node.usage import UsageSampler
from srearena.cluster.embedded.kubelet.pods.worker import PodWorker
from srearena.cluster.embedded.kubelet.volumes.projections import DEFAULT_TOKEN_SECONDS, TokenProvider
from srearena.cluster.embedded.kubelet.volumes.refresh import VolumeRefresh
from srearena.cluster.embedded.kubelet.volumes.volumes import PersistentStorage
from srearena.cluster.embedded.machine.containers.runtime import ContainerRecord, Sandbox
from srearena.cluster.embedded.machine.files import host_tree
from srearena.cluster.embedded.machine.images.catalogue import Catalogue
from srearena.cluster.embedded.machine.machine import Machine, NodeSpec
from srearena.cluster.embedded.machine.networking.pod_network import NoNetwork, PodNetwork
from srearena.cluster.embedded.objects import Obj, dig, namespace_of, uid_of
from srearena.cluster.embedded.programs.registry import Programs
from srearena.cluster.embedded.programs.system.node_image import NODE_IMAGE
from srearena.cluster.embedded.registry.tokens import TokenIssuer
from srearena.cluster.embedded.store import Change

if TYPE_CHECKING:
    from srearena.cluster.embedded.world import World

EXTENDED_TOKEN_SECONDS = 365 * 24 * 3600
"""How long the API server really accepts a token requested with the default lifetime."""


class Nodes:
    """Finds kubelets, machines and pods' sandboxes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.catalogue = Catalogue()
        self.programs = Programs()
        self.storage = PersistentStorage()
        self.kubelets: dict[str, Kubelet] = {}
        self.token_provider: TokenProvider = self._issue_token
        """Makes service account tokens for projected volumes."""
        self.on_container: Callable[[Sandbox, ContainerRecord], object] | None = None
        """Called with every container that is created; to be set before the machines are added."""
        self._network: PodNetwork = NoNetwork()
        self._by_range: dict[str, Machine] = {}
        """Machines by the first three octets of their pods' addresses."""
        self._issuer: TokenIssuer | None = None
        self._tokens: dict[tuple[str, str, int], tuple[float, str]] = {}
        """By pod, audience and lifetime: when to renew the token, and the token."""
        self._services = ServiceVariables(world)
        self._refresh = VolumeRefresh(world)
        self.usage = UsageSampler(world.clock, self.kubelets, world.component_logs)
        self.agent = Agent(self)
        """Serves the API's requests for logs, exec, port-forward and metrics."""
        self.access = NodeAccess(self)
        """Operations on machines that Kubernetes has no API for."""
        world.store.add_index("pods", "node", _node_of)
        world.on_change("pods", self._handle_pod_change)

    def add(self, spec: NodeSpec) -> Kubelet:
        """Start a new node; it registers itself."""
        world = self.world
        machine = Machine(
            spec,
            len(self.kubelets),
            world.clock,
            world.randomness.stream(f"node/{spec.name}"),
            self.catalogue,
            self.programs,
        )
        host_tree.install(machine.files.root, self.programs.find(NODE_IMAGE).tree)
        machine.root_certificate = world.root_certificate.encode()
        configuration.write(machine)
        machine.component_logs = world.component_logs
        machine.plug_into(self._network)
        machine.on_container = self.on_container
        kubelet = Kubelet(world, machine, self._services, self.storage, self._refresh, self._token)
        machine.images.preload(*PRELOADED)
        self._by_range[machine.gateway.rpartition(".")[0]] = machine
        self.kubelets[spec.name] = kubelet
        if spec.is_control_plane:
            for manifest in control_plane_manifests(machine):
                kubelet.static_pods.add(manifest)
        machine.services |= {service.name: service for service in services_of(kubelet)}
        kubelet.start()
        return kubelet

    def _issue_token(self, pod: Obj, audience: str, seconds: int) -> str:
        """The token a projected volume shows now; renewed after four fifths of its lifetime, as the kubelet does."""
        now = self.world.clock.now
        key = (uid_of(pod), audience, seconds)
        found = self._tokens.get(key)
        if found is None or now >= found[0]:
            if self._issuer is None:
                self._issuer = TokenIssuer(self.world.clock, self.world.store, self.world.randomness)
            name = dig(pod, "spec", "serviceAccountName", default="default")
            account = self.world.store.get("serviceaccounts", namespace_of(pod), name)
            if account is None:
                return ""
            extended = seconds == DEFAULT_TOKEN_SECONDS
            text = self._issuer.issue(
                account,
                audiences=[audience] if audience else (),
                seconds=EXTENDED_TOKEN_SECONDS if extended else seconds,
                bound_to=pod,
                warn_after=seconds if extended else None,
            )
            found = self._tokens[key] = (now + seconds * 0.8, text)
        return found[1]

    def renew_tokens(self) -> None:
        """Sign the tokens in pods' volumes with the key of the world's present secret."""
        if self._issuer is not None:
            self._issuer.renew()
            self._tokens = {
                key: (until, self._issuer.signed_again(token)) for key, (until, token) in self._tokens.items()
            }

    def _token(self, pod: Obj, audience: str, seconds: int) -> str:
        return self.token_provider(pod, audience, seconds)

    def connect(self, network: PodNetwork) -> None:
        """Connect every machine and its pods, present and future, to a network."""
        self._network = network
        for kubelet in self.kubelets.values():
            kubelet.machine.plug_into(network)

    def _handle_pod_change(self, change: Change) -> None:
        name = change.new["spec"].get("nodeName")
        kubelet = self.kubelets.get(name) if name else None
        if kubelet is not None:
            kubelet.handle_pod_change(change)

    # Finding

    def kubelet(self, node: str) -> Kubelet | None:
        return self.kubelets.get(node)

    def kubelet_of(self, pod: Obj) -> Kubelet | None:
        return self.kubelets.get(dig(pod, "spec", "nodeName", default=""))

    def worker(self, namespace: str, name: str) -> PodWorker | None:
        """The worker of a pod; None where it has none."""
        pod = self.world.store.get("pods", namespace, name)
        kubelet = self.kubelet_of(pod) if pod is not None else None
        return kubelet.workers.get(uid_of(pod)) if kubelet is not None and pod is not None else None

    def sandbox(self, namespace: str, name: str) -> Sandbox | None:
        pod = self.world.store.get("pods", namespace, name)
        kubelet = self.kubelet_of(pod) if pod is not None else None
        return kubelet.machine.sandboxes.get(uid_of(pod)) if kubelet is not None and pod is not None else None

    def sandbox_at(self, address: str) -> Sandbox | None:
        """The running pod that has an address."""
        machine = self._by_range.get(address.rpartition(".")[0])
        return machine.sandbox_at(address) if machine is not None else None

    def address_of(self, node: str) -> str:
        """The InternalIP of a node."""
        return self.kubelets[node].machine.address


def _node_of(pod: Obj) -> tuple[str, ...]:
    name = dig(pod, "spec", "nodeName")
    return (name,) if name else ()
