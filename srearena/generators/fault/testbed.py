"""The testbed: the namespace and cluster into which a fault is injected.

Users of the original project name only the namespace (`VirtualizationFaultInjector(testbed="social-network")`), so the
current cluster is kept in a context variable, which the conductor sets.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from srearena.cluster import Cluster
from srearena.generators.fault.authors import OPERATOR, Author
from srearena.generators.fault.errors import FaultError
from srearena.service.kubernetes import Kubernetes
from srearena.service.waiting import wait_until

_current_cluster: ContextVar[Cluster | None] = ContextVar("current_cluster", default=None)
_current_author: ContextVar[Author] = ContextVar("current_author", default=OPERATOR)


@contextmanager
def target_cluster(cluster: Cluster, author: Author = OPERATOR) -> Iterator[None]:
    """Set the cluster of injectors that are created without one, and the author of all, while the context lasts."""
    token, author_token = _current_cluster.set(cluster), _current_author.set(author)
    try:
        yield
    finally:
        _current_cluster.reset(token)
        _current_author.reset(author_token)


def current_cluster() -> Cluster:
    cluster = _current_cluster.get()
    if cluster is None:
        raise FaultError("no cluster to inject into: pass `cluster=`, or inject inside an episode")
    return cluster


@dataclass(frozen=True)
class Testbed:
    """A namespace, its cluster, the harness's client for it, and the author of what is changed in it."""

    __test__ = False  # keep pytest from collecting it

    namespace: str
    cluster: Cluster
    kubernetes: Kubernetes = field(compare=False)
    author: Author = field(default_factory=_current_author.get)

    @classmethod
    def of(cls, namespace: str, cluster: Cluster | None = None, kubernetes: Kubernetes | None = None) -> Testbed:
        """Create a testbed; a client that is created here is closed with the testbed."""
        chosen = cluster or current_cluster()
        bed = cls(namespace, chosen, kubernetes or Kubernetes.of(chosen))
        if kubernetes is None:
            weakref.finalize(bed, bed.kubernetes.close)
        return bed

    def wait_for(self, check: Callable[[], object], timeout: float, what: str) -> None:
        """Poll `check` until it returns a true value; TimedOut names `what` otherwise."""
        wait_until(check, self.cluster.wait, timeout, what=what)
