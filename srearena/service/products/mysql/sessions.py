"""The process list and the status variables of a server."""

from __future__ import annotations

from typing import Any

from srearena.cluster.program_models.sql import Running
from srearena.service.products.mysql.server import MysqlServer, Session

PROCESS_COLUMNS = ("Id", "User", "Host", "db", "Command", "Time", "State", "Info")


def running_statements(server: MysqlServer) -> dict[int, Running]:
    """Return the statements of bulk traffic that run now, by the number of their session."""
    server.settle()
    return server.activity.running_by_session(server.process.clock.now, server.sessions)


def process_rows(server: MysqlServer, session: Session, *, full: bool = False) -> list[tuple[Any, ...]]:
    now = server.process.clock.now
    running = running_statements(server)
    rows: list[tuple[Any, ...]] = []
    for other in server.sessions.values():
        if other.user != session.user and not (session.account and session.account.superuser):
            continue
        command, since, query = other.command, other.since, other.query
        state = other.state or ("init" if other is session else "")
        statement = running.get(other.number)
        if statement is not None and command != "Query":
            command, since, query, state = "Query", now - statement.age, statement.text, "executing"
        database, _, table = other.target.partition("(")[0].rpartition(".")
        place = f"{database or other.database}.{table}"
        if other.target and any(o is not other for o in server.locks.waits(place, "AccessShareLock")):
            state = "Waiting for table metadata lock"
        host = other.host if other.host == "localhost" else f"{other.host}:{40000 + other.number}"
        info = (query if full else query[:100]) or None
        rows.append((other.number, other.user, host, other.database or None, command, int(now - since), state, info))
    return rows


def threads_running(server: MysqlServer) -> int:
    busy = {session.number for session in server.sessions.values() if session.command == "Query"}
    return len(busy | running_statements(server).keys())


def status_rows(server: MysqlServer) -> list[tuple[str, str]]:
    server.settle()
    waits = sum(not request.granted for request in server.locks.requests)
    return sorted(
        {
            "Aborted_clients": "0",
            "Connections": str(server.connected),
            "Innodb_row_lock_current_waits": "0",
            "Innodb_row_lock_waits": "0",
            "Max_used_connections": str(server.most),
            "Queries": str(server.questions),
            "Questions": str(server.questions),
            **{f"Com_{word}": str(statements) for word, statements in server.commands.items()},
            "Slow_queries": str(server.slow_statements),
            "Table_locks_waited": str(waits),
            "Threads_cached": "0",
            "Threads_connected": str(len(server.sessions)),
            "Threads_created": str(server.most),
            "Threads_running": str(max(1, threads_running(server))),
            "Uptime": str(int(server.process.clock.now - server.process.started_at)),
        }.items()
    )
