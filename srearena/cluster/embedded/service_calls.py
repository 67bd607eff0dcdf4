"""HTTPS calls of the API server to Services of the cluster: webhooks and extension API servers.

A server is dialled from the control plane's node over the simulated network, as any program would, so one without
endpoints, behind a policy or with a certificate from the wrong authority fails as in a real cluster, after the same
virtual time. No address outside the simulation is ever called.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.networking.reachability import NetworkFacade, Outcome
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.store import Store

HTTPS_PORT = 443
_FAILURES = {
    Outcome.REFUSED: "dial tcp {address}: connect: connection refused",
    Outcome.TIMEOUT: "context deadline exceeded",
    Outcome.RESET: "read tcp {address}: read: connection reset by peer",
    Outcome.NO_ROUTE: "dial tcp {address}: connect: no route to host",
    Outcome.TLS_ERROR: "http: server gave HTTP response to HTTPS client",
    Outcome.NXDOMAIN: "dial tcp: lookup {host}: no such host",
    Outcome.DNS_FAILURE: "dial tcp: lookup {host}: server misbehaving",
}


@dataclass(frozen=True, slots=True)
class Server:
    """A server that the API server calls."""

    address: str
    """What is dialled: an address, or a name that the control plane's node resolves."""
    host: str
    """The name that the server's certificate must cover."""
    port: int


class NoSuchService(Exception):
    """There is no such Service; the message says so as the API server does."""


def server_of(store: Store, service: Obj) -> Server:
    """The server behind a reference to a Service: the API server takes its address from the object, without DNS."""
    namespace, name = service["namespace"], service["name"]
    found = store.get("services", namespace, name)
    if found is None:
        raise NoSuchService(f'service "{name}" not found')
    host = f"{name}.{namespace}.svc"
    return Server(dig(found, "spec", "clusterIP", default=host), host, service.get("port") or HTTPS_PORT)


def flaw_of(identity: TlsIdentity, server: Server, bundle: bytes | None, now: float) -> str:
    """Why a server's certificate is refused; empty where it is accepted. `bundle` None accepts every certificate."""
    if bundle is None:
        return ""
    if identity.expires_at <= now:
        return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
    if not identity.covers(server.host):
        names = ", ".join(identity.names)
        return f"tls: failed to verify certificate: x509: certificate is valid for {names}, not {server.host}"
    if not identity.trusted_by(bundle):
        return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    return ""


async def call(
    network: NetworkFacade, server: Server, request: HttpRequest, bundle: bytes | None, now: float, timeout: float
) -> HttpResponse | str:
    """Make a request over TLS; the response, or why there is none. A refused server receives no request."""
    request.tls = True
    request.accepts = lambda identity: not flaw_of(identity, server, bundle, now)
    result = await network.http(server.address, server.port, request, timeout=timeout)
    if result.response is not None and result.identity is not None:
        return result.response
    flaw = flaw_of(result.identity, server, bundle, now) if result.identity is not None else ""
    # A plain HTTP server answers the handshake with an error page.
    outcome = Outcome.TLS_ERROR if result.response is not None else result.outcome
    address = f"{result.address or server.host}:{server.port}"
    text = flaw or _FAILURES.get(outcome, "{outcome}")
    return text.format(address=address, host=server.host, outcome=outcome)


def bundle_of(encoded: Any) -> bytes:
    """The authorities in a `caBundle`."""
    try:
        return base64.b64decode(encoded or "", validate=True)
    except (binascii.Error, TypeError):
        return b""
