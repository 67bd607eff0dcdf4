"""What an environment offers, whichever it is: a kubeconfig, a way to let time pass, and access to its nodes.

Everything else about a cluster is reached through the Kubernetes API that the kubeconfig points at.

    ClusterError
    ├── ClusterUnavailable   it did not come up, or is gone
    └── NodeAccessError      a node operation cannot be done here
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar

from srearena.closing import Closing
from srearena.errors import SreArenaError


class ClusterError(SreArenaError):
    """Something about a cluster that a user can act on; the message says what and what to do next."""


class ClusterUnavailable(ClusterError):
    """The cluster did not come up, or cannot be reached any more."""


class NodeAccessError(ClusterError):
    """The operation on a node is unknown or impossible in this environment."""


class NodeAccess(ABC):
    """What Kubernetes has no API for: things done to a machine rather than to an object."""

    @abstractmethod
    def operations(self) -> tuple[str, ...]:
        """The names that `perform` understands here."""

    @abstractmethod
    def perform(self, operation: str, node: str, **arguments: object) -> None:
        """Do something to a node; NodeAccessError where it is unknown or fails."""


@dataclass(frozen=True, slots=True)
class TelemetryEndpoints:
    """Where a cluster's telemetry is read: base URLs of HTTP APIs, "" where there is none."""

    prometheus: str = ""
    loki: str = ""
    jaeger: str = ""
    alertmanager: str = ""
    token: str = ""
    """A bearer token for all of them, or the password of any user; "" where none is asked for."""


@dataclass(slots=True)
class Hurry:
    """A stretch in which a cluster's time need not keep to the wall clock."""

    patience: float
    """The real seconds after which a client may give up on a request."""
    flown: float = 0.0
    """Known at the end: how much more of the cluster's time has passed than would have without."""
    waited: float = 0.0
    """Known at the end: how long requests have waited for the cluster, on its time."""


class Cluster(Closing):
    """One running environment; use it as a context manager, or call `close` when done."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def kubeconfig(self) -> Path:
        """A file with administrator credentials, readable by its owner only."""

    @property
    @abstractmethod
    def nodes(self) -> NodeAccess: ...

    @property
    def telemetry(self) -> TelemetryEndpoints:
        """Where metrics, logs, traces and alerts are read; ClusterError where the environment has none."""
        raise ClusterError(f"cluster {self.name!r} offers no telemetry")

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Let that much of the cluster's time pass: sleeps where time is real, advances the clock where it is not."""

    @contextmanager
    def hurrying(self, limit: float) -> Iterator[Hurry]:
        """For one request whose answer needs time in the cluster: where time is ours, it flies while the request waits.

        It flies to the instant of the answer and no further, `limit` seconds at most; then the request is given up.
        """
        began = monotonic()
        hurry = Hurry(limit)
        yield hurry
        hurry.waited = monotonic() - began

    @abstractmethod
    def catch_up(self) -> None:
        """Let time flow from here on. A cluster that was started behind lives up to the present first."""

    def pace(self, speed: float) -> None:
        """Let time flow so many times as fast as ours, 0 for not at all; real time has one pace."""

    def note_made(self, obj: Mapping[str, Any]) -> None:
        """Told of each object that the harness has made here, in its shape on the wire; a guest has to remember it."""

    def lead_in(self, kubeconfig: Path) -> None:
        """Told of a kubeconfig before it is given to an agent; a guest changes it to lead through its own door."""


C = TypeVar("C", bound=Cluster)


class DelegatingCluster(Cluster, Generic[C]):
    """A cluster that is another one, except for what a subclass does differently."""

    def __init__(self, inner: C) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def kubeconfig(self) -> Path:
        return self.inner.kubeconfig

    @property
    def nodes(self) -> NodeAccess:
        return self.inner.nodes

    @property
    def telemetry(self) -> TelemetryEndpoints:
        return self.inner.telemetry

    def wait(self, seconds: float) -> None:
        self.inner.wait(seconds)

    @contextmanager
    def hurrying(self, limit: float) -> Iterator[Hurry]:
        with self.inner.hurrying(limit) as hurry:
            yield hurry

    def catch_up(self) -> None:
        self.inner.catch_up()

    def pace(self, speed: float) -> None:
        self.inner.pace(speed)

    def note_made(self, obj: Mapping[str, Any]) -> None:
        self.inner.note_made(obj)

    def lead_in(self, kubeconfig: Path) -> None:
        self.inner.lead_in(kubeconfig)

    def close(self) -> None:
        self.inner.close()
