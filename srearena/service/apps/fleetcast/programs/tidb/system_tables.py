"""TiDB's own tables of information_schema: slow statements, summaries of statements, and members of the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from srearena.service.products.mysql.sessions import PROCESS_COLUMNS, process_rows

if TYPE_CHECKING:
    from srearena.service.apps.fleetcast.programs.tidb.storage import TidbSql
    from srearena.service.products.mysql.server import Session

Table = tuple[Sequence[str], Iterable[tuple[Any, ...]]]


def _digest(text: str) -> str:
    return sha256(text.lower().encode()).hexdigest()


def _slow(server: TidbSql, session: Session) -> Table:
    server.settle()
    columns = (
        *("Time", "Txn_start_ts", "User", "Host", "Conn_ID", "Session_alias", "DB", "Query_time", "Process_time"),
        *(
            "Wait_time",
            "Parse_time",
            "Compile_time",
            "Digest",
            "Is_internal",
            "Succ",
            "Mem_max",
            "Result_rows",
            "Query",
        ),
    )
    rows = [
        (
            datetime.fromtimestamp(entry.ended, UTC).strftime("%Y-%m-%d %H:%M:%S.%f"),
            *(int(entry.ended * 1000) << 18, entry.user, entry.host, entry.session, "", entry.database),
            *(round(entry.seconds, 6), round(entry.seconds * 0.9, 6), 0.00002, 0.00005, 0.0003),
            *(_digest(entry.text), 0, 1, 32768, 1, f"{entry.text};"),
        )
        for entry in server.slow_entries
    ]
    return columns, rows


def _summary(server: TidbSql, session: Session) -> Table:
    server.settle()
    columns = (
        *("SUMMARY_BEGIN_TIME", "SUMMARY_END_TIME", "STMT_TYPE", "SCHEMA_NAME", "DIGEST", "DIGEST_TEXT", "EXEC_COUNT"),
        *("SUM_ERRORS", "SUM_LATENCY", "MAX_LATENCY", "MIN_LATENCY", "AVG_LATENCY", "FIRST_SEEN", "LAST_SEEN"),
        "QUERY_SAMPLE_TEXT",
    )
    now = server.process.clock.now
    begin = now - now % 1800  # tidb_stmt_summary_refresh_interval
    rows = []
    for digest in server.activity.digests.values():
        if digest.calls < 1:
            continue
        total, mean = int(digest.seconds * 1e9), int(digest.seconds / digest.calls * 1e9)
        text = digest.text.lower()
        rows.append(
            (
                *(server.time_text(begin), server.time_text(begin + 1800), text.split(None, 1)[0].capitalize()),
                *(digest.database, _digest(text), text, int(digest.calls), digest.errors, total),
                *(int(digest.longest * 1e9), int(digest.shortest * 1e9), mean),
                *(server.time_text(digest.first_seen), server.time_text(digest.last_seen), digest.sample),
            )
        )
    return columns, rows


def _members(server: TidbSql, session: Session) -> Table:
    columns = ("TYPE", "INSTANCE", "STATUS_ADDRESS", "VERSION", "GIT_HASH", "START_TIME", "UPTIME", "SERVER_ID")
    return columns, [
        (*row[:4], "None", server.time_text(server.process.started_at), _uptime(server), 0) for row in server.members
    ]


def _uptime(server: TidbSql) -> str:
    seconds = int(server.process.clock.now - server.process.started_at)
    return f"{seconds // 3600}h{seconds // 60 % 60}m{seconds % 60}s"


def _processes(server: TidbSql, session: Session) -> Table:
    rows = process_rows(server, session, full=True)
    name = server.process.container.host.hostname
    return ("INSTANCE", *(column.upper() for column in PROCESS_COLUMNS)), [(f"{name}:10080", *row) for row in rows]


def _transactions(server: TidbSql, session: Session) -> Table:
    columns = ("ID", "START_TIME", "CURRENT_SQL_DIGEST_TEXT", "STATE", "SESSION_ID", "USER", "DB")
    return columns, [
        (
            *(int(other.since * 1000) << 18, server.time_text(other.since), other.query or None),
            *("LockWaiting" if other.waiting is not None and not other.waiting.granted else "Idle", other.number),
            *(other.user, other.database),
        )
        for other in server.sessions.values()
        if other.in_transaction
    ]


def _waits(server: TidbSql, session: Session) -> Table:
    return ("KEY", "KEY_INFO", "TRX_ID", "CURRENT_HOLDING_TRX_ID", "SQL_DIGEST", "SQL_DIGEST_TEXT"), ()


def _stores(server: TidbSql, session: Session) -> Table:
    columns = ("STORE_ID", "ADDRESS", "STORE_STATE_NAME", "VERSION", "CAPACITY", "AVAILABLE", "UPTIME")
    return columns, [
        (number, row[1], "Up", row[3], "20GiB", "19GiB", _uptime(server))
        for number, row in enumerate((row for row in server.members if row[0] == "tikv"), 1)
    ]


OWN_TABLES: Mapping[str, Mapping[str, Any]] = {
    "information_schema": {
        "SLOW_QUERY": _slow,
        "CLUSTER_SLOW_QUERY": _slow,
        "STATEMENTS_SUMMARY": _summary,
        "CLUSTER_STATEMENTS_SUMMARY": _summary,
        "CLUSTER_INFO": _members,
        "CLUSTER_PROCESSLIST": _processes,
        "TIDB_TRX": _transactions,
        "DATA_LOCK_WAITS": _waits,
        "TIKV_STORE_STATUS": _stores,
    }
}
