"""Metrics of a MongoDB server, under the names of its usual exporter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.exporter import Exporter, Sample

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.mongodb.server import MongoServer

MAX_INCOMING = 838860


def _samples(server: MongoServer) -> Iterable[Sample]:
    server.settle()
    name, current = "mongodb_ss_connections", len(server.sessions)
    yield name, {"conn_type": "current"}, current
    yield name, {"conn_type": "available"}, MAX_INCOMING - current
    yield name, {"conn_type": "totalCreated"}, server.connected
    for kind, number in server.operation_counters().items():
        yield "mongodb_ss_opcounters", {"legacy_op_type": kind}, number
    for database, collections in sorted(server.contents.databases.items()):
        objects = sum(server.number_of(database, name) for name in collections)
        yield "mongodb_dbstats_collections", {"database": database}, len(collections)
        yield "mongodb_dbstats_objects", {"database": database}, objects


EXPORTER = Exporter("mongodb-exporter", "mongodb_up", _samples)
