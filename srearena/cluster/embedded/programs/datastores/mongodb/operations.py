"""Operations of bulk traffic as mongod sees them: which run now, the slow ones in its log and in system.profile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from srearena.cluster.embedded.programs.datastores.connection_pools import pool_of
from srearena.cluster.embedded.programs.datastores.datastore import BulkStatements
from srearena.cluster.embedded.programs.datastores.statement_activity import Running, slow_seconds

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.mongodb.documents import Document
    from srearena.cluster.embedded.programs.datastores.mongodb.server import MongoServer, Session

PER_REPORT = 50
"""Operations logged of one kind in one report, at most."""
KEPT_PROFILE = 200
"""Documents that system.profile keeps: a megabyte, the default size of the capped collection, holds some hundred."""
_VERBS = {"find": "find", "insert": "insert", "update": "update", "upsert": "update", "delete": "delete"}


def command_of(server: MongoServer, operation: str, database: str, target: str) -> Document:
    """Return the command that a driver sends for a verb of the model."""
    verb = _VERBS.get(operation, "find")
    sample = next(iter(server.collection(database, target)), {})
    field = next((name for name in sample if name != "_id"), "_id")
    query = {field: sample.get(field, 1)}
    parts: dict[str, Document] = {
        "find": {"find": target, "filter": query},
        "insert": {"insert": target, "ordered": True},
        "update": {"update": target, "ordered": True},
        "delete": {"delete": target, "ordered": True},
    }
    return {**parts[verb], "$db": database}


def report(server: MongoServer, statements: Sequence[BulkStatements]) -> None:
    """Size the connection pools of clients by what they run at once, and log the slow operations."""
    named = [(one, f"{one.operation} {one.database}.{one.target}") for one in statements]
    server.activity.report(named, server.process.clock.now)
    for client, size in server.activity.pool_sizes().items():
        server.resize_pool(client, size)
    limit = server.slow_milliseconds / 1000
    for one, _, count in server.activity.slow(limit):
        pool = pool_of(server.sessions.values(), one.client)
        for number in range(min(count, PER_REPORT)) if pool else ():
            _log_slow(server, pool[number % len(pool)], one, slow_seconds(one, limit, number))


def _log_slow(server: MongoServer, session: Session, one: BulkStatements, seconds: float) -> None:
    command = command_of(server, one.operation, one.database, one.target)
    namespace = f"{one.database}.{one.target}"
    examined = server.number_of_kept(one.database, one.target)
    plan = plan_summary(server, one.database, one.target, command.get("filter") or {})
    milliseconds = int(seconds * 1000)
    facts: dict[str, Any] = {
        "type": "command",
        "ns": namespace,
        "command": {key: _plain(value) for key, value in command.items()},
        **({"planSummary": plan} if "find" in command else {}),
        "keysExamined": 0 if plan == "COLLSCAN" else 1,
        "docsExamined": examined if plan == "COLLSCAN" else 1,
        "nreturned": 1,
        "remote": session.remote,
        "protocol": "op_msg",
        "durationMillis": milliseconds,
    }
    server.journal.line(51803, "COMMAND", "Slow query", session.context, **facts)
    if server.profile_levels.get(one.database, 0):
        rows = server.make_collection(one.database, "system.profile")
        rows.append(
            {
                "op": {"find": "query"}.get(one.operation, one.operation),
                "ns": namespace,
                "command": command,
                "millis": milliseconds,
                "planSummary": plan,
                "ts": server.moment(),
                "client": session.remote,
            }
        )
        del rows[:-KEPT_PROFILE]


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | dict | list) else str(value)


def plan_summary(server: MongoServer, database: str, target: str, query: Document) -> str:
    """Return how a query finds its documents: by _id, by an index, or by reading all."""
    if not query:
        return "COLLSCAN"
    first = next(iter(query))
    if first == "_id":
        return "IDHACK"
    for index in server.contents.indexes.get(f"{database}.{target}", []):
        keys = index.get("key") or {}
        if next(iter(keys), "") == first:
            return "IXSCAN { " + ", ".join(f"{name}: {int(order)}" for name, order in keys.items()) + " }"
    return "COLLSCAN"


def running_operations(server: MongoServer) -> dict[int, Running]:
    """Return the operations of bulk traffic that run now, by the number of their connection."""
    server.settle()
    return server.activity.running_by_session(server.process.clock.now, server.sessions)
