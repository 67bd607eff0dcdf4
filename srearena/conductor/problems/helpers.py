"""Functions for several families of problems."""

from __future__ import annotations

from srearena.cluster import Cluster
from srearena.service.apps.base import Application
from srearena.service.errors import ApplicationError
from srearena.service.kubernetes import Kubernetes


def get_frontend_url(app: Application, cluster: Cluster) -> str:
    """The URL of the application's frontend inside the cluster."""
    frontend = app.frontend
    if frontend is None:
        raise ApplicationError(f'{app.name} has no "Front Door" in its metadata')
    with Kubernetes.of(cluster) as api:
        service = api.get("services", frontend.service, frontend.namespace or app.namespace)
    return f"http://{service['spec']['clusterIP']}:{frontend.port}"
