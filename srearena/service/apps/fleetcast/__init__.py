"""FleetCast on TiDB: a satellite simulation whose database an operator creates from a custom resource."""

from __future__ import annotations

from srearena.service.apps.base import Application
from srearena.service.apps.fleetcast.journeys import JOURNEYS
from srearena.service.journeys import Journey
from srearena.service.kubernetes import Kubernetes

_CLUSTERS = "tidbclusters.pingcap.com"


class FleetCast(Application):
    def __init__(self) -> None:
        super().__init__("fleetcast.json")

    @property
    def journeys(self) -> tuple[Journey, ...]:
        return JOURNEYS

    def not_ready(self, api: Kubernetes) -> list[str]:
        """Also require the database, which the operator creates from the TidbCluster."""
        return [*super().not_ready(api), *_databases(api)]


def _databases(api: Kubernetes) -> list[str]:
    missing = []
    for cluster in api.list(_CLUSTERS):
        conditions = (cluster.get("status") or {}).get("conditions") or ()
        ready = next((c for c in conditions if c["type"] == "Ready"), None)
        if ready is None or ready["status"] != "True":
            reason = f"{ready['reason']}: {ready['message']}" if ready else "no operator has reconciled it yet"
            missing.append(f"tidbcluster {cluster['metadata']['name']}: {reason}")
    return missing
