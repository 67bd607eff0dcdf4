"""Metrics of a Redis server, under the names of its usual exporter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.exporter import Exporter, Sample

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.redis.server import RedisServer

_NONE: Mapping[str, str] = {}


def _samples(server: RedisServer) -> Iterable[Sample]:
    server.settle()
    keys = server.keys
    yield "redis_connected_clients", _NONE, len(server.sessions)
    yield "redis_config_maxclients", _NONE, float(server.settings["maxclients"])
    yield "redis_rejected_connections_total", _NONE, server.rejected
    yield "redis_connections_received_total", _NONE, server.connections
    yield "redis_commands_processed_total", _NONE, server.commands
    yield "redis_keyspace_hits_total", _NONE, server.hits
    yield "redis_keyspace_misses_total", _NONE, server.misses
    yield "redis_memory_used_bytes", _NONE, keys.memory
    yield "redis_memory_max_bytes", _NONE, keys.limit
    yield "redis_evicted_keys_total", _NONE, keys.evicted
    yield "redis_expired_keys_total", _NONE, keys.expired
    yield "redis_rdb_last_bgsave_status", _NONE, not server.save_failed
    for number, stored in sorted(keys.databases.items()):
        yield "redis_db_keys", {"db": f"db{number}"}, len(stored)


EXPORTER = Exporter("redis-exporter", "redis_up", _samples)
