"""Metrics of a PostgreSQL server, under the names of its usual exporter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.exporter import Exporter, Sample

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.postgresql.server import PostgresServer

_NONE: Mapping[str, str] = {}
_ROWS = {"fetched": "idx_tup_fetch", "inserted": "n_tup_ins", "updated": "n_tup_upd", "deleted": "n_tup_del"}
_TABLE_COUNTERS = ("idx_scan", "idx_tup_fetch", "n_tup_ins", "n_tup_upd", "n_tup_del")


def _samples(server: PostgresServer) -> Iterable[Sample]:
    server.settle()
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
    for name, found in sorted(server.databases.items()):
        labels = {"datname": name}
        yield "pg_stat_database_numbackends", labels, sum(s.database == name for s in server.sessions.values())
        yield "pg_stat_database_xact_commit", labels, found.commits
        for kind, counted in _ROWS.items():
            total = sum(counts.get(counted, 0) for counts in found.table_counts.values())
            yield f"pg_stat_database_tup_{kind}", labels, total
        for table, counts in sorted(found.table_counts.items()):
            schema, _, relation = table.partition(".")
            relation_labels = {"datname": name, "schemaname": schema, "relname": relation}
            for counted in _TABLE_COUNTERS:
                yield f"pg_stat_user_tables_{counted}", relation_labels, counts.get(counted, 0)
    locks: Counter[tuple[str, str]] = Counter()
    for request in server.locks.requests:
        locks[request.owner.database, request.mode.lower()] += 1
    for (database, mode), number in sorted(locks.items()):
        yield "pg_locks_count", {"datname": database, "mode": mode}, number


EXPORTER = Exporter("postgres-exporter", "pg_up", _samples)
