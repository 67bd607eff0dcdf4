"""Where a fault is injected: a namespace of a cluster.

Users of the original project name only the namespace (`VirtualizationFaultInjector(testbed="social-network")`), so the
cluster that is being acted on is kept per context; the conductor says which one it is.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from srearena.cluster import Cluster
from srearena.generators.fault.errors import FaultError
from srearena.service.kubernetes import Kubernetes
from srearena.service.waiting import wait_until

_acted_on: ContextVar[Cluster | None] = ContextVar("acted_on", default=None)


@contextmanager
def acting_on(cluster: Cluster) -> Iterator[None]:
    """Injectors that are not told otherwise act on this cluster meanwhile."""
    token = _acted_on.set(cluster)
    try:
        yield
    finally:
        _acted_on.reset(token)


def current_cluster() -> Cluster:
    cluster = _acted_on.get()
    if cluster is None:
        raise FaultError("no cluster to inject into: pass `cluster=`, or inject inside an episode")
    return cluster


@dataclass(frozen=True)
class Testbed:
    """A namespace, the cluster it is in, and the harness's way there."""

    __test__ = False  # its name makes pytest curious

    namespace: str
    cluster: Cluster
    kubernetes: Kubernetes = field(compare=False)

    @classmethod
    def of(cls, namespace: str, cluster: Cluster | None = None, kubernetes: Kubernetes | None = None) -> Testbed:
        """A client that is not given is made, and closed when the testbed is forgotten."""
        chosen = cluster or current_cluster()
        bed = cls(namespace, chosen, kubernetes or Kubernetes.of(chosen))
        if kubernetes is None:
            weakref.finalize(bed, bed.kubernetes.close)
        return bed

    def until(self, check: object, timeout: float, what: str) -> None:
        """Let time pass until `check()` holds; TimedOut names `what` otherwise."""
        assert callable(check)
        wait_until(check, self.cluster.wait, timeout, what=what)
