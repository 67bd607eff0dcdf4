"""The proxy subresources: an HTTP request that the API server makes for the client, to a pod, a service or a node.

Requests to pods enter at the pod's address. A service is resolved by its endpoint slices as they are now; what does
not answer is a 503 in the words of the real proxy.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from srearena.cluster.embedded.api import kubelet_api
from srearena.cluster.embedded.api.pod_containers import KUBELET_PORT, node_address
from srearena.cluster.embedded.api.requests import Request
from srearena.cluster.embedded.api.waiting import completed
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import HttpResult, Outcome
from srearena.cluster.embedded.objects import Obj, dig, labels_of
from srearena.cluster.embedded.registry.errors import BadRequest, NotFound, ServiceUnavailable
from srearena.cluster.embedded.registry.resources import Resource

if TYPE_CHECKING:
    from srearena.cluster.embedded.api.backend import Backend

_CALLER: Final = "10.96.0.1"
HOP_HEADERS: Final = frozenset(
    {"authorization", "host", "connection", "content-length", "transfer-encoding", "upgrade"}
)
_SLICES: Final = "endpointslices.discovery.k8s.io"
_FAILURES: Final = {
    Outcome.REFUSED: "dial tcp {address}: connect: connection refused",
    Outcome.RESET: "read tcp {address}: read: connection reset by peer",
    Outcome.EMPTY: "EOF",
    Outcome.TIMEOUT: "dial tcp {address}: i/o timeout",
    Outcome.NO_ROUTE: "dial tcp {address}: connect: no route to host",
    Outcome.TLS_ERROR: "tls: first record does not look like a TLS handshake",
    Outcome.PROTOCOL_ERROR: "net/http: HTTP/1.x transport connection broken: malformed HTTP response",
}


def _parsed(name: str) -> tuple[str, str, str]:
    """Scheme, name and port of `[scheme:]name[:port]`."""
    parts = name.split(":")
    if len(parts) == 1:
        return "http", parts[0], ""
    if len(parts) == 2:
        return "http", parts[0], parts[1]
    if len(parts) == 3 and parts[0] in ("http", "https", ""):
        return parts[0] or "http", parts[1], parts[2]
    raise BadRequest(f'invalid request "{name[:200]}"')


async def pod(backend: Backend, request: Request, row: Resource) -> None:
    scheme, name, port = _parsed(request.info.name)
    found = backend.store.get("pods", request.info.namespace, name)
    if found is None:
        raise NotFound("pods", name)
    number = _port_number(found, port)
    await _call(backend, request, found, number, tls=scheme == "https")


async def service(backend: Backend, request: Request, row: Resource) -> None:
    scheme, name, port = _parsed(request.info.name)
    namespace = request.info.namespace
    found = backend.store.get("services", namespace, name)
    if found is None:
        raise NotFound("services", name)
    ports: list[Obj] = dig(found, "spec", "ports", default=[])
    chosen = next((p for p in ports if port in (p.get("name", ""), str(p["port"]))), None)
    if not port and len(ports) == 1:
        chosen = ports[0]
    if chosen is None:
        raise ServiceUnavailable(f'no service port "{port}" found for service "{name}"')
    behind = _pods_behind(backend, namespace, name, chosen.get("name", ""))
    if not behind:
        raise ServiceUnavailable(f'no endpoints available for service "{name}"')
    found, number = backend.world.randomness.stream("service proxy").choice(behind)
    await _call(backend, request, found, number, tls=scheme == "https")


def _pods_behind(backend: Backend, namespace: str, service: str, port: str) -> list[tuple[Obj, int]]:
    """The ready pods of a Service's port and the port's number in each."""
    found = []
    for piece in backend.store.objects(_SLICES, namespace):
        if labels_of(piece).get("kubernetes.io/service-name") != service:
            continue
        number = next((p.get("port") for p in piece.get("ports") or () if (p.get("name") or "") == port), None)
        for endpoint in piece.get("endpoints") or ():
            target = endpoint.get("targetRef") or {}
            pod = backend.store.get("pods", namespace, target.get("name", "")) if target.get("kind") == "Pod" else None
            if pod is not None and number is not None and dig(endpoint, "conditions", "ready", default=True):
                found.append((pod, number))
    return found


async def node(backend: Backend, request: Request, row: Resource) -> None:
    """The kubelet's own API."""
    _, name, _ = _parsed(request.info.name)
    if backend.store.get("nodes", "", name) is None:
        raise NotFound("nodes", name)
    trouble = backend.agent.dial_error(name) if backend.agent is not None else "connect: connection refused"
    if trouble:
        address = f"{node_address(backend, name)}:{KUBELET_PORT}"
        raise ServiceUnavailable(f"error trying to reach service: dial tcp {address}: {trouble}")
    assert backend.agent is not None
    answer = kubelet_api.answer(backend, backend.agent, name, request.method, request.info.parts[3:], request.path)
    moved = [("location", f"{request.path}/")] if answer.status == 301 else []
    await request.reply(answer.status, answer.body, answer.content_type, moved)


def _port_number(pod: Obj, port: str) -> int:
    ports = [p for c in dig(pod, "spec", "containers", default=()) for p in c.get("ports") or ()]
    if not port:
        return int(ports[0]["containerPort"]) if ports else 80
    if port.isdigit() and len(port) < 6:
        return int(port)
    named = next((p["containerPort"] for p in ports if p.get("name") == port), None)
    if named is None:
        raise BadRequest(f'pod has no port named "{port[:100]}"')
    return int(named)


async def _call(backend: Backend, request: Request, pod: Obj, port: int, *, tls: bool) -> None:
    address = dig(pod, "status", "podIP", default="")
    if not address:
        raise BadRequest("address not allowed")
    sockets = backend.agent.sockets(pod) if backend.agent is not None else None
    listener = sockets.find(address, port) if sockets is not None else None
    query = request.scope["query_string"].decode("latin-1")
    if request.method in ("GET", "HEAD") and request.path.endswith("/proxy"):
        # Relative links of a page at the root work only below a path that ends with a slash.
        location = f"{request.path}/{f'?{query}' if query else ''}"
        await request.reply(301, b"", "text/plain; charset=utf-8", [("location", location)])
        return
    target = "/" + "/".join(request.info.parts[3:]) + (f"?{query}" if query else "")
    body = await request.body()
    headers = {key: value for key, value in request.headers.items() if key not in HOP_HEADERS}
    forwarded = HttpRequest(request.method, target, headers, body, _CALLER, tls)
    result = HttpResult(Outcome.REFUSED)
    if listener is not None:
        exchange = listener.answer_http(forwarded, (_CALLER, 40000), (address, port))
        result = await completed(backend.world.clock, exchange) or HttpResult(Outcome.RESET)
    if result.response is None:
        why = _FAILURES.get(result.outcome, str(result.outcome)).format(address=f"{address}:{port}")
        raise ServiceUnavailable(f"error trying to reach service: {why}")
    answer = result.response
    kept = [(k.lower(), v) for k, v in answer.headers.items() if k.lower() not in (*HOP_HEADERS, "content-type")]
    content_type = answer.header("content-type") or "text/plain; charset=utf-8"
    page = content_type.startswith("text/html")
    text = with_prefixed_links(answer.body, request.path.partition("/proxy/")[0] + "/proxy") if page else answer.body
    await request.reply(answer.status, text, content_type, kept)


_LINK: Final = re.compile(
    rb"""(<\w[^>]*?\s(?:action|background|cite|codebase|data|formaction|href|longdesc|manifest|poster|src)\s*=\s*["'])"""
    rb"""(/(?!/)[^"']*)"""
)


def with_prefixed_links(page: bytes, prefix: str) -> bytes:
    """A page whose links to its own server lead through the proxy."""
    start = prefix.encode()

    def replaced(link: re.Match[bytes]) -> bytes:
        return link[0] if link[2].startswith(start) else link[1] + start + link[2]

    return _LINK.sub(replaced, page)
