"""What a server learns of statements of bulk traffic: which run now, and the log of those that took long."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from srearena.cluster.embedded.programs.datastores.connection_pools import pool_of
from srearena.cluster.embedded.programs.datastores.datastore import BulkStatements
from srearena.cluster.embedded.programs.datastores.statement_activity import Running, derived_text, slow_seconds

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.postgresql.server import PostgresServer, Session

PER_REPORT = 50
"""Lines written for one kind of statement in one report, at most."""
_MARKS = tuple(f"${number}" for number in range(1, 41))


def text_of(server: PostgresServer, one: BulkStatements) -> str:
    """Return the text of a statement of bulk traffic."""
    if one.text:
        return one.text
    name = one.target.partition("(")[0]
    schema, _, table = name.rpartition(".")
    database = server.databases.get(one.database)
    place = "main" if schema in ("", "public") else schema
    found = database.tables.columns(place, table) if database is not None and table else []
    return derived_text(one.operation, name or "pg_catalog.pg_class", [column[0] for column in found], _MARKS)


def report(server: PostgresServer, statements: Sequence[BulkStatements]) -> None:
    """Count statements of bulk traffic, size their connection pools, and log the slow ones."""
    server.activity.report([(one, text_of(server, one)) for one in statements], server.process.clock.now)
    for client, size in server.activity.pool_sizes().items():
        server.resize_pool(client, size)
    limit = milliseconds(server.settings["log_min_duration_statement"])
    if limit is None:
        return
    for one, text, count in server.activity.slow(limit / 1000):
        pool = pool_of(server.sessions.values(), one.client)
        for number in range(min(count, PER_REPORT)) if pool else ():
            log_duration(server, pool[number % len(pool)], text, slow_seconds(one, limit / 1000, number))


def executed(server: PostgresServer, session: Session, statement: str, seconds: float) -> None:
    """Count a statement of a session, and log it where it took long."""
    server.activity.add(session.database, statement, 1, seconds, seconds, server.process.clock.now)
    text = session.settings.get("log_min_duration_statement", server.settings["log_min_duration_statement"])
    limit = milliseconds(text)
    if limit is not None and seconds * 1000 >= limit:
        log_duration(server, session, statement, seconds)


def log_duration(server: PostgresServer, session: Session, text: str, seconds: float) -> None:
    kind = "execute <unnamed>" if session.client else "statement"
    server.log(f"duration: {seconds * 1000:.3f} ms  {kind}: {text}", pid=session.pid)


def milliseconds(setting: str) -> float | None:
    """Return the value of a setting of time; None where it is switched off (-1)."""
    found = re.match(r"\s*'?(-?\d+)\s*(ms|s|min)?", setting)
    if found is None or int(found.group(1)) < 0:
        return None
    return int(found.group(1)) * {"s": 1000.0, "min": 60000.0}.get(found.group(2) or "ms", 1.0)


def running_statements(server: PostgresServer) -> dict[int, Running]:
    """Return the statements of bulk traffic that run now, by the pid of their session."""
    server.settle()
    return server.activity.running_by_session(server.process.clock.now, server.sessions)
