"""The web application of `srearena view`: pages and a JSON API, on the loopback interface.

Pages and their script hold no data and are served to everyone. Data needs the token: from the link once, then from a
cookie that only this application gets. Requests for another host name are refused, which keeps web sites from reading
the data through a name that resolves to this machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from hmac import compare_digest
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, quote

import uvicorn

from srearena.conductor.serving.json_app import Receive, Refused, Scope, Send, read_body
from srearena.errors import SreArenaError
from srearena.paths import results_directory
from srearena.view.catalog import Catalog
from srearena.view.export import ASSETS, exported, file_name
from srearena.view.incidents.api import IncidentApi, NoSuchIncident
from srearena.view.incidents.found import Incidents
from srearena.view.playing import Plays
from srearena.view.worlds import Worlds

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/view.js": ("view.js", "text/javascript; charset=utf-8"),
    "/view.css": ("view.css", "text/css; charset=utf-8"),
    "/licences.txt": ("licences.txt", "text/plain; charset=utf-8"),
}
_HOSTS = ("127.0.0.1", "localhost")
Query = dict[str, str]


@dataclass(slots=True)
class Response:
    """An answer to a request."""

    body: bytes
    content_type: str = "application/json"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class ViewApp:
    """An ASGI application over a catalog."""

    def __init__(
        self, catalog: Catalog, token: str, incidents: Incidents | None = None, plays: Plays | None = None
    ) -> None:
        self._catalog = catalog
        self._token = token
        self._plays = plays or Plays(results_directory().absolute())
        self._worlds = Worlds(catalog)
        self._incidents = IncidentApi(incidents or Incidents(catalog.folders), self._plays, self._worlds)
        self._routes: dict[tuple[str, str], Callable[[Query], Response]] = {
            ("GET", "/api/trials"): self._trials,
            ("GET", "/api/trial"): self._trial,
            ("GET", "/api/export"): self._export,
            **{route: self._document_route(handler) for route, handler in self._incidents.routes.items()},
        }

    def close(self) -> None:
        """End the episodes in play, which are graded, and the systems that were built again."""
        self._worlds.close()
        self._plays.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            response = await self._respond(scope, receive)
        except Refused as refused:
            response = _json({"error": str(refused)}, status=refused.status)
        headers = {"content-length": str(len(response.body)), "content-type": response.content_type}
        headers |= {"cache-control": "no-store", **_HEADERS, **response.headers}
        encoded = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": response.status, "headers": encoded})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else response.body})

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if headers.get("host", "").rpartition(":")[0] not in _HOSTS:
            raise Refused(421, "this application answers requests for 127.0.0.1 only")
        query = {key: values[0] for key, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
        method, path = scope["method"], scope["path"]
        page = _FILES.get(path)
        if page is not None and method in ("GET", "HEAD"):
            return self._page(scope, page, query)
        handler = self._routes.get((method, path))
        if handler is None:
            raise Refused(404, f"there is no {method} {path}")
        self._authenticate(scope, headers)
        if method == "POST":
            query |= await _body(headers, receive)
        # Files are read in another thread: a large run does not keep other requests waiting.
        response = await asyncio.to_thread(handler, query)
        tag = f'"{hashlib.sha256(response.body).hexdigest()[:32]}"'
        if headers.get("if-none-match") == tag:
            return Response(b"", status=304, headers={"etag": tag})
        response.headers["etag"] = tag
        return response

    def _page(self, scope: Scope, page: tuple[str, str], query: Query) -> Response:
        name, content_type = page
        response = Response((ASSETS / name).read_bytes(), content_type)
        token = query.get("token", "")
        if token and compare_digest(token.encode(), self._token.encode()):
            cookie = f"{_cookie_name(scope)}={self._token}; Path=/; HttpOnly; SameSite=Strict"
            response.headers["set-cookie"] = cookie
        return response

    def _authenticate(self, scope: Scope, headers: dict[str, str]) -> None:
        cookies = SimpleCookie()
        try:
            cookies.load(headers.get("cookie", ""))
        except CookieError:
            cookies = SimpleCookie()
        name = _cookie_name(scope)
        sent = cookies[name].value if name in cookies else headers.get("authorization", "").removeprefix("Bearer ")
        if not compare_digest(sent.encode(), self._token.encode()):
            raise Refused(401, "open the link that `srearena view` printed: it holds the token")

    @staticmethod
    def _document_route(handler: Callable[[Query], Any]) -> Callable[[Query], Response]:
        def respond(query: Query) -> Response:
            try:
                return _json(handler(query))
            except NoSuchIncident as problem:
                raise Refused(404, str(problem)) from problem
            except SreArenaError as problem:
                raise Refused(422, str(problem)) from problem

        return respond

    def _trials(self, query: Query) -> Response:
        rows = [row.as_document() for row in self._catalog.rows()]
        return _json({"folders": [str(folder) for folder in self._catalog.folders], "trials": rows})

    def _trial(self, query: Query) -> Response:
        return _json(self._document(query))

    def _export(self, query: Query) -> Response:
        document = self._document(query)
        disposition = f"attachment; filename*=UTF-8''{quote(file_name(document['row']))}"
        body = exported(document).encode()
        return Response(body, "text/html; charset=utf-8", headers={"content-disposition": disposition})

    def _document(self, query: Query) -> dict[str, Any]:
        identity, session = query.get("id", ""), query.get("session", "")
        trial = self._catalog.of_session(session) if session else self._catalog.find(identity)
        if trial is None:
            raise Refused(404, f"there is no trial {session or identity!r}")
        return trial.document()


async def _body(headers: dict[str, str], receive: Receive) -> Query:
    """The fields of a JSON object. A form of another web site cannot send this content type."""
    if headers.get("content-type", "").partition(";")[0] != "application/json":
        raise Refused(415, "send JSON")
    document = await read_body(receive)
    if not isinstance(document, dict):
        raise Refused(400, "the body is not an object")
    return {str(key): value if isinstance(value, str) else json.dumps(value) for key, value in document.items()}


def _cookie_name(scope: Scope) -> str:
    """Cookies are shared by all ports of a host, so the name holds the port."""
    return f"srearena_view_{scope['server'][1]}"


def _json(value: Any, *, status: int = 200) -> Response:
    return Response(json.dumps(value, default=str).encode(), status=status)


def serve(app: ViewApp, port: int, ready: Callable[[int], None]) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is called with the port."""
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", lifespan="off", access_log=False)
    server = uvicorn.Server(config)

    async def run() -> None:
        task = asyncio.create_task(server.serve())
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        if server.started:
            ready(server.servers[0].sockets[0].getsockname()[1])
        await task

    asyncio.run(run())
