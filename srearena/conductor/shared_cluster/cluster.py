"""A real cluster for the time of a visit: looked over, written down, used, and left as it was.

cluster = enter(KubernetesCluster(), Needs(("shop",)), config)
...
cluster.close()      # everything of ours is gone, everything else as before; ClusterError names what is not
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from srearena.cluster.base import ClusterError, DelegatingCluster, NodeAccess, TelemetryEndpoints
from srearena.cluster.kubernetes import KubernetesCluster
from srearena.conductor.shared_cluster.forwarding import Forwarding
from srearena.conductor.shared_cluster.inventory import take_inventory
from srearena.conductor.shared_cluster.ledger import Ledger, all_ledgers, new_name, refuse_company
from srearena.conductor.shared_cluster.preflight import Needs, has_room, may_enter
from srearena.conductor.shared_cluster.recording_proxy import Door
from srearena.conductor.shared_cluster.restoration import restore
from srearena.conductor.shared_cluster.telemetry import NAMESPACE as OBSERVE
from srearena.conductor.shared_cluster.telemetry import discover, install, reached
from srearena.config import Config
from srearena.service.kubeconfig import read_kubeconfig
from srearena.service.kubernetes import Kubernetes
from srearena.service.transport import is_direct

Say = Callable[[str], None]


def enter(cluster: KubernetesCluster, needs: Needs, config: Config, say: Say = lambda text: None) -> GuestCluster:
    """Check, write down, and hand out; PreflightFailed or ClusterError before anything is changed."""
    with Kubernetes.of(cluster) as api:
        may_enter(cluster.context, api, trusted=config.yes_this_cluster)
        identity = str(api.get("namespaces", "kube-system")["metadata"]["uid"])
        refuse_company(all_ledgers(), identity)
        has_room(cluster.context, api, needs)
        ledger = Ledger(
            run=new_name(),
            cluster=identity,
            server=cluster.context.server,
            kubeconfig=str(cluster.context.path.absolute()),
            context=cluster.context.name,
            host=config.k8s_host,
            user=config.k8s_user,
            begun=api.now(),
            namespaces=needs.namespaces,
            inventory=take_inventory(api),
            pid=os.getpid(),
        )
    ledger.write()
    return GuestCluster(cluster, ledger, say)


class GuestCluster(DelegatingCluster[KubernetesCluster]):
    """Somebody's cluster, which `close` gives back as it was."""

    def __init__(self, cluster: KubernetesCluster, ledger: Ledger, say: Say = lambda text: None) -> None:
        super().__init__(cluster)
        self.ledger = ledger
        self._say = say
        self._closed = False
        self._observed: tuple[str, ...] | None = None
        self._forwarding: Forwarding | None = None
        self._journal = ledger.journal
        self._doors: list[Door] = []

    def record_created(self, obj: Mapping[str, Any]) -> None:
        self._journal.note(obj)

    def rewrite_kubeconfig(self, kubeconfig: Path) -> None:
        """Through a door at which we write down what the agent makes; by itself where a proxy lies in between."""
        access = read_kubeconfig(kubeconfig)
        if is_direct(access.server):
            door = Door(access, self._journal.note)
            self._doors.append(door)
            door.lead(kubeconfig)

    def _shut(self) -> None:
        for door in self._doors:
            door.close()
        if self._forwarding is not None:
            self._forwarding.close()

    @property
    def nodes(self) -> NodeAccess:
        return _NotedMachines(self)

    def observe(self, namespaces: Sequence[str]) -> None:
        """Install telemetry for applications in these namespaces; it is looked for when somebody first asks."""
        with Kubernetes.of(self) as api:
            install(self, api)
        self._observed = tuple(namespaces)

    @property
    def telemetry(self) -> TelemetryEndpoints:
        if self._observed is None:
            return self.inner.telemetry
        if self._forwarding is None:
            with Kubernetes.of(self) as api:
                found = discover(api, self._observed)
            if not found:
                raise ClusterError(f"there is no telemetry in the namespace {OBSERVE} of cluster {self.name!r}")
            self._forwarding = Forwarding(self.kubeconfig, found)
        return reached(self._forwarding)

    def leave_running(self) -> None:
        """End this process's part in it: `srearena cleanup` ends the rest."""
        self.ledger = self.ledger.changed(kept=True, pid=0)
        self._closed = True
        self._shut()
        self.inner.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._shut()
        try:
            with Kubernetes.of(self.inner) as api:
                leaving = restore(self.inner, api, self.ledger, self._say)
            for line in leaving.alone:
                self._say(f"left alone, since it is not known to be ours: {line}")
            if leaving.left:
                raise ClusterError(
                    f"the cluster is not as it was ({'; '.join(leaving.left[:5])}): "
                    f"`srearena cleanup --run {self.ledger.run}` tries again"
                )
            self.ledger.forget()
        finally:
            self.inner.close()


class _NotedMachines(NodeAccess):
    """The machines, with a note on disk before the first of them is touched."""

    def __init__(self, guest: GuestCluster) -> None:
        self._guest = guest

    def operations(self) -> tuple[str, ...]:
        return self._guest.inner.nodes.operations()

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        if not self._guest.ledger.machines and operation in self.operations():
            self._guest.ledger = self._guest.ledger.changed(machines=True)
        self._guest.inner.nodes.perform(operation, node, **arguments)
