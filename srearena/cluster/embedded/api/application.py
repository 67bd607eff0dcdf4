"""The server as an ASGI application: authenticate, authorize, find the handler, and turn every refusal into a Status.

The order is the real server's: authentication and authorization come before the lookup of resources.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.utils import formatdate
from typing import Final
from uuid import UUID

import orjson

from srearena.cluster.embedded.api import (
    aggregation,
    components,
    connecting,
    evictions,
    health,
    issuer_discovery,
    logs,
    metrics,
    patching,
    pod_parts,
    port_forwards,
    proxies,
    reading,
    remote_commands,
    reviews,
    sockets,
    spdy_sockets,
    watching,
    writing,
)
from srearena.cluster.embedded.api.authentication import impersonated
from srearena.cluster.embedded.api.authorization import Attributes
from srearena.cluster.embedded.api.backend import Backend
from srearena.cluster.embedded.api.discovery import AGGREGATED_GROUP, AGGREGATED_KIND, aggregated_version
from srearena.cluster.embedded.api.openapi import PROTOBUF_V2
from srearena.cluster.embedded.api.presenting import show
from srearena.cluster.embedded.api.requests import Disconnected, Receive, Request, RequestInfo, Scope, Send
from srearena.cluster.embedded.registry.errors import (
    ApiError,
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotFound,
    Unauthorized,
)
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.resources import Resource
from srearena.cluster.embedded.telemetry.component_metrics import CONTENT_TYPE

_log = logging.getLogger(__name__)

Handler = Callable[[Backend, Request, Resource], Awaitable[None]]

GENERIC: Final[Mapping[str, Handler]] = {
    "get": reading.get,
    "list": reading.list_,
    "watch": watching.watch,
    "create": writing.create,
    "update": writing.update,
    "patch": patching.patch,
    "delete": writing.delete,
    "deletecollection": writing.deletecollection,
}
# Resources that are answered rather than stored, by group.
_REVIEWS: Final[Mapping[str, Handler]] = {"create": reviews.create}
COMPUTED: Final[Mapping[tuple[str, str], Mapping[str, Handler]]] = {
    ("authentication.k8s.io", "*"): _REVIEWS,
    ("authorization.k8s.io", "*"): _REVIEWS,
    ("metrics.k8s.io", "*"): {"get": metrics.get, "list": metrics.list_},
    ("", "componentstatuses"): {"get": components.get, "list": components.list_},
    ("", "bindings"): {"create": pod_parts.create_binding},
}
DEFINITIONS: Final = "customresourcedefinitions.apiextensions.k8s.io"
# Subresources that are not simply another view of the object.
SUBRESOURCES: Final[Mapping[str, Handler]] = {
    "pods/log": logs.get,
    "pods/binding": pod_parts.create_binding,
    "pods/eviction": evictions.create,
    "pods/exec": remote_commands.upgrade_required,
    "pods/attach": remote_commands.upgrade_required,
    "pods/portforward": port_forwards.upgrade_required,
    "pods/proxy": proxies.pod,
    "services/proxy": proxies.service,
    "nodes/proxy": proxies.node,
    "serviceaccounts/token": pod_parts.create_token,
}
VIEWS: Final[Mapping[str, Handler]] = {
    "get": writing.get_view,
    "update": writing.update,
    "patch": patching.patch,
}
SOCKETS: Final[Mapping[str, Callable[[Backend, sockets.Socket], Awaitable[None]]]] = {
    "pods/exec": remote_commands.exec_,
    "pods/attach": remote_commands.attach,
    "pods/portforward": port_forwards.forward,
    "pods/log": logs.stream,
}

_OTHER_PATHS: Final = ("/openapi/v2", "/openapi/v3", "/version")
_METHODS: Final = {"create": "POST", "update": "PUT"}
"""Verbs whose name in metrics is that of the HTTP method."""


class NoSuchPath(Exception):
    """Unknown path; a plain-text response, as by Go's mux."""


class ServerAway(Exception):
    """The server of that group and version is unavailable; a plain-text response, as by the aggregator."""


class NoSuchMethod(Exception):
    """The path exists, but not with this method."""


class Application:
    def __init__(self, backend: Backend, before_request: Callable[[], object]) -> None:
        self._backend = backend
        self._before_request = before_request
        self._audit = backend.world.randomness.stream("audit")
        self._dated = (0, "")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A stop of the server cancels what still streams or waits, which uvicorn would log as an error of ours.
        with suppress(asyncio.CancelledError):
            if scope["type"] == "websocket":
                # Until the upgrade is accepted, refusals are ordinary responses.
                await self._guarded(scope, receive, sockets.refusing(send), self._web_socket)
            else:
                await self._guarded(scope, receive, send, self._answer)

    async def _guarded(
        self, scope: Scope, receive: Receive, send: Send, answer: Callable[[Request], Awaitable[None]]
    ) -> None:
        try:
            request = Request(scope, receive, send)
        except ApiError as error:
            body = orjson.dumps(error.status())
            headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
            await send({"type": "http.response.start", "status": error.code, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        request.add_header("audit-id", self._audit_id())
        request.add_header("date", self._date())
        try:
            await answer(request)
        except Disconnected:
            return
        except NoSuchPath:
            if self._is_below_api(request.path):
                await refuse(request, NotFound())
            else:
                await self._plain(request, 404, "404 page not found\n")
        except ServerAway:
            await self._plain(request, 503, "service unavailable\n")
        except NoSuchMethod:
            await refuse(request, MethodNotAllowed())
        except ApiError as error:
            await refuse(request, error)
        except RecursionError:
            await refuse(request, BadRequest("error decoding: exceeded max depth"))
        except Exception as error:
            _log.exception("%s %s", request.method, request.path)
            await refuse(request, InternalError(f"{type(error).__name__}: {error}"))
        finally:
            self._count(request)

    def _count(self, request: Request) -> None:
        info = request.info
        if info.is_resource and request.status:
            scope = "resource" if info.name else "namespace" if info.namespace else "cluster"
            verb = (
                "CONNECT" if info.subresource in connecting.SUBRESOURCES else _METHODS.get(info.verb, info.verb.upper())
            )
            about = (verb, info.group, info.version, info.resource, info.subresource, scope)
            self._backend.world.api_requests[*about, str(request.status)] += 1

    def _audit_id(self) -> str:
        return str(UUID(int=self._audit.getrandbits(128), version=4))

    def _date(self) -> str:
        """The virtual instant, in the form of HTTP."""
        second = int(self._backend.world.clock.now)
        if second != self._dated[0]:
            self._dated = (second, formatdate(second, usegmt=True))
        return self._dated[1]

    async def _web_socket(self, request: Request) -> None:
        self._before_request()
        request.user = self._user(request)
        self._authorize(request.user, request.info)
        await self._stream(request, sockets.WebSocket(request))

    async def _stream(self, request: Request, socket: sockets.Socket) -> None:
        info = request.info
        handler = SOCKETS.get(f"{info.group_resource}/{info.subresource}") if info.is_resource else None
        if handler is None:
            raise NoSuchPath
        if info.subresource in connecting.SUBRESOURCES:
            await connecting.admit(self._backend, request)
        await handler(self._backend, socket)

    async def _answer(self, request: Request) -> None:
        self._before_request()
        request.user = self._user(request)
        self._authorize(request.user, request.info)
        if aggregation.passes_on(self._backend, request):
            self._check_available(*aggregation.group_version(request))
            await aggregation.pass_on(self._backend, request)
        elif spdy_sockets.asks_for_spdy(request):
            socket = spdy_sockets.SpdySocket(request)
            try:
                await self._stream(request, socket)
            finally:
                socket.hang_up()
        elif request.info.is_resource:
            row, handler = self._route(request)
            if request.info.subresource in connecting.SUBRESOURCES:
                await connecting.admit(self._backend, request)
            await handler(self._backend, request, row)
        else:
            await self._outside(request)

    # Who may do what

    def _user(self, request: Request) -> User:
        user = self._backend.authenticator.authenticate(request)
        other = impersonated(request)
        if other is None:
            return user
        for wanted in _impersonations(other):
            self._backend.authorizer.check(user, wanted)
        return other

    def _authorize(self, user: User, info: RequestInfo) -> None:
        wanted = (
            Attributes(info.verb, info.group, info.resource, info.subresource, info.name, info.namespace)
            if info.is_resource
            else Attributes(info.verb, path=info.path)
        )
        self._backend.authorizer.check(user, wanted)

    # Where it goes

    def _route(self, request: Request) -> tuple[Resource, Handler]:
        info = request.info
        self._check_available(info.group, info.version)
        row = self._backend.registry.resources.find(info.group, info.version, info.resource)
        if row is None or (info.namespace and not row.namespaced and info.resource != "namespaces"):
            raise NoSuchPath
        if row.deprecation:
            request.warnings.append(row.deprecation)
        if info.subresource:
            return row, self._subresource(row, info)
        if info.verb not in row.verbs or (info.verb == "create" and info.name):
            raise NoSuchMethod
        if row.namespaced and not info.namespace and info.verb not in ("list", "watch"):
            raise NoSuchMethod
        handlers = COMPUTED.get((row.group, "*")) or COMPUTED.get((row.group, row.plural)) or GENERIC
        return row, handlers[info.verb]

    def _is_below_api(self, path: str) -> bool:
        """Whether a path belongs to a group that the server has from the start, of which it knows all paths."""
        root, _, rest = path.strip("/").partition("/")
        group = rest.partition("/")[0]
        return root == "api" or (root == "apis" and self._backend.registry.resources.has_built_in(group))

    def _check_available(self, group: str, version: str) -> None:
        if (group, version) in self._backend.registry.resources.unavailable:
            raise ServerAway

    def _subresource(self, row: Resource, info: RequestInfo) -> Handler:
        sub = row.subresource(info.subresource)
        if sub is None or (row.namespaced and not info.namespace):
            raise NoSuchPath
        # A proxy passes any method on.
        if info.verb not in sub.verbs and sub.name != "proxy":
            raise NoSuchMethod
        handler = SUBRESOURCES.get(f"{row.group_resource}/{sub.name}")
        if handler is not None:
            return handler
        if len(info.parts) > 3:
            raise NoSuchPath
        return VIEWS[info.verb]

    # Outside the API: discovery, health, version

    async def _outside(self, request: Request) -> None:
        if request.method not in ("GET", "HEAD"):
            raise NoSuchMethod
        discovery = self._backend.discovery
        match request.path.strip("/").split("/"):
            case [""]:
                issuer = (issuer_discovery.CONFIGURATION, issuer_discovery.KEYS)
                measured = ("/metrics",) if self._backend.component_metrics is not None else ()
                paths = [*discovery.paths(), *health.paths(), *issuer, *measured, *_OTHER_PATHS]
                await show(request, {"paths": sorted(paths)})
            case ["api" | "apis" as root]:
                await self._discover(request, core=root == "api")
            case ["api", version]:
                await self._reply(request, discovery.resources("", version))
            case ["apis", group]:
                found = discovery.group(group)
                await self._reply(request, orjson.dumps(found) if found else None)
            case ["apis", group, version] if group:
                self._check_available(group, version)
                await self._reply(request, discovery.resources(group, version))
            case ["openapi", "v2"]:
                await self._open_api_2(request)
            case ["openapi", "v3"]:
                await show(request, self._backend.open_api.index())
            case ["openapi", "v3", "api", version]:
                await self._open_api_3(request, "", version)
            case ["openapi", "v3", "apis", group, version]:
                await self._open_api_3(request, group, version)
            case ["metrics"] if self._backend.component_metrics is not None:
                page = self._backend.component_metrics.of_component("apiserver")
                await request.reply(200, page, CONTENT_TYPE)
            case ["version"]:
                await request.reply(200, orjson.dumps(health.VERSION, option=orjson.OPT_INDENT_2))
            case _:
                if not (await health.serve(request) or await issuer_discovery.serve(self._backend, request)):
                    raise NoSuchPath

    async def _discover(self, request: Request, *, core: bool) -> None:
        discovery = self._backend.discovery
        version = aggregated_version(request.header("accept"))
        if not version:
            await show(request, discovery.versions() if core else discovery.groups())
            return
        document, tag = discovery.aggregated(core=core, version=version)
        headers = [("etag", tag), ("vary", "Accept")]
        content_type = f"application/json;g={AGGREGATED_GROUP};v={version};as={AGGREGATED_KIND}"
        if request.header("if-none-match") == tag:
            await request.reply(304, b"", content_type, headers)
        else:
            await request.reply(200, document, content_type, headers)

    async def _open_api_2(self, request: Request) -> None:
        accept = request.header("accept")
        if PROTOBUF_V2 in accept and not any(kind in accept for kind in ("json", "*/*")):
            document = self._backend.open_api.version_2(binary=True)
            await request.reply(200, document, content_type=f"{PROTOBUF_V2}.v1.0+protobuf")
            return
        await request.reply(200, self._backend.open_api.version_2())

    async def _open_api_3(self, request: Request, group: str, version: str) -> None:
        document = self._backend.open_api.document(group, version)
        if document is None:
            raise NoSuchPath
        fingerprint = self._backend.open_api.fingerprint(group, version)
        requested_hash = request.query.text("hash")
        if requested_hash and requested_hash != fingerprint:
            await request.reply(301, b"", headers=[("location", f"{request.path}?hash={fingerprint}")])
            return
        headers = [("etag", f'"{fingerprint}"'), ("vary", "Accept")]
        if request.header("if-none-match") == f'"{fingerprint}"':
            await request.reply(304, b"", headers=headers)
        else:
            await request.reply(200, document, headers=headers)

    async def _reply(self, request: Request, document: bytes | None) -> None:
        if document is None:
            raise NoSuchPath
        await request.reply(200, document)

    async def _plain(self, request: Request, status: int, text: str) -> None:
        nosniff = [("x-content-type-options", "nosniff")]
        await request.reply(status, text.encode(), "text/plain; charset=utf-8", nosniff)


async def refuse(request: Request, error: ApiError) -> None:
    """Send an error response; a stream that has begun can only be closed."""
    if request.started:
        if request.connection is not None:
            request.connection.abort()
        return
    headers = []
    seconds = error.details.get("retryAfterSeconds")
    if seconds and error.code in (429, 500, 503, 504):
        headers.append(("retry-after", str(seconds)))
    if isinstance(error, Unauthorized):
        headers.append(("www-authenticate", 'Bearer realm="kubernetes"'))
    await request.reply(error.code, orjson.dumps(error.status()) + b"\n", headers=headers)


def _impersonations(user: User) -> list[Attributes]:
    """The permissions needed to impersonate this user."""
    wanted: list[Attributes] = []
    parts = user.name.split(":")
    if user.name.startswith("system:serviceaccount:") and len(parts) == 4:
        wanted.append(Attributes("impersonate", resource="serviceaccounts", name=parts[3], namespace=parts[2]))
        implied = {"system:serviceaccounts", f"system:serviceaccounts:{parts[2]}", "system:authenticated"}
    else:
        wanted.append(Attributes("impersonate", resource="users", name=user.name))
        implied = {"system:authenticated"}
    wanted += [
        Attributes("impersonate", resource="groups", name=group) for group in user.groups if group not in implied
    ]
    if user.uid:
        wanted.append(Attributes("impersonate", "authentication.k8s.io", "uids", name=user.uid))
    for key, values in user.extra.items():
        wanted += [Attributes("impersonate", "authentication.k8s.io", "userextras", key, value) for value in values]
    return wanted
