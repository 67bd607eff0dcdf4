"""A real cluster for the duration of a run: checked, recorded, used, and restored.

cluster = open_shared_cluster(KubernetesCluster(), Needs(("shop",)), config)
...
cluster.close()      # deletes what the run created and restores the rest; ClusterError names what it could not
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from srearena.cluster.base import ClusterError, DelegatingCluster, NodeAccess, TelemetryEndpoints
from srearena.cluster.kubernetes import KubernetesCluster
from srearena.conductor.shared_cluster.forwarding import Forwarding
from srearena.conductor.shared_cluster.inventory import take_inventory
from srearena.conductor.shared_cluster.ledger import Ledger, all_ledgers, new_name, refuse_concurrent_run
from srearena.conductor.shared_cluster.preflight import Needs, check_access, check_capacity
from srearena.conductor.shared_cluster.recording_proxy import RecordingProxy
from srearena.conductor.shared_cluster.restoration import restore
from srearena.conductor.shared_cluster.telemetry import NAMESPACE as OBSERVE
from srearena.conductor.shared_cluster.telemetry import discover, endpoints_of, install
from srearena.config import Config, LogShipper
from srearena.service.kubeconfig import read_kubeconfig
from srearena.service.kubernetes import Kubernetes
from srearena.service.transport import is_direct

Say = Callable[[str], None]


def open_shared_cluster(
    cluster: KubernetesCluster, needs: Needs, config: Config, say: Say = lambda text: None
) -> SharedCluster:
    """Check the cluster and record its state; PreflightFailed or ClusterError before anything is changed."""
    with Kubernetes.of(cluster) as api:
        check_access(cluster.context, api, trusted=config.yes_this_cluster)
        identity = str(api.get("namespaces", "kube-system")["metadata"]["uid"])
        refuse_concurrent_run(all_ledgers(), identity)
        check_capacity(cluster.context, api, needs)
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
    return SharedCluster(cluster, ledger, say)


@contextmanager
def telemetry_of_run(cluster: KubernetesCluster) -> Iterator[TelemetryEndpoints]:
    """Forward the telemetry of the run in progress on a cluster, which any process may have started."""
    with Kubernetes.of(cluster) as api:
        identity = str(api.get("namespaces", "kube-system")["metadata"]["uid"])
        runs = [ledger for ledger in all_ledgers() if ledger.cluster == identity]
        targets = discover(api, [name for run in runs for name in run.namespaces]) if runs else {}
    if not runs:
        raise ClusterError(f"nothing of srearena runs on cluster {cluster.name!r}: start it with `srearena up`")
    if not targets:
        raise _no_telemetry(cluster.name)
    forwarding = Forwarding(cluster.kubeconfig, targets)
    try:
        yield endpoints_of(forwarding)
    finally:
        forwarding.close()


def _no_telemetry(name: str) -> ClusterError:
    return ClusterError(f"there is no telemetry in the namespace {OBSERVE} of cluster {name!r}")


class SharedCluster(DelegatingCluster[KubernetesCluster]):
    """A cluster with other users, whose state `close` restores."""

    def __init__(self, cluster: KubernetesCluster, ledger: Ledger, say: Say = lambda text: None) -> None:
        super().__init__(cluster)
        self.ledger = ledger
        self._say = say
        self._closed = False
        self._observed_namespaces: tuple[str, ...] | None = None
        self._forwarding: Forwarding | None = None
        self._journal = ledger.journal
        self._proxies: list[RecordingProxy] = []

    def record_created(self, obj: Mapping[str, Any]) -> None:
        self._journal.record(obj)

    def rewrite_kubeconfig(self, kubeconfig: Path) -> None:
        """Point the kubeconfig at a proxy that records what the agent creates; not where an HTTP proxy is in use."""
        access = read_kubeconfig(kubeconfig)
        if is_direct(access.server):
            proxy = RecordingProxy(access, self._journal.record)
            self._proxies.append(proxy)
            proxy.rewrite_kubeconfig(kubeconfig)

    def close_agent_connections(self) -> None:
        """Stop the proxies: a real API server does not end a watch or an `exec` whose credentials are revoked."""
        for proxy in self._proxies:
            proxy.close()

    def _close_proxies(self) -> None:
        self.close_agent_connections()
        if self._forwarding is not None:
            self._forwarding.close()

    @property
    def nodes(self) -> NodeAccess:
        return _RecordedNodeAccess(self)

    def observe(self, namespaces: Sequence[str], shipper: LogShipper = "alloy") -> None:
        """Install telemetry for applications in these namespaces; its Services are looked up on first use."""
        with Kubernetes.of(self) as api:
            install(self, api, shipper)
        self._observed_namespaces = tuple(namespaces)

    @property
    def telemetry(self) -> TelemetryEndpoints:
        if self._observed_namespaces is None:
            return self.inner.telemetry
        if self._forwarding is None:
            with Kubernetes.of(self) as api:
                targets = discover(api, self._observed_namespaces)
            if not targets:
                raise _no_telemetry(self.name)
            self._forwarding = Forwarding(self.kubeconfig, targets)
        return endpoints_of(self._forwarding)

    def leave_running(self) -> None:
        """Release the resources of this process and leave the applications running for `srearena cleanup`."""
        self.ledger = self.ledger.update(kept=True, pid=0)
        self._closed = True
        self._close_proxies()
        self.inner.close()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._close_proxies()
        try:
            with Kubernetes.of(self.inner) as api:
                report = restore(self.inner, api, self.ledger, self._say)
            for line in report.foreign:
                self._say(f"not deleted, because it may belong to others: {line}")
            if report.unrestored:
                raise ClusterError(
                    f"the cluster is not fully restored ({'; '.join(report.unrestored[:5])}): "
                    f"`srearena cleanup --run {self.ledger.run}` tries again"
                )
            self.ledger.delete()
        finally:
            self.inner.close()


class _RecordedNodeAccess(NodeAccess):
    """Node access that writes to the ledger before the first machine is touched."""

    def __init__(self, cluster: SharedCluster) -> None:
        self._cluster = cluster

    def operations(self) -> tuple[str, ...]:
        return self._cluster.inner.nodes.operations()

    def perform(self, operation: str, node: str, **arguments: object) -> None:
        if not self._cluster.ledger.machines and operation in self.operations():
            self._cluster.ledger = self._cluster.ledger.update(machines=True)
        self._cluster.inner.nodes.perform(operation, node, **arguments)
