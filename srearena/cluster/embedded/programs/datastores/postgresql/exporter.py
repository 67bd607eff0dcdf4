"""Metrics of a PostgreSQL server, under the names of its usual exporter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.exporter import Exporter, Sample

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.postgresql.server import PostgresServer

_NONE: Mapping[str, str] = {}


def _samples(server: PostgresServer) -> Iterable[Sample]:
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


EXPORTER = Exporter("postgres-exporter", "pg_up", _samples)
