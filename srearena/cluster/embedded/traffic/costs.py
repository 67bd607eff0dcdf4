"""Cost of one request at a datastore: processor time, time on disk or in locks, and whether it reads or writes.

The numbers are orders of magnitude of published benchmarks on commodity hardware: redis-benchmark and memtier serve
tens of thousands of key-value operations a second per core, which is tens of microseconds each; sysbench and YCSB show
some tenths of a millisecond of processor time for an indexed read of a document or SQL store; a write adds the wait
for the log to reach an SSD, about a millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cost:
    """Processor seconds, other seconds, and their coefficient of variation (`spread`)."""

    cpu: float
    latency: float
    writes: bool = False
    spread: float = 0.5


_READ = {
    "mongo": Cost(0.0003, 0.0006),
    "postgres": Cost(0.0003, 0.0005),
    "mysql": Cost(0.0003, 0.0006),
    "redis": Cost(0.00003, 0.00005),
    "memcached": Cost(0.00002, 0.00005),
    "kafka": Cost(0.0001, 0.0005),
    "amqp": Cost(0.0001, 0.0005),
}
_WRITE = {
    "mongo": Cost(0.0004, 0.0012, True),
    "postgres": Cost(0.0005, 0.0015, True),
    "mysql": Cost(0.0005, 0.0018, True),
    "redis": Cost(0.00004, 0.00005, True),
    "memcached": Cost(0.00002, 0.00005, True),
    "kafka": Cost(0.00015, 0.0012, True),
    "amqp": Cost(0.00015, 0.0008, True),
}
_WRITING = frozenset(
    "insert update upsert delete remove set hset hmset zadd sadd lpush rpush incr expire del save create produce "
    "publish push write execute commit bulk".split()
)
STORES = frozenset(_READ)
DEFAULT = Cost(0.0002, 0.0005)
"""Chosen: between a key-value store and a SQL store."""


def cost_of(protocol: str, operation: str) -> Cost:
    """Return the cost of an operation by its first word: `insert`, `find`, `HGET`."""
    verb = operation.split(None, 1)[0].lower() if operation else ""
    table = _WRITE if verb in _WRITING else _READ
    return table.get(protocol, DEFAULT)
