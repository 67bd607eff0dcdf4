"""The tables of performance_schema, sys, mysql and information_schema that administrators query, filled on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any

from srearena.cluster.program_models.sql import Digest
from srearena.service.products.mysql.server import SYSTEM, MysqlServer, Session
from srearena.service.products.mysql.sessions import PROCESS_COLUMNS, process_rows, status_rows

Table = tuple[tuple[str, ...], Iterable[tuple[Any, ...]]]
PICOSECONDS = 10**12


def _digest_id(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _picoseconds(seconds: float) -> int:
    return int(seconds * PICOSECONDS)


def _latency(seconds: float) -> str:
    """A duration as format_pico_time prints it."""
    for unit, size in (("h", 3600.0), ("min", 60.0), ("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds * 1e9:.2f} ns"


def _digests(server: MysqlServer) -> list[Digest]:
    server.settle()
    return [digest for digest in server.activity.digests.values() if digest.calls >= 1]


def _statement_digests(server: MysqlServer, session: Session) -> Table:
    columns = (
        *("SCHEMA_NAME", "DIGEST", "DIGEST_TEXT", "COUNT_STAR", "SUM_TIMER_WAIT", "MIN_TIMER_WAIT", "AVG_TIMER_WAIT"),
        *("MAX_TIMER_WAIT", "SUM_LOCK_TIME", "SUM_ERRORS", "SUM_WARNINGS", "SUM_ROWS_AFFECTED", "SUM_ROWS_SENT"),
        *("SUM_ROWS_EXAMINED", "SUM_NO_INDEX_USED", "FIRST_SEEN", "LAST_SEEN", "QUANTILE_95", "QUANTILE_99"),
        "QUERY_SAMPLE_TEXT",
    )
    rows = []
    for digest in _digests(server):
        mean, calls = digest.seconds / digest.calls, int(digest.calls)
        reads = digest.text.upper().startswith("SELECT")
        rows.append(
            (
                *(digest.database or None, _digest_id(digest.text), digest.text, calls, _picoseconds(digest.seconds)),
                *(_picoseconds(digest.shortest), _picoseconds(mean), _picoseconds(digest.longest), calls * 10**6),
                *(digest.errors, 0, 0 if reads else calls, int(digest.rows) if reads else 0, int(digest.rows), 0),
                *(server.time_text(digest.first_seen), server.time_text(digest.last_seen)),
                *(_picoseconds(mean * 1.5), _picoseconds(digest.longest), digest.sample),
            )
        )
    return columns, rows


def _statement_analysis(server: MysqlServer, session: Session) -> Table:
    columns = (
        *("query", "db", "full_scan", "exec_count", "err_count", "warn_count", "total_latency", "max_latency"),
        *("avg_latency", "lock_latency", "rows_sent", "rows_sent_avg", "rows_examined", "first_seen", "last_seen"),
        "digest",
    )
    rows = [
        (
            *(_shortened(d.text), d.database or None, "", int(d.calls), d.errors, 0, _latency(d.seconds)),
            *(_latency(d.longest), _latency(d.seconds / d.calls), _latency(d.calls * 1e-6), int(d.rows), 1),
            *(int(d.rows), server.time_text(d.first_seen), server.time_text(d.last_seen), _digest_id(d.text)),
        )
        for d in sorted(_digests(server), key=lambda digest: -digest.seconds)
    ]
    return columns, rows


def _shortened(text: str) -> str:
    return text if len(text) <= 64 else f"{text[:30]} ... {text[-29:]}"


def _process_list(server: MysqlServer, session: Session) -> Table:
    return tuple(name.upper() for name in PROCESS_COLUMNS), process_rows(server, session, full=True)


def _threads(server: MysqlServer, session: Session) -> Table:
    columns = ("THREAD_ID", "NAME", "TYPE", *(f"PROCESSLIST_{name.upper()}" for name in PROCESS_COLUMNS))
    kinds = ("main", "innodb/io_ibuf_thread", "innodb/page_flush_coordinator_thread", "innodb/log_writer_thread")
    background = [
        (number, f"thread/{'sql/main' if kind == 'main' else kind}", "BACKGROUND", *([None] * 8))
        for number, kind in enumerate(kinds, 1)
    ]
    rows = process_rows(server, session, full=True)
    return columns, [*background, *((row[0] + 40, "thread/sql/one_connection", "FOREGROUND", *row) for row in rows)]


def _statements_now(server: MysqlServer, session: Session) -> Table:
    columns = ("THREAD_ID", "EVENT_ID", "EVENT_NAME", "TIMER_WAIT", "SQL_TEXT", "CURRENT_SCHEMA", "ROWS_EXAMINED")
    running = [row for row in process_rows(server, session, full=True) if row[7]]
    rows = [
        (row[0] + 40, 1, f"statement/sql/{row[7].split(None, 1)[0].lower()}", row[5] * PICOSECONDS, row[7], row[3], 0)
        for row in running
    ]
    return columns, rows


def _metadata_locks(server: MysqlServer, session: Session) -> Table:
    columns = (
        *("OBJECT_TYPE", "OBJECT_SCHEMA", "OBJECT_NAME", "LOCK_TYPE", "LOCK_DURATION", "LOCK_STATUS"),
        "OWNER_THREAD_ID",
    )
    rows = []
    for request in server.locks.requests:
        database, _, table = request.table.partition(".")
        status = "GRANTED" if request.granted else "PENDING"
        rows.append(
            ("TABLE", database, table, _lock_type(request.mode), "TRANSACTION", status, request.owner.number + 40)
        )
    return columns, rows


def _lock_type(mode: str) -> str:
    names = {"AccessShareLock": "SHARED_READ", "RowExclusiveLock": "SHARED_WRITE", "ShareLock": "SHARED_READ_ONLY"}
    return names.get(mode, "SHARED_NO_READ_WRITE")


def _lock_waits(server: MysqlServer, session: Session) -> Table:
    columns = (
        *("object_schema", "object_name", "waiting_thread_id", "waiting_pid", "waiting_account"),
        *("waiting_lock_type", "waiting_query", "waiting_query_secs", "blocking_thread_id", "blocking_pid"),
        *("blocking_account", "blocking_lock_type", "sql_kill_query_blocking_connection"),
        "sql_kill_blocking_connection",
    )
    now = server.process.clock.now
    rows = []
    for request in server.locks.requests:
        waiter = request.owner
        for blocker in [] if request.granted else server.locks.blockers(request):
            database, _, table = request.table.partition(".")
            mode = next(r.mode for r in server.locks.requests if r.owner is blocker and r.table == request.table)
            rows.append(
                (
                    *(database, table, waiter.number + 40, waiter.number, f"{waiter.user}@{waiter.host}"),
                    *(_lock_type(request.mode), waiter.query, int(now - waiter.since)),
                    *(blocker.number + 40, blocker.number, f"{blocker.user}@{blocker.host}", _lock_type(mode)),
                    *(f"KILL QUERY {blocker.number}", f"KILL {blocker.number}"),
                )
            )
    return columns, rows


def _transactions(server: MysqlServer, session: Session) -> Table:
    columns = (
        *("trx_id", "trx_state", "trx_started", "trx_requested_lock_id", "trx_wait_started", "trx_weight"),
        *("trx_mysql_thread_id", "trx_query", "trx_operation_state", "trx_tables_in_use", "trx_tables_locked"),
        *("trx_lock_structs", "trx_rows_locked", "trx_rows_modified", "trx_isolation_level"),
    )
    rows = []
    for other in server.sessions.values():
        if other.in_transaction:
            locked = sum(request.owner is other and request.granted for request in server.locks.requests)
            waits = other.waiting is not None and not other.waiting.granted
            rows.append(
                (
                    *(421000 + other.number, "LOCK WAIT" if waits else "RUNNING", server.time_text(other.since)),
                    *(None, server.time_text(other.since) if waits else None, locked, other.number),
                    *(other.query or None, None, locked, locked, locked, 0, int(other.before is not None)),
                    "REPEATABLE READ",
                )
            )
    return columns, rows


def _slow_log(server: MysqlServer, session: Session) -> Table:
    columns = ("start_time", "user_host", "query_time", "lock_time", "rows_sent", "rows_examined", "db", "sql_text")
    rows = [
        (
            server.time_text(entry.ended - entry.seconds),
            f"{entry.user}[{entry.user}] @  [{entry.host}]",
            f"{int(entry.seconds // 3600):02d}:{int(entry.seconds // 60 % 60):02d}:{entry.seconds % 60:09.6f}",
            *("00:00:00.000004", 1, 1, entry.database, entry.text),
        )
        for entry in server.slow_entries
    ]
    return columns, rows


def _variables(server: MysqlServer, session: Session) -> Table:
    return ("VARIABLE_NAME", "VARIABLE_VALUE"), sorted(server.variables.items())


def _status(server: MysqlServer, session: Session) -> Table:
    return ("VARIABLE_NAME", "VARIABLE_VALUE"), status_rows(server)


def _user_tables(server: MysqlServer) -> list[tuple[str, str]]:
    return [(d, t) for d in server.databases if d not in SYSTEM for t in server.tables.tables(d)]


def _tables(server: MysqlServer, session: Session) -> Table:
    columns = (
        *("TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE", "ENGINE", "TABLE_ROWS", "AVG_ROW_LENGTH"),
        *("DATA_LENGTH", "INDEX_LENGTH"),
    )
    rows = []
    for database, table in _user_tables(server):
        count = server.tables.count(database, table)
        # A page of InnoDB is 16 KiB; a short row takes about a hundred bytes of it.
        length = 16384 * (1 + count // 120)
        rows.append(("def", database, table, "BASE TABLE", "InnoDB", count, length // max(1, count), length, 0))
    return columns, rows


def _columns(server: MysqlServer, session: Session) -> Table:
    names = ("TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME", "ORDINAL_POSITION", "DATA_TYPE", "IS_NULLABLE", "COLUMN_KEY")
    rows = [
        (d, t, c[0], n, c[1].lower() or "text", "NO" if c[2] or c[4] else "YES", "PRI" if c[4] else "")
        for d, t in _user_tables(server)
        for n, c in enumerate(server.tables.columns(d, t), 1)
    ]
    return names, rows


def _statistics(server: MysqlServer, session: Session) -> Table:
    names = ("TABLE_SCHEMA", "TABLE_NAME", "NON_UNIQUE", "INDEX_NAME", "SEQ_IN_INDEX", "COLUMN_NAME", "CARDINALITY")
    rows = [
        (d, t, 0, "PRIMARY", n, c[0], server.tables.count(d, t))
        for d, t in _user_tables(server)
        for n, c in enumerate([c for c in server.tables.columns(d, t) if c[4]], 1)
    ]
    return names, rows


def _schemata(server: MysqlServer, session: Session) -> Table:
    own = [name for name in server.databases if name not in SYSTEM]
    rows = [("def", name, "utf8mb4", "utf8mb4_0900_ai_ci") for name in (*own, *SYSTEM)]
    return ("CATALOG_NAME", "SCHEMA_NAME", "DEFAULT_CHARACTER_SET_NAME", "DEFAULT_COLLATION_NAME"), rows


def _users(server: MysqlServer, session: Session) -> Table:
    rows = [(account.host, account.name, "caching_sha2_password", "N") for account in server.accounts]
    return ("Host", "User", "plugin", "account_locked"), rows


_NO_LOCKS: Table = (
    ("ENGINE", "ENGINE_LOCK_ID", "THREAD_ID", "OBJECT_SCHEMA", "OBJECT_NAME", "LOCK_TYPE", "LOCK_MODE", "LOCK_STATUS"),
    (),
)
_NO_WAITS: Table = (("ENGINE", "REQUESTING_THREAD_ID", "BLOCKING_THREAD_ID"), ())
_NO_LOCK_WAITS: Table = (("wait_started", "wait_age", "locked_table", "waiting_pid", "blocking_pid"), ())
Filler = Callable[[MysqlServer, Session], Table]
TABLES: dict[str, dict[str, Filler]] = {
    "information_schema": {
        "TABLES": _tables,
        "COLUMNS": _columns,
        "STATISTICS": _statistics,
        "SCHEMATA": _schemata,
        "PROCESSLIST": _process_list,
        "INNODB_TRX": _transactions,
    },
    "mysql": {"user": _users, "slow_log": _slow_log},
    "performance_schema": {
        "events_statements_summary_by_digest": _statement_digests,
        "events_statements_current": _statements_now,
        "processlist": _process_list,
        "threads": _threads,
        "metadata_locks": _metadata_locks,
        "data_locks": lambda server, session: _NO_LOCKS,
        "data_lock_waits": lambda server, session: _NO_WAITS,
        "global_status": _status,
        "global_variables": _variables,
    },
    "sys": {
        "statement_analysis": _statement_analysis,
        "processlist": _process_list,
        "session": _process_list,
        "schema_table_lock_waits": _lock_waits,
        "innodb_lock_waits": lambda server, session: _NO_LOCK_WAITS,
    },
}
"""Only tables are locked here, so that the lists of row locks are empty."""


def refresh(server: MysqlServer, session: Session, database: str, table: str) -> None:
    """Fill the system table that a statement reads; an unknown one stays unknown."""
    known = {**TABLES.get(database, {}), **server.own_tables.get(database, {})}
    name = next((name for name in known if name.lower() == table.lower()), None)
    if name is None:
        return
    server.tables.add_schema(database)
    columns, rows = known[name](server, session)
    server.tables.fill(database, name, columns, list(rows))
