"""Social Network: OpenResty in front of C++ Thrift services with MongoDB, Redis and memcached."""

from __future__ import annotations

from srearena.cluster import Cluster
from srearena.service.apps.base import Application
from srearena.service.apps.social_network.certificates import tls_secret
from srearena.service.apps.social_network.journeys import JOURNEYS
from srearena.service.journeys import Journey
from srearena.service.kubernetes import Kubernetes

TLS_SECRET = "mongodb-tls"


class SocialNetwork(Application):
    def __init__(self) -> None:
        super().__init__("social-network.json")

    @property
    def journeys(self) -> tuple[Journey, ...]:
        return JOURNEYS

    def deploy(self, cluster: Cluster) -> None:
        """Also create the certificate with which its databases can be switched to TLS."""
        super().deploy(cluster)
        with Kubernetes.of(cluster) as api:
            if api.find("secrets", TLS_SECRET, self.namespace) is None:
                api.create(tls_secret(TLS_SECRET, self.namespace), self.namespace)
