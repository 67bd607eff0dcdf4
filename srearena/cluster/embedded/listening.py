"""A socket on the loopback interface with an ASGI application behind it, in the asyncio loop that starts it."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Any

from uvicorn import Config
from uvicorn.server import ServerState

HOST = "127.0.0.1"
_HANDSHAKE_SECONDS = 10.0
_TLS_GOODBYE_SECONDS = 1.0


class Listener:
    """A listener; `port` 0 takes a free port, known after `start`."""

    def __init__(self, port: int = 0) -> None:
        self.port = port
        self._state = ServerState()
        self._server: asyncio.Server | None = None
        self._reserved: socket.socket | None = None
        """The socket of a suspended listener: clients that connect meanwhile wait."""

    @property
    def busy(self) -> bool:
        """Whether any request is in progress."""
        return bool(self._state.tasks)

    async def start(
        self,
        application: Callable[..., Any],
        connection: type[Any],
        *,
        tls: ssl.SSLContext | None = None,
        **options: Any,
    ) -> None:
        """Listen. `connection` is uvicorn's protocol for one client, or a subclass; `options` are uvicorn's."""
        config = Config(
            application,
            http=connection,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            interface="asgi3",
            **options,
        )
        config.load()
        listener, self._reserved = self._reserved or _bound(self.port), None
        self.port = listener.getsockname()[1]
        self._server = await asyncio.get_running_loop().create_server(
            lambda: connection(config=config, server_state=self._state, app_state={}),
            sock=listener,
            ssl=tls,
            backlog=2048,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS if tls else None,
            ssl_shutdown_timeout=_TLS_GOODBYE_SECONDS if tls else None,
        )

    async def suspend(self) -> None:
        """Close all connections, and keep the port for the next `start`."""
        if self._server is not None:
            self._reserved = self._server.sockets[0].dup()
            await self.stop()

    def leave(self) -> None:
        """Leave the port of a suspended listener to the process that this one is a copy of: take a new one."""
        self.close()
        self.port = 0

    def close(self) -> None:
        """Give up the port of a suspended listener."""
        if self._reserved is not None:
            self._reserved.close()
            self._reserved = None

    async def stop(self) -> None:
        """Stop accepting connections and close the open ones, also those with requests in progress."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        tasks = list(self._state.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for connection in list(self._state.connections):
            connection.transport.abort()
        while self._state.connections:
            await asyncio.sleep(0)


def _bound(port: int) -> socket.socket:
    # asyncio sets TCP_NODELAY only on sockets with the TCP protocol number; without it small responses take 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError:
        listener.close()
        raise
    return listener
