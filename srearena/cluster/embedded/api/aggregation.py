"""Requests for aggregated APIs: passed on to the extension API server that an APIService names.

Authentication and authorization have taken place; the server behind receives the user in headers. A watch ends with
the first changes that the server reports, and the client starts the next one, as everywhere inside the simulation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api.proxies import HOP_HEADERS
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.waiting import completed
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.registry.errors import ServiceUnavailable

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

_API_SERVICES: Final = "apiservices.apiregistration.k8s.io"
_SECONDS: Final = 60.0
_WATCH_SECONDS: Final = 3600.0


def group_version(request: Request) -> tuple[str, str]:
    """The group and version of a path at or below /apis/<group>/<version>; empty for other paths."""
    if request.info.is_resource:
        return request.info.group, request.info.version
    parts = request.path.strip("/").split("/")
    return (parts[1], parts[2]) if parts[0] == "apis" and len(parts) == 3 else ("", "")


def passes_on(backend: Backend, request: Request) -> bool:
    """Whether another server serves the group and version of a request."""
    aggregated = backend.registry.resources.aggregated
    return bool(aggregated) and group_version(request) in aggregated


async def pass_on(backend: Backend, request: Request) -> None:
    group, version = group_version(request)
    found = backend.store.get(_API_SERVICES, "", f"{version}.{group}")
    if found is None or backend.extensions is None:
        raise ServiceUnavailable("error trying to reach service: no such server")
    query = request.scope["query_string"].decode("latin-1")
    # The proxy vouches for the user; what the client says of itself does not go on.
    headers = {
        name: text
        for name, text in request.headers.items()
        if name not in HOP_HEADERS and not name.startswith(("x-remote-", "impersonate-"))
    }
    target = request.path + (f"?{query}" if query else "")
    forwarded = HttpRequest(request.method, target, headers, await request.body())
    watching = request.info.verb == "watch"
    timeout = _WATCH_SECONDS if watching else _SECONDS
    exchange = backend.extensions.request(found["spec"], forwarded, request.user, timeout)
    response = await completed(backend.world.clock, exchange, fast_forward=not watching)
    if not isinstance(response, HttpResponse):
        raise ServiceUnavailable(f"error trying to reach service: {response or 'context canceled'}")
    kept = [
        (name.lower(), text)
        for name, text in response.headers.items()
        if name.lower() not in (*HOP_HEADERS, "content-type")
    ]
    await request.reply(response.status, response.body, response.header("content-type"), kept)
