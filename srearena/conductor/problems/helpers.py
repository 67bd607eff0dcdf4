"""What several families of problems need."""

from __future__ import annotations

from srearena.cluster import Cluster
from srearena.service.apps.base import Application
from srearena.service.errors import ApplicationError
from srearena.service.kubernetes import Kubernetes


def get_frontend_url(app: Application, cluster: Cluster) -> str:
    """Where the application is entered, as an address inside the cluster."""
    door = app.frontend
    if door is None:
        raise ApplicationError(f"{app.name} has no front door in its metadata")
    with Kubernetes.of(cluster) as api:
        service = api.get("services", door.service, door.namespace or app.namespace)
    return f"http://{service['spec']['clusterIP']}:{door.port}"
