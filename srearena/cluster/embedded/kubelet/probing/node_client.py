"""Requests that the node itself makes to its pods (probes, hooks): directly, without network policies."""

from __future__ import annotations

from srearena.cluster.embedded.machine.machine import Machine
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import HttpResult, Outcome
from srearena.cluster.embedded.machine.networking.sockets import LOOPBACK, Listener, within

_DIAL_ERRORS = {
    Outcome.REFUSED: "connect: connection refused",
    Outcome.TIMEOUT: "i/o timeout",
    Outcome.NO_ROUTE: "connect: no route to host",
    Outcome.UNREACHABLE: "connect: network is unreachable",
    Outcome.RESET: "connect: connection reset by peer",
}


def dial_error(host: str, port: int, outcome: Outcome) -> str:
    """The error of a failed connection, in the wording of Go's net package."""
    return f"dial tcp {host}:{port}: {_DIAL_ERRORS.get(outcome, str(outcome))}"


def find_listener(machine: Machine, host: str, port: int) -> tuple[Outcome, Listener | None]:
    """The listener at an address as seen from the node: in one of its pods, or of the node itself."""
    if host in (machine.address, LOOPBACK, "localhost", machine.gateway):
        address = LOOPBACK if host == "localhost" else host
        listener = machine.namespace.find(address, port)
        return (Outcome.REFUSED if listener is None else Outcome.CONNECTED), listener
    sandbox = machine.sandbox_at(host)
    if sandbox is None:
        return Outcome.NO_ROUTE, None
    listener = sandbox.namespace.find(host, port)
    return (Outcome.REFUSED if listener is None else Outcome.CONNECTED), listener


async def node_http(machine: Machine, host: str, port: int, request: HttpRequest, timeout: float) -> HttpResult:
    """One request from the node; failures are in the result."""
    outcome, listener = find_listener(machine, host, port)
    if listener is None:
        return HttpResult(outcome, address=host)
    request.peer = machine.gateway
    client = (machine.gateway, machine.namespace.ephemeral_port())
    answer = listener.answer_http(request, client, (host, port))
    result = await within(machine.clock, timeout, answer)
    return result if result is not None else HttpResult(Outcome.TIMEOUT, address=host, connected=True)
