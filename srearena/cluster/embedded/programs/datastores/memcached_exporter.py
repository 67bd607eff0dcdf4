"""Metrics of a memcached server, under the names of its usual exporter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.exporter import Exporter, Sample

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.memcached import MemcachedServer

_NONE: Mapping[str, str] = {}


def _samples(server: MemcachedServer) -> Iterable[Sample]:
    server.settle()
    counts = server.statistics
    yield "memcached_current_connections", _NONE, server.open + sum(server.pools.values())
    yield "memcached_max_connections", _NONE, server.connection_limit
    yield "memcached_connections_total", _NONE, server.total_connections
    yield "memcached_connections_rejected_total", _NONE, counts["rejected_connections"]
    yield "memcached_current_items", _NONE, server.current_items
    yield "memcached_items_total", _NONE, counts["total_items"]
    yield "memcached_items_evicted_total", _NONE, counts["evictions"]
    yield "memcached_current_bytes", _NONE, server.current_bytes
    yield "memcached_limit_bytes", _NONE, server.limit
    yield "memcached_commands_total", {"command": "get", "status": "hit"}, counts["get_hits"]
    yield "memcached_commands_total", {"command": "get", "status": "miss"}, counts["get_misses"]
    yield "memcached_commands_total", {"command": "set", "status": "hit"}, counts["cmd_set"]
    yield "memcached_commands_total", {"command": "flush", "status": "hit"}, counts["cmd_flush"]


EXPORTER = Exporter("memcached-exporter", "memcached_up", _samples)
