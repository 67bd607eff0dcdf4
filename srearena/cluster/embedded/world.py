"""One cluster: its clock, store and registry, and the handlers of its components.

Single-threaded. Components are handlers on the clock's queue and on the store's changes; requests from outside run
between two events. Two worlds share nothing but read-only tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from srearena.cluster.embedded.client import Client, Requests
from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.randomness import Randomness
from srearena.cluster.embedded.registry.identity import User, component, service_account
from srearena.cluster.embedded.registry.registry import Registry
from srearena.cluster.embedded.store import Change, Store

CONTROLLER_MANAGER = "kube-controller-manager"


class World:
    def __init__(self, *, seed: int, start: float, secret: str = "", has_addons: bool = False) -> None:
        self.clock = Clock(start)
        self.store = Store()
        self.randomness = Randomness(seed, secret.encode())
        self.registry = Registry(self.clock, self.store, self.randomness)
        self.component_logs = self.registry.component_logs
        self.has_addons = has_addons
        """Whether CNI plugin, provisioner and node exporter are pods; without them they work unseen."""
        self._serial = 0
        self.api_requests: Counter[tuple[str, ...]] = Counter()
        """Requests answered over HTTP: verb, group, version, resource, subresource, scope, code."""
        self.component_requests: dict[str, Requests] = {}
        """Requests of the cluster's own programs, by field manager; of kubelets by user."""
        self.control_plane_name = "control-plane"
        """The node that the control plane runs on."""
        self.root_certificate = ""
        """The certificate (PEM) of the authority that signed the API's; published into every namespace."""

    def client(self, user: User, field_manager: str) -> Client:
        program = user.name if field_manager == "kubelet" else field_manager
        return Client(self.registry, user, field_manager, self.component_requests.setdefault(program, Counter()))

    def controller_client(self, name: str) -> Client:
        """For a controller of the controller manager, which runs as a service account of its own."""
        return self.client(service_account("kube-system", name), CONTROLLER_MANAGER)

    def component_client(self, name: str) -> Client:
        """For a program of the control plane with an identity of its own, such as `kube-scheduler`."""
        return self.client(component(name), name)

    def on_change(self, resource: str, handler: Callable[[Change], None]) -> None:
        """Call `handler` after each write to a resource. It may read and schedule work, but must not write."""
        self.store.subscribe(handler, resource)

    def next_serial(self) -> int:
        """1, 2, 3 ...: orders events within one instant."""
        self._serial += 1
        return self._serial
