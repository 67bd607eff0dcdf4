"""Being a guest on a cluster that belongs to somebody else: ask before entering, write down how it was, leave it so."""

from srearena.conductor.guest.cluster import GuestCluster, enter
from srearena.conductor.guest.ledger import Ledger, all_ledgers
from srearena.conductor.guest.preflight import Needs, PreflightFailed
from srearena.conductor.guest.restoring import restore

__all__ = ["GuestCluster", "Ledger", "Needs", "PreflightFailed", "all_ledgers", "enter", "restore"]
