"""Episodes on a shared cluster: check it first, record its state, and restore that state afterwards."""

from srearena.conductor.shared_cluster.cluster import SharedCluster, open_shared_cluster, telemetry_of_run
from srearena.conductor.shared_cluster.ledger import Ledger, all_ledgers
from srearena.conductor.shared_cluster.preflight import Needs, PreflightFailed, check_access
from srearena.conductor.shared_cluster.restoration import restore

__all__ = [
    "Ledger",
    "Needs",
    "PreflightFailed",
    "SharedCluster",
    "all_ledgers",
    "check_access",
    "open_shared_cluster",
    "restore",
    "telemetry_of_run",
]
