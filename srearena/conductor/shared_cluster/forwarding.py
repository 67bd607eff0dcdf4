"""Services of a real cluster on the loopback interface: a small HTTP server that passes requests on.

Each request goes through the API server's proxy on its own, so that there is no line that can break and would have to
be mended: a pod that was replaced, or an API server that restarted, is met anew by the next request. Behind it are the
harness's rights; so it asks for a token, knows a list of Services and nothing else, and lets no path out of them.
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
_PAUSE = 1.0
_TIMEOUT = 60.0
_LARGEST = 4 << 20


@dataclass(frozen=True, slots=True)
class Target:
    namespace: str
    service: str
    port: int


class Forwarding:
    """Serves from its making until `close`."""

    def __init__(self, kubeconfig: Path, targets: Mapping[str, Target]) -> None:
        self.targets = dict(targets)
        self.token = token_urlsafe(24)
        self._api = Kubernetes(kubeconfig, timeout=_TIMEOUT)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="forwarding", daemon=True)
        self._thread.start()

    def address(self, what: str) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{what}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._api.close()

    def pass_on(self, method: str, url: str, body: bytes, headers: Mapping[str, str]) -> Reply:
        """The answer of the Service that the first part of the path names."""
        split = urlsplit(url)
        what, _, rest = split.path.lstrip("/").partition("/")
        target = self.targets.get(what)
        if target is None:
            return _refusal(404, f"there is no {what!r} here: there are {', '.join(self.targets) or 'none'}")
        if _leaves(rest):
            return _refusal(400, "the path leads out of the service")
        path = f"/{rest}?{split.query}" if split.query else f"/{rest}"
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
                self._answer("GET")

            def do_POST(self) -> None:
                self._answer("POST")

            def _answer(self, method: str) -> None:
                length = int(self.headers.get("content-length") or 0)
                body = self.rfile.read(min(length, _LARGEST))
                if not forwarding.admits(self.headers.get("authorization", "")):
                    reply = _refusal(401, "send the header `Authorization: Bearer TOKEN`")
                elif length > _LARGEST:
                    reply = _refusal(413, "too large")
                    self.close_connection = True
                else:
                    kept = {key: self.headers[key] for key in ("content-type", "accept") if key in self.headers}
                    reply = forwarding.pass_on(method, self.path, body, kept)
                content = reply.body
                self.send_response(reply.status)
                self.send_header("content-type", reply.headers.get("content-type", "text/plain"))
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Nobody reads it."""

        return Handler

    def admits(self, header: str) -> bool:
        """A bearer token, or the password of any user, as with the embedded cluster's telemetry."""
        scheme, _, given = header.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = b64decode(given).decode().partition(":")[2]
            except ValueError:
                return False
        return compare_digest(given.strip().encode(), self.token.encode())


def _leaves(path: str) -> bool:
    """Whether a path, however it is written, climbs out of where it starts."""
    plain = unquote(unquote(path)).replace("\\", "/")
    return ".." in plain.split("/") or "#" in plain


def _refusal(status: int, text: str) -> Reply:
    return Reply(status, text.encode(), {"content-type": "text/plain"})
