"""What handlers work with: the world, and the parts of the server that all requests share."""

from __future__ import annotations

from dataclasses import dataclass

from srearena.cluster.embedded.api.authentication import Authenticator
from srearena.cluster.embedded.api.authorization import Authorizer
from srearena.cluster.embedded.api.discovery import Discovery
from srearena.cluster.embedded.api.node_agent import NodeAgent
from srearena.cluster.embedded.api.openapi import OpenApi
from srearena.cluster.embedded.api.watching import Feeds
from srearena.cluster.embedded.extension_servers import ExtensionServers
from srearena.cluster.embedded.registry.registry import Registry
from srearena.cluster.embedded.registry.tokens import TokenIssuer
from srearena.cluster.embedded.store import Store
from srearena.cluster.embedded.telemetry.component_metrics import ComponentMetrics
from srearena.cluster.embedded.world import World


@dataclass(slots=True)
class Backend:
    world: World
    authenticator: Authenticator
    authorizer: Authorizer
    issuer: TokenIssuer
    discovery: Discovery
    open_api: OpenApi
    feeds: Feeds
    agent: NodeAgent | None = None
    """The nodes; without any, nothing that needs a kubelet can be reached."""
    extensions: ExtensionServers | None = None
    """The way to the servers of aggregated APIs; without it their APIs are unavailable."""

    component_metrics: ComponentMetrics | None = None
    """The metrics of the cluster's own components; without it they have none."""

    @property
    def registry(self) -> Registry:
        return self.world.registry

    @property
    def store(self) -> Store:
        return self.world.store
