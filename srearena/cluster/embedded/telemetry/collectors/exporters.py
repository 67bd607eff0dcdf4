"""Exporters of datastores: what a server knows of itself, under the names its usual exporter gives it.

An exporter lives beside its server and outlives it: when the server is gone from its pod, it still answers, and says
that the server is down. Numbers come from the state the server itself works with, the one `exec` shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from srearena.cluster.embedded.node.metered import Sample
from srearena.cluster.embedded.node.programs.kafka.broker import KafkaBroker
from srearena.cluster.embedded.node.programs.memcached import MemcachedServer
from srearena.cluster.embedded.node.programs.mongodb.server import MAX_INCOMING, MongoServer
from srearena.cluster.embedded.node.programs.mysqlserver.server import MysqlServer
from srearena.cluster.embedded.node.programs.postgresql.server import PostgresServer
from srearena.cluster.embedded.node.programs.redisserver.server import RedisServer

_NONE: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Exporter:
    job: str
    alive: str
    """The series that says whether the server answers."""
    serves: Callable[[object], bool]
    read: Callable[[Any], Iterable[Sample]]


def exporter_of(server: object) -> Exporter | None:
    """Who exports a server, if anybody does."""
    return next((exporter for exporter in EXPORTERS if exporter.serves(server)), None) if server is not None else None


def _mongodb(server: MongoServer) -> Iterable[Sample]:
    name, current = "mongodb_ss_connections", len(server.sessions)
    yield name, {"conn_type": "current"}, current
    yield name, {"conn_type": "available"}, MAX_INCOMING - current
    yield name, {"conn_type": "totalCreated"}, server.connected
    for kind, number in server.operations.items():
        yield "mongodb_ss_opcounters", {"legacy_op_type": kind}, number
    for database, collections in sorted(server.contents.databases.items()):
        yield "mongodb_dbstats_collections", {"database": database}, len(collections)
        yield "mongodb_dbstats_objects", {"database": database}, sum(map(len, collections.values()))


def _postgresql(server: PostgresServer) -> Iterable[Sample]:
    now = server.process.clock.now
    yield "pg_settings_max_connections", _NONE, float(server.settings.get("max_connections", 100))
    states: Counter[tuple[str, str]] = Counter()
    longest: dict[tuple[str, str], float] = {}
    for session in server.sessions.values():
        place = (session.database, session.state)
        states[place] += 1
        taken = now - session.transaction_at if session.transaction_at is not None else 0.0
        longest[place] = max(longest.get(place, 0.0), taken)
    for (database, state), number in sorted(states.items()):
        labels = {"datname": database, "state": state}
        yield "pg_stat_activity_count", labels, number
        yield "pg_stat_activity_max_tx_duration", labels, longest[database, state]
    locks: Counter[tuple[str, str]] = Counter()
    for request in server.locks.requests:
        locks[request.owner.database, request.mode.lower()] += 1
    for (database, mode), number in sorted(locks.items()):
        yield "pg_locks_count", {"datname": database, "mode": mode}, number


def _redis(server: RedisServer) -> Iterable[Sample]:
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


def _memcached(server: MemcachedServer) -> Iterable[Sample]:
    counts = server.statistics
    yield "memcached_current_connections", _NONE, server.open + sum(server.pools.values())
    yield "memcached_max_connections", _NONE, server.connection_limit
    yield "memcached_connections_total", _NONE, server.total_connections
    yield "memcached_connections_rejected_total", _NONE, counts["rejected_connections"]
    yield "memcached_current_items", _NONE, len(server.items)
    yield "memcached_items_total", _NONE, counts["total_items"]
    yield "memcached_items_evicted_total", _NONE, counts["evictions"]
    yield "memcached_current_bytes", _NONE, counts["bytes"]
    yield "memcached_limit_bytes", _NONE, server.limit
    yield "memcached_commands_total", {"command": "get", "status": "hit"}, counts["get_hits"]
    yield "memcached_commands_total", {"command": "get", "status": "miss"}, counts["get_misses"]
    yield "memcached_commands_total", {"command": "set", "status": "hit"}, counts["cmd_set"]
    yield "memcached_commands_total", {"command": "flush", "status": "hit"}, counts["cmd_flush"]


def _is_mysql(server: object) -> bool:
    """TiDB speaks the same protocol, but keeps its data elsewhere and has metrics of its own."""
    return isinstance(server, MysqlServer) and bool(server.folder)


def _mysql(server: MysqlServer) -> Iterable[Sample]:
    sessions = server.sessions.values()
    yield "mysql_global_status_threads_connected", _NONE, len(sessions)
    yield "mysql_global_status_threads_running", _NONE, sum(session.command == "Query" for session in sessions)
    yield "mysql_global_status_max_used_connections", _NONE, server.most
    yield "mysql_global_status_connections", _NONE, server.connected
    yield "mysql_global_status_questions", _NONE, server.questions
    yield "mysql_global_variables_max_connections", _NONE, float(server.variables.get("max_connections", 151))


def _kafka(broker: KafkaBroker) -> Iterable[Sample]:
    for name, topic in sorted(broker.logs.items()):
        yield "kafka_topic_partitions", {"topic": name}, len(topic.partitions)
        for number, partition in enumerate(topic.partitions):
            labels = {"topic": name, "partition": str(number)}
            yield "kafka_topic_partition_current_offset", labels, partition.end
            yield "kafka_topic_partition_oldest_offset", labels, partition.start
    for group in sorted(broker.groups.values(), key=lambda group: group.name):
        yield "kafka_consumergroup_members", {"consumergroup": group.name}, broker.active(group)
        for name, offsets in sorted(group.committed.items()):
            read = broker.logs.get(name)
            for number, (partition, offset) in enumerate(zip(read.partitions if read else (), offsets, strict=False)):
                labels = {"consumergroup": group.name, "topic": name, "partition": str(number)}
                reached = min(max(offset, partition.start), partition.end)
                yield "kafka_consumergroup_current_offset", labels, reached
                yield "kafka_consumergroup_lag", labels, partition.end - reached


EXPORTERS: tuple[Exporter, ...] = (
    Exporter("mongodb-exporter", "mongodb_up", lambda server: isinstance(server, MongoServer), _mongodb),
    Exporter("postgres-exporter", "pg_up", lambda server: isinstance(server, PostgresServer), _postgresql),
    Exporter("mysqld-exporter", "mysql_up", _is_mysql, _mysql),
    Exporter("redis-exporter", "redis_up", lambda server: isinstance(server, RedisServer), _redis),
    Exporter("memcached-exporter", "memcached_up", lambda server: isinstance(server, MemcachedServer), _memcached),
    Exporter("kafka-exporter", "kafka_brokers", lambda server: isinstance(server, KafkaBroker), _kafka),
)
