"""The API server: a socket on the loopback interface, TLS, and the application behind it.

It runs in the asyncio loop that starts it. The owner of that loop controls virtual time; `before_request` lets it
advance to the present before a request is handled.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from srearena.cluster.embedded.api.application import Application
from srearena.cluster.embedded.api.authentication import Authenticator, Credentials
from srearena.cluster.embedded.api.authorization import Authorizer
from srearena.cluster.embedded.api.backend import Backend
from srearena.cluster.embedded.api.connections import (
    KEEP_ALIVE_SECONDS,
    HttpConnection,
    WebSocketConnection,
)
from srearena.cluster.embedded.api.direct import DirectRequests
from srearena.cluster.embedded.api.discovery import Discovery
from srearena.cluster.embedded.api.in_cluster import InClusterApi
from srearena.cluster.embedded.api.node_agent import NodeAgent
from srearena.cluster.embedded.api.openapi import OpenApi
from srearena.cluster.embedded.api.watching import Feeds
from srearena.cluster.embedded.listening import HOST, Listener
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.registry.tokens import TokenIssuer
from srearena.cluster.embedded.world import World


class ApiServer:
    """Serves one world. `port` 0 takes a free one; `port` and `url` are known once it has started."""

    def __init__(self, world: World, credentials: Credentials, port: int = 0, agent: NodeAgent | None = None) -> None:
        self.world = world
        self.credentials = credentials
        self.listener = Listener(port)
        self.before_request: Callable[[], object] = lambda: None
        issuer = TokenIssuer(world.clock, world.store, world.randomness)
        self.backend = Backend(
            world=world,
            authenticator=Authenticator(credentials, issuer, world.store),
            authorizer=Authorizer(world.store),
            issuer=issuer,
            discovery=Discovery(world.registry.resources, lambda: f"{HOST}:{self.port}"),
            open_api=OpenApi(world.registry.resources, world.store),
            feeds=Feeds(world.store),
            agent=agent,
        )
        self._application = Application(self.backend, lambda: self.before_request())
        self.in_cluster = InClusterApi(Application(self.backend, lambda: None))
        """The same API for programs in pods, which are part of the time that flows."""

    @property
    def port(self) -> int:
        return self.listener.port

    @property
    def url(self) -> str:
        return f"https://{HOST}:{self.port}"

    @property
    def busy(self) -> bool:
        """Whether any request is being answered."""
        return self.listener.busy

    def kubeconfig(self, user: User, *, namespace: str = "", with_token: bool = False) -> Obj:
        return self.credentials.kubeconfig(self.url, user, namespace=namespace, with_token=with_token)

    def direct(self, user: User) -> DirectRequests:
        """The way of a user in this process, which needs no socket and no credentials."""
        return DirectRequests(self._application, user)

    async def start(self) -> None:
        await self.listener.start(
            self._application,
            HttpConnection,
            ws=WebSocketConnection,
            tls=self.credentials.authority.server_context(),
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            ws_per_message_deflate=False,
        )

    async def stop(self) -> None:
        """Stop accepting connections and close the open ones, also those with requests in progress."""
        await self.listener.stop()

    def use(self, credentials: Credentials) -> None:
        """Serve with other credentials from the next start on; those before are refused."""
        self.credentials = credentials
        self.backend.authenticator.use(credentials)
        self.backend.issuer.renew()

    async def __aenter__(self) -> ApiServer:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
