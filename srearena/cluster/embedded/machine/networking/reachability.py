"""The network interface of programs: connection outcomes, DNS lookups, and `NetworkFacade`.

Every failure is an `Outcome`, reached after the virtual time it takes in a real network. The `network` package
implements `NetworkFacade`; programs and shells use nothing else of the network.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse

if TYPE_CHECKING:
    from srearena.cluster.embedded.machine.networking.sockets import Connection


FileReader = Callable[[str], "str | None"]
"""The text of a file; None where there is none."""


class Outcome(StrEnum):
    """The outcome of a connection attempt or request."""

    CONNECTED = "connected"
    REFUSED = "connection refused"
    TIMEOUT = "timed out"
    RESET = "connection reset"
    EMPTY = "empty reply"
    """The peer closed the connection without a response."""
    NO_ROUTE = "no route to host"
    UNREACHABLE = "network is unreachable"
    NO_PORT = "cannot assign requested address"
    """The client has no local port left for that peer."""
    NXDOMAIN = "no such host"
    DNS_FAILURE = "server misbehaving"
    """The resolver received SERVFAIL, REFUSED or no response."""
    TLS_ERROR = "tls handshake failed"
    PROTOCOL_ERROR = "malformed response"


class DnsStatus(StrEnum):
    NOERROR = "NOERROR"
    NXDOMAIN = "NXDOMAIN"
    SERVFAIL = "SERVFAIL"
    REFUSED = "REFUSED"
    TIMEOUT = "TIMEOUT"


@dataclass(frozen=True, slots=True)
class DnsRecord:
    name: str
    kind: str
    """A, AAAA, CNAME, SRV, PTR, TXT..."""
    value: str
    ttl: int = 30


@dataclass(frozen=True, slots=True)
class Resolution:
    """The answer to one lookup. `name` is the fully qualified name that was answered, after the search list."""

    status: DnsStatus
    name: str
    records: tuple[DnsRecord, ...] = ()
    server: str = ""
    """Address of the queried name server; empty where the name is in /etc/hosts."""
    authoritative: bool = True
    failure: Outcome | None = None
    """Without a response from any name server: the outcome of the last attempt."""

    @property
    def addresses(self) -> tuple[str, ...]:
        return tuple(record.value for record in self.records if record.kind in ("A", "AAAA"))

    @property
    def outcome(self) -> Outcome:
        """The connection outcome that a failed lookup leads to."""
        missing = self.status in (DnsStatus.NXDOMAIN, DnsStatus.NOERROR)
        return Outcome.NXDOMAIN if missing else Outcome.DNS_FAILURE


class GrpcHealth(StrEnum):
    SERVING = "SERVING"
    NOT_SERVING = "NOT_SERVING"
    UNKNOWN = "UNKNOWN"
    SERVICE_UNKNOWN = "SERVICE_UNKNOWN"
    """The server implements health checking but does not know that service (status NOT_FOUND)."""
    UNIMPLEMENTED = "UNIMPLEMENTED"


@dataclass(slots=True)
class ConnectResult:
    outcome: Outcome
    address: str = ""
    connection: Connection | None = None
    seconds: float = 0.0


@dataclass(slots=True)
class HttpResult:
    outcome: Outcome
    response: HttpResponse | None = None
    address: str = ""
    connect_seconds: float = 0.0
    seconds: float = 0.0
    connected: bool = False
    """Whether the TCP connection stood, which tells a connect timeout from a read timeout."""
    identity: TlsIdentity | None = None
    """The TLS identity of the server, also after a verification error (TLS_ERROR)."""


@dataclass(slots=True)
class GrpcResult:
    outcome: Outcome
    health: GrpcHealth = GrpcHealth.UNKNOWN
    address: str = ""
    connected: bool = False


@dataclass(slots=True)
class PingResult:
    outcome: Outcome
    address: str = ""
    seconds: float = 0.0


class NetworkFacade(Protocol):
    """The network of one pod. Everything takes virtual time; nothing raises for a failure of the network.

    A host is a name or an address; names go through the pod's resolv.conf and hosts file. A `timeout` is the
    client's own; without one the kernel's limits hold (a TCP connect gives up after about two minutes).
    """

    async def resolve(
        self, name: str, kind: str = "A", *, search: bool = True, server: str | None = None
    ) -> Resolution: ...

    async def connect(
        self, host: str, port: int, protocol: str = "TCP", *, timeout: float | None = None
    ) -> ConnectResult: ...

    async def http(
        self,
        host: str,
        port: int,
        request: HttpRequest,
        *,
        connect_timeout: float | None = None,
        timeout: float | None = None,
    ) -> HttpResult: ...

    async def grpc_health(
        self, host: str, port: int, service: str = "", *, timeout: float | None = None
    ) -> GrpcResult: ...

    async def datagram(self, host: str, port: int, data: bytes, *, timeout: float = 5.0) -> bytes | None:
        """Send a UDP datagram and wait for the response; None without one."""
        ...

    async def ping(self, host: str, *, timeout: float = 10.0) -> PingResult: ...

    def with_files(self, read: FileReader) -> NetworkFacade:
        """The same network with /etc/resolv.conf and /etc/hosts read through `read`."""
        ...
