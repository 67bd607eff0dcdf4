"""The API server: a socket on the loopback interface, TLS, and the application behind it.

It lives in the asyncio loop that starts it. Whoever owns that loop decides how virtual time flows; `before_request`
is its chance to let time catch up with the wall before a request looks at the world.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from types import TracebackType

from uvicorn import Config
from uvicorn.server import ServerState

from srearena.cluster.embedded.api.application import Application
from srearena.cluster.embedded.api.authentication import Authenticator, Credentials
from srearena.cluster.embedded.api.authorization import Authorizer
from srearena.cluster.embedded.api.backend import Backend
from srearena.cluster.embedded.api.connections import (
    KEEP_ALIVE_SECONDS,
    HttpConnection,
    WebSocketConnection,
)
from srearena.cluster.embedded.api.discovery import Discovery
from srearena.cluster.embedded.api.in_cluster import InClusterApi
from srearena.cluster.embedded.api.node_agent import NodeAgent
from srearena.cluster.embedded.api.openapi import OpenApi
from srearena.cluster.embedded.api.watching import Feeds
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.tokens import TokenIssuer
from srearena.cluster.embedded.world import World

HOST = "127.0.0.1"
_HANDSHAKE_SECONDS = 10.0


class ApiServer:
    """Serves one world. `port` 0 takes a free one; `port` and `url` are known once it has started."""

    def __init__(self, world: World, credentials: Credentials, port: int = 0, agent: NodeAgent | None = None) -> None:
        self.world = world
        self.credentials = credentials
        self.port = port
        self.before_request: Callable[[], object] = lambda: None
        issuer = TokenIssuer(world.clock, world.store, world.randomness)
        self.backend = Backend(
            world=world,
            authenticator=Authenticator(credentials, issuer),
            authorizer=Authorizer(world.store),
            issuer=issuer,
            discovery=Discovery(world.registry.resources, lambda: f"{HOST}:{self.port}"),
            open_api=OpenApi(world.registry.resources, world.store),
            feeds=Feeds(world.store),
            agent=agent,
        )
        self.in_cluster = InClusterApi(Application(self.backend, lambda: None))
        """The same API for programs in pods, which are part of the time that flows."""
        self._state = ServerState()
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def busy(self) -> bool:
        """Whether any request is being answered."""
        return bool(self._state.tasks)

    def kubeconfig(self, user: User, *, namespace: str = "", with_token: bool = False) -> Obj:
        return self.credentials.kubeconfig(self.url, user, namespace=namespace, with_token=with_token)

    async def start(self) -> None:
        application = Application(self.backend, lambda: self.before_request())
        config = Config(
            application,
            http=HttpConnection,
            ws=WebSocketConnection,
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            interface="asgi3",
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            ws_per_message_deflate=False,
        )
        config.load()
        # Only sockets that say they are TCP get TCP_NODELAY from asyncio; without it small answers take 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, self.port))
        except OSError:
            listener.close()
            raise
        self.port = listener.getsockname()[1]
        self._server = await asyncio.get_running_loop().create_server(
            lambda: HttpConnection(config=config, server_state=self._state, app_state={}),
            sock=listener,
            ssl=self.credentials.authority.server_context(),
            backlog=2048,
            ssl_handshake_timeout=_HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=1.0,
        )

    async def stop(self) -> None:
        """Stop listening and drop every client, also those in the middle of something."""
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

    async def __aenter__(self) -> ApiServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
