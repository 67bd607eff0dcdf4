"""Forwards requests from the loopback interface to Services of a real cluster.

Each request goes through the API server's service proxy on its own, so there is no long-lived connection to repair: the
next request reaches a replaced pod or a restarted API server. Requests run with the harness's rights; therefore a token
is required, only listed Services are reachable, and no path may leave them.
"""

from __future__ import annotations

import threading
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_urlsafe
from typing import Any
from urllib.parse import unquote, urlsplit

from srearena.service.errors import ServiceError, Unreachable
from srearena.service.kubernetes import Kubernetes, Reply
from srearena.service.waiting import sleep

_ATTEMPTS = 3
"""Chosen: covers the restart of an API server without delaying a failure noticeably."""
_PAUSE = 1.0
_TIMEOUT = 60.0
_LARGEST_BODY = 4 << 20
"""Queries are far smaller; the bound protects the memory of the harness."""


@dataclass(frozen=True, slots=True)
class Target:
    namespace: str
    service: str
    port: int


class Forwarding:
    """Serves from construction until `close`."""

    def __init__(self, kubeconfig: Path, targets: Mapping[str, Target]) -> None:
        self.targets = dict(targets)
        self.token = token_urlsafe(24)
        self._api = Kubernetes(kubeconfig, timeout=_TIMEOUT)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="forwarding", daemon=True)
        self._thread.start()

    def address(self, kind: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{kind}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._api.close()

    def forward(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """Send the request to the Service that the first part of the path names, and return its response."""
        split = urlsplit(url)
        kind, _, remainder = split.path.lstrip("/").partition("/")
        target = self.targets.get(kind)
        if target is None:
            return _refusal(404, f"there is no Service {kind!r} here: there are {', '.join(self.targets) or 'none'}")
        if _leaves(remainder):
            return _refusal(400, "the path leaves the Service")
        path = f"/{remainder}?{split.query}" if split.query else f"/{remainder}"
        for attempt in range(_ATTEMPTS):
            try:
                return self._api.request_service(
                    target.service,
                    target.port,
                    path,
                    target.namespace,
                    method=method,
                    body=body or None,
                    headers=headers,
                )
            except Unreachable as problem:
                if attempt == _ATTEMPTS - 1:
                    return _refusal(502, str(problem))
                sleep(_PAUSE)
            except ServiceError as problem:
                return _refusal(502, str(problem))
        raise AssertionError("unreachable")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        forwarding = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._respond("GET")

            def do_POST(self) -> None:
                self._respond("POST")

            def _respond(self, method: str) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(min(length, _LARGEST_BODY))
                if not forwarding.is_authorized(self.headers.get("authorization", "")):
                    reply = _refusal(401, "send the header `Authorization: Bearer TOKEN`")
                elif length > _LARGEST_BODY:
                    reply = _refusal(413, "too large")
                    self.close_connection = True
                else:
                    headers = {key: self.headers[key] for key in ("content-type", "accept") if key in self.headers}
                    reply = forwarding.forward(method, self.path, body, headers)
                content = reply.body
                self.send_response(reply.status)
                self.send_header("content-type", reply.headers.get("content-type", "text/plain"))
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Write no access log."""

        return Handler

    def is_authorized(self, header: str) -> bool:
        """Accept the token as a bearer token or as any user's password, like the embedded cluster's telemetry."""
        scheme, _, credentials = header.partition(" ")
        if scheme.lower() == "basic":
            try:
                credentials = b64decode(credentials).decode().partition(":")[2]
            except ValueError:
                return False
        return compare_digest(credentials.strip().encode(), self.token.encode())


def _leaves(path: str) -> bool:
    """Whether a path leaves its root, also where it is percent-encoded."""
    plain = unquote(unquote(path)).replace("\\", "/")
    return ".." in plain.split("/") or "#" in plain


def _refusal(status: int, text: str) -> Reply:
    return Reply(status, text.encode(), {"content-type": "text/plain"})
