"""The interface of an environment: a kubeconfig, control over time, and access to the nodes.

Everything else about a cluster is reached through the Kubernetes API that the kubeconfig points at.

    ClusterError
    ├── ClusterUnavailable   it did not start, or has stopped
    └── NodeAccessError      a node operation cannot be done here
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeVar

from srearena.closeable import Closeable
from srearena.errors import SreArenaError


class ClusterError(SreArenaError):
    """A problem with a cluster that a user can act on; the message says what happened and what to do next."""


class ClusterUnavailable(ClusterError):
    """The cluster did not start, or is no longer reachable."""


class NodeAccessError(ClusterError):
    """The operation on a node is unknown or impossible in this environment."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class VirtualClock:
    """Where a virtual clock stands, in seconds since the epoch."""

    made_for: float
    """The instant for which the world was made: with the seed and the start, it decides what the world is."""
    now: float


class NodeAccess(ABC):
    """Operations on a machine that Kubernetes has no API for."""

    @abstractmethod
    def operations(self) -> tuple[str, ...]:
        """The operations that `perform` supports in this environment."""

    @abstractmethod
    def perform(self, operation: str, node: str, **arguments: object) -> None:
        """Run an operation on a node; NodeAccessError where it is unknown or fails."""


@dataclass(frozen=True, slots=True)
class TelemetryEndpoints:
    """Base URLs of a cluster's telemetry APIs; "" where there is none."""

    prometheus: str = ""
    loki: str = ""
    jaeger: str = ""
    alertmanager: str = ""
    token: str = ""
    """A bearer token for all of them, or the password for any user name; "" where none is required."""


@dataclass(frozen=True, slots=True)
class DirectReply:
    """A response of a `DirectApi`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    messages: tuple[bytes, ...] = ()
    """What came back on a WebSocket, where the status is 101."""


class DirectApi(ABC):
    """The API of a cluster in this process, for its administrator, without a socket.

    Both methods raise ClusterUnavailable where there is no response, and TimeoutError.
    """

    @abstractmethod
    def request(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes | None, timeout: float
    ) -> DirectReply:
        """Send one request, and return the response of any status."""

    @abstractmethod
    def converse(
        self,
        target: str,
        headers: Mapping[str, str],
        subprotocols: Sequence[str],
        messages: Sequence[bytes],
        timeout: float | None,
    ) -> DirectReply:
        """Send messages on a WebSocket, and return those that come back until it is closed.

        The timeout is for each of them.
        """


@dataclass(slots=True)
class FastForward:
    """A period in which the cluster's clock may run ahead of the wall clock."""

    client_timeout: float
    """Real seconds after which a client may give up on a request."""
    skipped_seconds: float = 0.0
    """Set at the end: by how much the cluster's clock has run ahead."""
    waited_seconds: float = 0.0
    """Set at the end: how long requests waited for the cluster, in its own time."""


class Cluster(Closeable):
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
        """The APIs for metrics, logs, traces and alerts; ClusterError where the environment has none."""
        raise ClusterError(f"cluster {self.name!r} offers no telemetry")

    @property
    def direct_api(self) -> DirectApi | None:
        """A shorter way to the API than the kubeconfig's, with the same effects; None where there is none."""
        return None

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Wait for so many seconds of the cluster's time: sleeps on a real cluster, advances the clock of another."""

    @contextmanager
    def fast_forward(self, limit: float) -> Iterator[FastForward]:
        """Advance a virtual clock while a request waits for its response.

        For requests whose response takes time in the cluster. The clock advances to the instant of the response, by
        `limit` seconds at most; then the request times out. A real cluster ignores this.
        """
        began = monotonic()
        skip = FastForward(limit)
        yield skip
        skip.waited_seconds = monotonic() - began

    @abstractmethod
    def catch_up(self) -> None:
        """Start the flow of time. A cluster that was started in the past first simulates up to the present."""

    def set_speed(self, speed: float, until: float | None = None) -> None:
        """Set how fast a virtual clock runs relative to real time, up to an instant; 0 stops it.

        A real cluster ignores this.
        """

    def virtual_clock(self) -> VirtualClock | None:
        """Where a virtual clock stands; None on a real cluster."""
        return None

    def internal_errors(self) -> list[str]:
        """Errors in a simulator's own code so far, one line each: none of them is a symptom of the system."""
        return []

    def in_fork(self, work: Callable[[], T]) -> T:
        """Run `work` in a copy of this process and of the cluster, and return its result; ClusterError where it cannot.

        Meanwhile the original stands still, and nothing that happens in the copy changes it. Files and sockets are
        shared with the original, so the copy must not delete or close them.
        """
        raise ClusterError(f"cluster {self.name!r} cannot be copied: only an embedded cluster in this process can")

    def suspend(self) -> None:
        """Stop serving and end all threads, so that the process can be forked; ClusterError where it cannot.

        Open connections are closed; who connects until `resume` waits.
        """
        raise ClusterError(f"cluster {self.name!r} cannot be suspended: only an embedded cluster in this process can")

    def resume(self) -> None:
        """Serve again after `suspend`; no time has passed in the cluster."""
        raise ClusterError(f"cluster {self.name!r} cannot be suspended: only an embedded cluster in this process can")

    def become_copy(self, seed: int | None = None) -> None:
        """In a fork of the process with a suspended cluster: take own ports, keys, tokens and files for `resume`.

        With a `seed`, what happens by chance from here on is drawn from it.
        """
        raise ClusterError(f"cluster {self.name!r} cannot be copied: only an embedded cluster in this process can")

    def renew_kubeconfig(self, kubeconfig: Path) -> None:
        """Make a kubeconfig of the cluster that this one is a copy of valid here: address, authority and token."""
        raise ClusterError(f"cluster {self.name!r} cannot be copied: only an embedded cluster in this process can")

    def record_created(self, obj: Mapping[str, Any]) -> None:
        """Record an object that the harness has created (as the API returned it); a shared cluster removes it later."""

    def record_written(self, path: str, obj: Mapping[str, Any] | None) -> None:
        """Record a write of the harness: the path of the object, and its new content where the API returned it."""

    def rewrite_kubeconfig(self, kubeconfig: Path) -> None:
        """Adapt a kubeconfig before an agent gets it; a shared cluster points it at its recording proxy."""

    def close_agent_connections(self) -> None:
        """Close the connections that lead through rewritten kubeconfigs, for ever, and accept no others.

        For sessions that the API server itself does not end when their credentials are revoked. On a cluster of our own
        all service accounts are refused that connect from outside: the agent may have made some.
        """


C = TypeVar("C", bound=Cluster)


class DelegatingCluster(Cluster, Generic[C]):
    """A cluster that forwards every call to another one; subclasses override what differs."""

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

    @property
    def direct_api(self) -> DirectApi | None:
        return self.inner.direct_api

    def wait(self, seconds: float) -> None:
        self.inner.wait(seconds)

    @contextmanager
    def fast_forward(self, limit: float) -> Iterator[FastForward]:
        with self.inner.fast_forward(limit) as skip:
            yield skip

    def catch_up(self) -> None:
        self.inner.catch_up()

    def set_speed(self, speed: float, until: float | None = None) -> None:
        self.inner.set_speed(speed, until)

    def virtual_clock(self) -> VirtualClock | None:
        return self.inner.virtual_clock()

    def internal_errors(self) -> list[str]:
        return self.inner.internal_errors()

    def in_fork(self, work: Callable[[], T]) -> T:
        return self.inner.in_fork(work)

    def suspend(self) -> None:
        self.inner.suspend()

    def resume(self) -> None:
        self.inner.resume()

    def become_copy(self, seed: int | None = None) -> None:
        self.inner.become_copy(seed)

    def renew_kubeconfig(self, kubeconfig: Path) -> None:
        self.inner.renew_kubeconfig(kubeconfig)

    def record_created(self, obj: Mapping[str, Any]) -> None:
        self.inner.record_created(obj)

    def record_written(self, path: str, obj: Mapping[str, Any] | None) -> None:
        self.inner.record_written(path, obj)

    def rewrite_kubeconfig(self, kubeconfig: Path) -> None:
        self.inner.rewrite_kubeconfig(kubeconfig)

    def close_agent_connections(self) -> None:
        self.inner.close_agent_connections()

    def close(self) -> None:
        self.inner.close()
