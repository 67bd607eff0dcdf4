"""What the traffic of an application asks of a running datastore.

A server model (MongoDB, Redis, PostgreSQL, MySQL, Kafka, Consul ...) hangs on the listening socket it serves, as
`Listener.server`. A caller that has reached that socket through the network calls the model directly, in bulk, instead
of sending bytes: may this login do that, how many records are there, take these messages. What an operator changes
through `exec` (a user dropped, a password set, a table locked) changes the same state, so both see one truth.

Always: `epoch` moves whenever an answer may have changed, so that a caller may keep answers as long as it stands; a
refusal carries the text the client library would show; nothing here takes time (a caller that gets "locked" waits
until its own timeout).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.processes.process import Process

Action = Literal["connect", "read", "write", "create"]
RefusalKind = Literal["auth", "permission", "missing", "locked", "full", "readonly", "closed", "busy"]
Record = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Login:
    """Who connects, and to what; empty means not given."""

    user: str = ""
    password: str = ""
    database: str = ""
    source: str = ""
    """MongoDB only: the database the user is defined in (authSource)."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request fails: what kind of reason, and what the client library shows for it."""

    kind: RefusalKind
    message: str


@runtime_checkable
class Datastore(Protocol):
    """A running server, asked by traffic."""

    epoch: int
    """Moves whenever an answer of `refuses` may change."""

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None:
        """None where `login` may do it now. `target` is a table, collection, key or topic; "" for "connect".

        Only "connect" looks at the password and at how many connections there are: open connections stay open. In SQL a
        target may name columns too: `products(id, name)`.
        """
        ...

    def put(self, database: str, target: str, records: Sequence[Record]) -> Refusal | None:
        """Add records, creating what has to exist for them; applications seed their data so when they start."""
        ...

    def count(self, database: str, target: str) -> int:
        """How many records there are; 0 where there is no such thing."""
        ...

    def attach(self, client: str, login: Login | None, sessions: int, address: str = "") -> Refusal | None:
        """The pool of `client` (a pod's name, say) has that many connections open from now on; 0: it has left.

        Who cannot log in is refused, and logged, as the server does that. Connections count against the server's
        limit and are listed for operators. A new password leaves them alone.
        """
        ...

    def attached(self, client: str) -> int:
        """How many of its connections are still open: an operator may have ended some."""
        ...


@dataclass(frozen=True, slots=True)
class BulkStatements:
    """Statements of one kind that a client had a store execute since the last report, and those that run now."""

    client: str
    operation: str
    database: str
    target: str
    text: str
    """The statement's text; empty where the application's model does not state it."""
    calls: float
    mean_seconds: float
    running: float
    """How many run at this moment, on average."""
    share_above: Callable[[float], float]
    """The share of statements that take longer than so many seconds."""


class Counted:
    """Base of server models whose counters include what bulk traffic does."""

    process: Process
    settle_traffic: Callable[[], None] | None = None
    """Makes traffic tell what it has counted; set by the traffic engine."""

    def settle(self) -> None:
        """Bring the counters up to the present; called before they are shown."""
        if self.settle_traffic is not None:
            self.settle_traffic()

    def count_traffic(self, operation: str, database: str, target: str, calls: int, hits: int, misses: int) -> None:
        """Count operations of bulk traffic: a verb, and where it looked something up the keys found and not found."""

    def report_statements(self, statements: Sequence[BulkStatements]) -> None:
        """Learn how long statements of bulk traffic take: for process lists, slow logs and statement statistics."""

    def hold_traffic(self, name: str, keys: int, size: int) -> None:
        """Bulk traffic has filled in that many keys of one kind, with values of `size` bytes."""


def joined(model: object, process: Process, login: Login | None, sessions: int = 1) -> Refusal | None:
    """Let a process have connections to a store as long as it lives; why not, where it is refused.

    Repeated calls cost nothing while they are open. After they were closed, the next call connects again. A model that
    keeps no connections accepts every client.
    """
    attach = getattr(model, "attach", None)
    if attach is None:
        return None
    client = client_name(process)
    if model.attached(client):  # type: ignore[attr-defined]
        return None
    refusal: Refusal | None = attach(client, login, sessions, process.container.namespace.address)
    if refusal is None:
        process.done.then(lambda: attach(client, None, 0))
    return refusal


def request_refusal(
    model: Datastore | Broker, process: Process, login: Login | None, action: str, target: str
) -> Refusal | None:
    """May a process do that, over a connection of its own? One that has to wait is listed as waiting for operators."""
    refusal = joined(model, process, login) or model.refuses(login, action, target)
    occupy = getattr(model, "occupy", None)
    if occupy is not None:
        waits = refusal is not None and refusal.kind == "locked"
        table = target.partition("(")[0]
        occupy(
            client_name(process),
            int(waits),
            f"SELECT * FROM {table}" if action == "read" else f"INSERT INTO {table}",
            target,
        )
    return refusal


def client_name(process: Process) -> str:
    """The name under which a server lists the connections of a process."""
    return f"{process.container.host.hostname}/{process.pid}"


@runtime_checkable
class Cache(Datastore, Protocol):
    """A key-value store: besides, content may be written in bulk, and thrown away."""

    losses: int
    """How often everything stored was thrown away (FLUSHALL, flush_all)."""

    def fill(self, prefix: str, keys: int, size: int) -> int:
        """Write that many new keys with values of `size` bytes; how many were taken (memory may run out)."""
        ...

    @property
    def evictions(self) -> int: ...


@runtime_checkable
class Broker(Protocol):
    """Kafka: logs with offsets, and groups that read them. Counts are whole messages."""

    epoch: int

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None: ...

    @property
    def topics(self) -> Mapping[str, int]:
        """Names and their numbers of partitions."""
        ...

    def append(self, topic: str, count: int, size: int) -> Refusal | None:
        """`count` messages of `size` bytes each; too large ones are refused, a missing topic is made where allowed."""
        ...

    def fetch(self, group: str, topic: str, at_most: int) -> int:
        """Take and commit up to that many messages for a consumer group; how many there were."""
        ...

    def lag(self, group: str, topic: str) -> int: ...

    def committed(self, group: str, topic: str) -> int:
        """The sum over the partitions of what the group has committed."""
        ...


@dataclass(frozen=True, slots=True)
class Instance:
    """One address of a service, as a discovery server hands it out."""

    service: str
    ip: str
    port: int
    healthy: bool = True


@runtime_checkable
class Discovery(Protocol):
    """Consul, Nacos: who offers a service, by their own account."""

    epoch: int

    def register(self, service: str, ip: str, port: int) -> None:
        """Offer a service; doing so again is the heartbeat where one is wanted (Nacos: every five seconds)."""
        ...

    def deregister(self, service: str, ip: str, port: int) -> None: ...

    def instances(self, service: str) -> list[Instance]:
        """Those that pass their checks, in a stable order."""
        ...
