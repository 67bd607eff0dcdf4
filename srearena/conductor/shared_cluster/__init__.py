"""Being a guest on a cluster that belongs to somebody else: ask before entering, write down how it was, leave it so."""

from srearena.conductor.shared_cluster.cluster import GuestCluster, enter
from srearena.conductor.shared_cluster.ledger import Ledger, all_ledgers
from srearena.conductor.shared_cluster.preflight import Needs, PreflightFailed
from srearena.conductor.shared_cluster.restoration import restore

__all__ = ["GuestCluster", "Ledger", "Needs", "PreflightFailed", "all_ledgers", "enter", "restore"]
