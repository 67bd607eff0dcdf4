"""Train Ticket: forty-six services for selling railway tickets, in the variant with Nacos and one MySQL cluster."""

from __future__ import annotations

from srearena.cluster import Cluster
from srearena.service.apps.base import Application
from srearena.service.apps.train_ticket.journeys import JOURNEYS
from srearena.service.deployment import apply_all
from srearena.service.errors import NotReady, TimedOut
from srearena.service.journeys import Journey
from srearena.service.kubernetes import Kubernetes
from srearena.service.waiting import wait_until

_FOUNDATION_SECONDS = 900.0


class TrainTicket(Application):
    def __init__(self) -> None:
        super().__init__("train-ticket.json")

    @property
    def journeys(self) -> tuple[Journey, ...]:
        return JOURNEYS

    def deploy(self, cluster: Cluster) -> None:
        """Deploy databases, registry and queues first, and the services when these are ready."""
        services = [manifest for manifest in self.manifests if manifest.path.parent.name == "services"]
        foundation = [manifest for manifest in self.manifests if manifest not in services]
        with Kubernetes.of(cluster) as api:
            apply_all(cluster, api, self.namespace, foundation)
            try:
                wait_until(lambda: not self.not_ready(api), cluster.wait, _FOUNDATION_SECONDS)
            except TimedOut:
                details = "\n  ".join(self.not_ready(api))
                raise NotReady(f"the infrastructure of {self.name} is not ready:\n  {details}") from None
            apply_all(cluster, api, self.namespace, services)
