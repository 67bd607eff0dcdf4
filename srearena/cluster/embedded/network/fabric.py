"""The fabric: the state that decides where packets go, and the epoch that advances when it changes.

DNS and protocols above UDP and TCP are no part of it. Caches built on the fabric compare epochs: every change that may
change a route must advance the epoch, and others (heartbeats, statuses without effect on routes) must not.
"""

from __future__ import annotations

from collections.abc import Callable

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.network.flows import Flows
from srearena.cluster.embedded.network.hosts import Hosts
from srearena.cluster.embedded.network.links import Links
from srearena.cluster.embedded.network.policies import NAMESPACES, PODS, POLICIES, Policies
from srearena.cluster.embedded.network.proxies import Proxies
from srearena.cluster.embedded.network.routes import Routes
from srearena.cluster.embedded.network.services import SERVICES, SLICES, Services
from srearena.cluster.embedded.objects import Obj, dig, labels_of
from srearena.cluster.embedded.store import Change, Store

NODES = "nodes"


class Fabric:
    def __init__(self, clock: Clock, store: Store) -> None:
        self.clock = clock
        self.store = store
        self.epoch = 0
        self.hosts = Hosts(self._hosts_changed)
        self.links = Links(self.move_epoch)
        self.services = Services(store)
        self.proxies = Proxies(self.services, self.move_epoch)
        self.policies = Policies(store)
        self.flows = Flows(clock, self.move_epoch)
        self.routes = Routes(self)
        handlers: dict[str, Callable[[Change], None]] = {
            SERVICES: self._service_changed,
            SLICES: self._service_changed,
            POLICIES: self._policy_changed,
            PODS: self._pod_changed,
            NAMESPACES: self._labels_changed,
            NODES: self._labels_changed,
        }
        for resource, handler in handlers.items():
            store.subscribe(handler, resource)

    def move_epoch(self) -> None:
        """Invalidate cached routes and forecasts."""
        self.epoch += 1

    def _hosts_changed(self) -> None:
        self.policies.note_pods()
        self.epoch += 1

    def _service_changed(self, change: Change) -> None:
        self.services.note(change)
        self.epoch += 1

    def _policy_changed(self, change: Change) -> None:
        self.policies.note_policies()
        self.epoch += 1

    def _pod_changed(self, change: Change) -> None:
        if change.type == "MODIFIED" and change.old is not None and _as_routed(change.old) == _as_routed(change.new):
            return
        self.policies.note_pods()
        self.epoch += 1

    def _labels_changed(self, change: Change) -> None:
        if change.old is None or change.type == "DELETED" or labels_of(change.old) != labels_of(change.new):
            self.policies.note_pods()
            self.epoch += 1


def _as_routed(pod: Obj) -> tuple[object, object]:
    """The parts of an existing pod that routing and DNS depend on."""
    return labels_of(pod), dig(pod, "status", "podIP")
