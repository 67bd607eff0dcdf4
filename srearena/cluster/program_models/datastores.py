"""Building blocks for program models of databases and brokers."""

from srearena.cluster.embedded.programs.datastores.connection_pools import cut_down, occupied, pool_of
from srearena.cluster.embedded.programs.datastores.datastore import (
    BulkStatements,
    Counted,
    Instance,
    Login,
    Record,
    Refusal,
    RefusalKind,
)
from srearena.cluster.embedded.programs.datastores.dialogue import Dialogue
from srearena.cluster.embedded.programs.datastores.disk_watch import DiskWatch

__all__ = [
    "BulkStatements",
    "Counted",
    "Dialogue",
    "DiskWatch",
    "Instance",
    "Login",
    "Record",
    "Refusal",
    "RefusalKind",
    "cut_down",
    "occupied",
    "pool_of",
]
