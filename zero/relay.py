"""Relay of the agent's connections from the sandbox to the allowed endpoints.

An endpoint on this machine keeps its port. All others are reached through one HTTP proxy, which opens tunnels to the
allowed endpoints only; TLS is end to end. Names are resolved here, so that the sandbox needs no DNS.
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
from zero.gateway import LIFELINE, forward

SOCKET_DIRECTORY = Path("/run/zero")  # of the sockets, in the sandbox
PROXY_PORT = 3128  # the usual port of HTTP proxies
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_CONNECT_TIMEOUT = 30.0  # seconds
_MAX_HEAD = 65536  # bytes


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    host: str
    port: int

    @property
    def local(self) -> bool:
        return self.host in _LOOPBACK

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """Parse a URL or `host:port`."""
        parts = urlsplit(text if "://" in text else f"//{text}")
        try:
            port = parts.port or {"https": 443, "http": 80, "wss": 443, "ws": 80}.get(parts.scheme)
        except ValueError:
            port = None
        if not parts.hostname or port is None:
            raise RequestError(f"{text!r} is not an endpoint: give a URL or host:port")
        return cls(parts.hostname, port)


def _connect(endpoint: Endpoint, upstream: Endpoint | None) -> socket.socket:
    """Connect to an endpoint, through the upstream proxy of this machine if it has one."""
    if upstream is None or endpoint.local:
        return socket.create_connection((endpoint.host, endpoint.port), timeout=_CONNECT_TIMEOUT)
    connection = socket.create_connection((upstream.host, upstream.port), timeout=_CONNECT_TIMEOUT)
    name = f"{endpoint.host}:{endpoint.port}"
    connection.sendall(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n\r\n".encode())
    if b" 200" not in _head(connection).partition(b"\r\n")[0]:
        connection.close()
        raise OSError(f"the proxy {upstream.host} does not open {name}")
    return connection


def _head(connection: socket.socket) -> bytes:
    """Read the head of an HTTP message, byte by byte, so that nothing after it is consumed."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        data = connection.recv(1)
        if not data or len(head) > _MAX_HEAD:
            raise OSError("no HTTP head")
        head += data
    return head


def _hold(connection: socket.socket) -> None:
    """Keep a connection open until its other end closes it."""
    with connection, contextlib.suppress(OSError):
        connection.recv(1)


@dataclass
class Relay:
    endpoints: frozenset[Endpoint]
    upstream: Endpoint | None
    directory: Path
    refused: list[str] = field(default_factory=list)
    _listeners: list[socket.socket] = field(default_factory=list)

    @property
    def forwards(self) -> list[str]:
        """Arguments of the gateway: the socket of each port in the sandbox."""
        local = sorted({each.port for each in self.endpoints if each.local})
        forwards = [f"{port}={SOCKET_DIRECTORY / str(port)}" for port in local]
        return [*forwards, f"{PROXY_PORT}={SOCKET_DIRECTORY / 'proxy'}"] if self._remote else forwards

    @property
    def lifeline(self) -> str:
        """Argument of the gateway: a socket whose connection breaks when this process dies."""
        return f"{LIFELINE}={SOCKET_DIRECTORY / LIFELINE}"

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
        self._listen(LIFELINE, _hold)
        for endpoint in self.endpoints:
            if endpoint.local:
                self._listen(str(endpoint.port), partial(self._forward, endpoint=endpoint))
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
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=handle, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def _forward(self, connection: socket.socket, endpoint: Endpoint) -> None:
        try:
            target = _connect(endpoint, self.upstream)
        except OSError:
            connection.close()
            return
        target.settimeout(None)
        forward(connection, target)

    def _proxy(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(_CONNECT_TIMEOUT)
            head = _head(connection)
            method, where, _ = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 2)
            endpoint = Endpoint.parse(where)
            if endpoint not in self.endpoints:
                self.refused.append(f"{endpoint.host}:{endpoint.port}")
                connection.sendall(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
                connection.close()
                return
            target = _connect(endpoint, self.upstream)
            if method == "CONNECT":
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                target.sendall(head)
        except (OSError, ValueError, RequestError):
            connection.close()
            return
        connection.settimeout(None)
        target.settimeout(None)
        forward(connection, target)

    def close(self) -> None:
        for listener in self._listeners:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()


def upstream_proxy(environment: Mapping[str, str]) -> Endpoint | None:
    """The proxy of this machine, from its environment."""
    url = environment.get("HTTPS_PROXY") or environment.get("https_proxy")
    return Endpoint.parse(url) if url else None


@contextmanager
def run_relay(endpoints: Iterable[Endpoint]) -> Iterator[Relay]:
    """Relay connections to these endpoints until the block ends."""
    directory = Path(tempfile.mkdtemp(prefix="zero-"))
    relay = Relay(frozenset(endpoints), upstream_proxy(os.environ), directory)
    try:
        relay.open()
        yield relay
    finally:
        relay.close()
        shutil.rmtree(directory, ignore_errors=True)
