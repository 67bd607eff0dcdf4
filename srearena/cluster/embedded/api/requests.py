"""A request as handlers see it: its target, its user, and methods to respond.

`RequestInfo` is read off the method and path alone, as the real server does before it knows whether such a resource
exists, because authorization comes first.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from srearena.cluster.embedded.api.connections import EXTENSION, Connection
from srearena.cluster.embedded.registry.errors import ApiError, BadRequest, RequestEntityTooLarge
from srearena.cluster.embedded.registry.field_selectors import parse_field_selector
from srearena.cluster.embedded.registry.identity import User

BODY_LIMIT = 3 * 1024 * 1024
JSON = "application/json"
_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PREFIX_VERBS = ("proxy", "watch")
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_MOST_PARAMETERS = 1_000

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = Iterable[tuple[str, str]]


class Disconnected(Exception):
    """The client disconnected during the response."""


@dataclass(slots=True)
class RequestInfo:
    """What a request is about; for paths outside the API only `verb` and `path`."""

    path: str
    verb: str
    is_resource: bool = False
    group: str = ""
    version: str = ""
    namespace: str = ""
    resource: str = ""
    name: str = ""
    subresource: str = ""
    parts: tuple[str, ...] = ()

    @property
    def group_resource(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource


class Query:
    """Parameters of the URL, read as the real server converts them."""

    __slots__ = ("_values",)

    def __init__(self, raw: bytes) -> None:
        try:
            text = raw.decode("ascii", "replace")
            self._values = parse_qs(text, keep_blank_values=True, max_num_fields=_MOST_PARAMETERS) if raw else {}
        except ValueError as error:
            raise BadRequest(f"invalid query string: {error}") from None

    def text(self, name: str, default: str = "") -> str:
        found = self._values.get(name)
        return found[0] if found else default

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def has(self, name: str) -> bool:
        return name in self._values

    def flag(self, name: str) -> bool:
        found = self._values.get(name)
        return bool(found) and found[0].lower() not in ("false", "0") if found else False

    def number(self, name: str) -> int | None:
        found = self.text(name)
        if not found:
            return None
        try:
            number = int(found) if len(found) < 20 else None
        except ValueError:
            number = None
        if number is None or not -(2**63) <= number < 2**63 or "_" in found:
            raise BadRequest(f'strconv.ParseInt: parsing "{found[:100]}": invalid syntax')
        return number


class Request:
    """One request and its answer. Handlers reply once, or start a stream and write to it."""

    __slots__ = (
        "_extra_headers",
        "_started",
        "connection",
        "headers",
        "info",
        "method",
        "path",
        "query",
        "receive",
        "scope",
        "send",
        "status",
        "user",
        "warnings",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.method: str = scope.get("method", "GET")
        self.path: str = scope["path"]
        self.headers: dict[str, str] = {}
        for name, value in scope["headers"]:
            key = name.decode("latin-1")
            text = value.decode("latin-1")
            # Repeated headers read as one list, except that impersonated groups need the raw list (header_values).
            self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text
        self.connection: Connection | None = scope.get("extensions", {}).get(EXTENSION, {}).get("connection")
        self.warnings: list[str] = []
        self.user: User = User("")
        self.receive = receive
        self.send = send
        self._started = False
        self.status = 0
        """The code of the answer; 0 before there is one."""
        self._extra_headers: list[tuple[bytes, bytes]] = []
        self.query = Query(scope["query_string"])
        self.info = request_info(self.method, self.path, self.query)

    def header(self, name: str) -> str:
        return self.headers.get(name, "")

    def header_values(self, name: str) -> list[str]:
        """Each value of a header that may be repeated."""
        wanted = name.encode("latin-1")
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key == wanted]

    @property
    def started(self) -> bool:
        return self._started

    @property
    def gone(self) -> bool:
        return self.connection is not None and self.connection.lost

    async def body(self, limit: int = BODY_LIMIT) -> bytes:
        """The whole body; more than `limit` bytes of it are refused."""
        length = self.header("content-length")
        if length.isdigit() and int(length[:20]) > limit:
            raise RequestEntityTooLarge(f"limit is {limit}")
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self.receive()
            if message["type"] != "http.request":
                raise Disconnected
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise RequestEntityTooLarge(f"limit is {limit}")
            chunks.append(chunk)
            if not message.get("more_body"):
                return b"".join(chunks) if len(chunks) > 1 else chunks[0]

    def add_header(self, name: str, value: str) -> None:
        self._extra_headers.append((name.encode("latin-1"), value.encode("latin-1", "replace")))

    async def reply(self, status: int, body: bytes, content_type: str = JSON, headers: Headers = ()) -> None:
        """Answer once and for all."""
        await self._start(status, content_type, [*headers, ("content-length", str(len(body)))])
        await self.send({"type": "http.response.body", "body": body})

    async def start(self, status: int, content_type: str = JSON, headers: Headers = ()) -> None:
        """Begin an answer that is written piece by piece."""
        await self._start(status, content_type, headers)
        await self.send({"type": "http.response.body", "body": b"", "more_body": True})

    async def write(self, data: bytes) -> None:
        """Write a piece; waits while the client does not read."""
        if self.gone:
            raise Disconnected
        await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def finish(self) -> None:
        await self.send({"type": "http.response.body", "body": b""})

    def upgraded(self) -> None:
        """The connection has left HTTP: there is no ordinary answer any more."""
        self._started = True

    async def _start(self, status: int, content_type: str, headers: Headers) -> None:
        self._started, self.status = True, status
        fields = [
            (b"cache-control", b"no-cache, private"),
            (b"content-type", content_type.encode("latin-1")),
            *self._extra_headers,
            *((name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in headers),
            *((b"warning", _warning(text)) for text in dict.fromkeys(self.warnings)),
        ]
        await self.send({"type": "http.response.start", "status": status, "headers": fields})


def _warning(text: str) -> bytes:
    quoted = "".join(char if char.isprintable() else " " for char in text)[:4096]
    quoted = quoted.replace("\\", "\\\\").replace('"', '\\"')
    return b'299 - "' + quoted.encode() + b'"'


def request_info(method: str, path: str, query: Query) -> RequestInfo:
    """The verb and object of a request, by the rules of the real server's RequestInfoFactory."""
    parts = path.strip("/").split("/")
    info = RequestInfo(path, method.lower())
    if len(parts) < 3 or parts[0] not in ("api", "apis"):
        return info
    rest = parts[1:]
    if parts[0] == "apis":
        if len(rest) < 3:
            return info
        info.group, rest = rest[0], rest[1:]
    info.is_resource = True
    info.version, rest = rest[0], rest[1:]
    info.verb = _VERBS.get(method, "")
    prefixed = rest[0] in _PREFIX_VERBS and len(rest) > 1
    if prefixed:
        info.verb, rest = rest[0], rest[1:]
    if rest[0] == "namespaces" and len(rest) > 1:
        info.namespace = rest[1]
        if len(rest) > 2 and rest[2] not in _NAMESPACE_SUBRESOURCES:
            rest = rest[2:]
    info.parts = tuple(rest)
    info.resource = rest[0]
    info.name = rest[1] if len(rest) > 1 else ""
    info.subresource = rest[2] if len(rest) > 2 else ""
    if not info.name and not prefixed:
        _settle_collection_verb(info, query)
    return info


def _settle_collection_verb(info: RequestInfo, query: Query) -> None:
    """Without a name, reading means listing or watching, and deleting means all that match."""
    if info.verb == "get":
        info.verb = "watch" if query.flag("watch") else "list"
        try:
            # Who may see one object by name may also list or watch it by selecting that name.
            info.name = parse_field_selector(query.text("fieldSelector")).exact("metadata.name") or ""
        except ApiError:
            info.name = ""
    elif info.verb == "delete":
        info.verb = "deletecollection"
