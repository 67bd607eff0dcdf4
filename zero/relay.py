"""Outside the sandbox: where the agent's connections may lead, and nowhere else.

An endpoint on this machine is reached at its own port. All others go through one proxy, which opens tunnels to the
endpoints it was told and refuses the rest; TLS stays between the agent and the endpoint. Names are resolved here, so
that the sandbox needs no DNS.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from zero.errors import RequestError
from zero.gateway import LIFE, join

INSIDE = Path("/run/zero")  # where the sandbox sees the sockets
PROXY_PORT = 3128
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_CONNECT_TIMEOUT = 30.0
_MAX_HEAD = 65536


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    host: str
    port: int

    @property
    def local(self) -> bool:
        return self.host in _LOOPBACK

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """From a URL or from `host:port`."""
        parts = urlsplit(text if "://" in text else f"//{text}")
        try:
            port = parts.port or {"https": 443, "http": 80, "wss": 443, "ws": 80}.get(parts.scheme)
        except ValueError:
            port = None
        if not parts.hostname or port is None:
            raise RequestError(f"{text!r} is no endpoint: give a URL or host:port")
        return cls(parts.hostname, port)


def _dial(endpoint: Endpoint, upstream: Endpoint | None) -> socket.socket:
    """A connection to an endpoint, through this machine's own proxy where it has one."""
    if upstream is None or endpoint.local:
        return socket.create_connection((endpoint.host, endpoint.port), timeout=_CONNECT_TIMEOUT)
    line = socket.create_connection((upstream.host, upstream.port), timeout=_CONNECT_TIMEOUT)
    name = f"{endpoint.host}:{endpoint.port}"
    line.sendall(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
    if b" 200" not in _head(line).partition(b"\r\n")[0]:
        line.close()
        raise OSError(f"the proxy {upstream.host} does not open {name}")
    return line


def _head(connection: socket.socket) -> bytes:
    """The head of an HTTP message, and not a byte more."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = connection.recv(1)
        if not data or len(head) > _MAX_HEAD:
            raise OSError("no HTTP head")
        head += data
    return head


def _hold(line: socket.socket) -> None:
    """Keep a line open until its other end lets go."""
    with line, contextlib.suppress(OSError):
        line.recv(1)


@dataclass
class Relay:
    endpoints: frozenset[Endpoint]
    upstream: Endpoint | None
    directory: Path
    refused: list[str] = field(default_factory=list)
    _listeners: list[socket.socket] = field(default_factory=list)

    @property
    def doors(self) -> list[str]:
        """Arguments for the gateway: which port inside leads to which socket."""
        local = sorted({each.port for each in self.endpoints if each.local})
        doors = [f"{port}={INSIDE / str(port)}" for port in local]
        return [*doors, f"{PROXY_PORT}={INSIDE / 'proxy'}"] if self._remote else doors

    @property
    def life(self) -> str:
        """A door that leads nowhere, and is open as long as we live."""
        return f"{LIFE}={INSIDE / LIFE}"

    @property
    def environment(self) -> dict[str, str]:
        if not self._remote:
            return {}
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        names = dict.fromkeys(("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"), proxy)
        return {**names, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}

    @property
    def _remote(self) -> bool:
        return any(not each.local for each in self.endpoints)

    def open(self) -> None:
        self._listen(LIFE, _hold)
        for endpoint in self.endpoints:
            if endpoint.local:
                self._listen(str(endpoint.port), partial(self._pass, endpoint=endpoint))
        if self._remote:
            self._listen("proxy", self._proxy)

    def _listen(self, name: str, handle: Callable[[socket.socket], None]) -> None:
        path = self.directory / name
        if path.exists():
            return
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(path))
        listener.listen(64)
        self._listeners.append(listener)

        def accept() -> None:
            while True:
                try:
                    line, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(line,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def _pass(self, line: socket.socket, endpoint: Endpoint) -> None:
        try:
            target = _dial(endpoint, self.upstream)
        except OSError:
            line.close()
            return
        target.settimeout(None)
        join(line, target)

    def _proxy(self, line: socket.socket) -> None:
        try:
            line.settimeout(_CONNECT_TIMEOUT)
            head = _head(line)
            method, where, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 2)
            endpoint = Endpoint.parse(where)
            if endpoint not in self.endpoints:
                self.refused.append(f"{endpoint.host}:{endpoint.port}")
                line.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
                line.close()
                return
            target = _dial(endpoint, self.upstream)
            if method == "CONNECT":
                line.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                target.sendall(head)
        except (OSError, ValueError, RequestError):
            line.close()
            return
        line.settimeout(None)
        target.settimeout(None)
        join(line, target)

    def close(self) -> None:
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def upstream_proxy(environment: Mapping[str, str]) -> Endpoint | None:
    given = environment.get("HTTPS_PROXY") or environment.get("https_proxy")
    return Endpoint.parse(given) if given else None


@contextmanager
def relaying(endpoints: Iterable[Endpoint]) -> Iterator[Relay]:
    """Doors to these endpoints until the block ends."""
    directory = Path(tempfile.mkdtemp(prefix="zero-"))
    relay = Relay(frozenset(endpoints), upstream_proxy(os.environ), directory)
    try:
        relay.open()
        yield relay
    finally:
        relay.close()
        shutil.rmtree(directory, ignore_errors=True)
