"""The slow query log, and what the server learns of statements of bulk traffic.

MySQL counts statements above `long_query_time` always, and logs them where `slow_query_log` is on (`log_output`: to a
file, or to the table mysql.slow_log). TiDB logs those above `tidb_slow_log_threshold` always.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from srearena.cluster.program_models.datastores import BulkStatements, pool_of
from srearena.cluster.program_models.sql import derived_text, slow_seconds

if TYPE_CHECKING:
    from srearena.service.products.mysql.server import MysqlServer, Session

KEPT = 500
"""Slow statements kept for tables that show them. Chosen: about an hour of one a few seconds."""
PER_REPORT = 50
"""Entries written for one kind of statement in one report, at most; the counter counts all."""
MAX_FILE = 1024 * 1024
"""Bytes of the log that are kept. Chosen: some thousand statements."""
_MARKS = tuple(f"'{number}'" for number in range(1, 41))


@dataclass(frozen=True, slots=True)
class SlowStatement:
    ended: float
    user: str
    host: str
    session: int
    database: str
    seconds: float
    text: str


def text_of(server: MysqlServer, one: BulkStatements) -> str:
    """Return the text of a statement of bulk traffic."""
    if one.text:
        return one.text
    table = one.target.partition("(")[0]
    columns = [column[0] for column in server.tables.columns(one.database, table)] if table else []
    return derived_text(one.operation, table or "dual", columns, _MARKS)


def report(server: MysqlServer, statements: Sequence[BulkStatements]) -> None:
    """Count statements of bulk traffic in the digests, size their connection pools, and log the slow ones."""
    now = server.process.clock.now
    server.activity.report([(one, text_of(server, one)) for one in statements], now)
    for client, size in server.activity.pool_sizes().items():
        server.resize_pool(client, size)
    limit = threshold(server)
    for one, text, count in server.activity.slow(limit):
        server.slow_statements += count
        pool = pool_of(server.sessions.values(), one.client)
        for number in range(min(count, PER_REPORT)) if pool else ():
            session = pool[number % len(pool)]
            _keep(server, session, text, slow_seconds(one, limit, number), now)


def executed(server: MysqlServer, session: Session, statement: str, seconds: float) -> None:
    """Count a statement of a session, and log it where it was slow."""
    now = server.process.clock.now
    server.activity.add(session.database, statement, 1, seconds, seconds, now)
    if seconds > threshold(server, session):
        server.slow_statements += 1
        _keep(server, session, statement, seconds, now)


def threshold(server: MysqlServer, session: Session | None = None) -> float:
    """Return the seconds above which a statement is slow."""
    if server.product == "TiDB":
        return float(server.variables["tidb_slow_log_threshold"]) / 1000
    own = {} if session is None else session.variables
    try:
        return float(own.get("long_query_time", server.variables["long_query_time"]))
    except ValueError:
        return 10.0


def _keep(server: MysqlServer, session: Session, text: str, seconds: float, ended: float) -> None:
    entry = SlowStatement(ended, session.user, session.host, session.number, session.database, seconds, text)
    if server.product == "TiDB":
        _remember(server, entry)
        _append(server, entry)
        return
    if server.variables["slow_query_log"].upper() not in ("ON", "1"):
        return
    outputs = server.variables["log_output"].upper()
    if "TABLE" in outputs:
        _remember(server, entry)
    if "FILE" in outputs:
        _append(server, entry)


def _remember(server: MysqlServer, entry: SlowStatement) -> None:
    server.slow_entries.append(entry)
    del server.slow_entries[:-KEPT]


def _append(server: MysqlServer, entry: SlowStatement) -> None:
    files, path = server.process.files, server.variables["slow_query_log_file"]
    text = _tidb_text(entry) if server.product == "TiDB" else _mysql_text(entry)
    try:
        if not files.is_file(path) and server.product != "TiDB":
            head = f"/usr/sbin/{server.daemon}, Version: {server.version} ({server.variables['version_comment']}). "
            head += f"started with:\nTcp port: {server.port}  Unix socket: /var/run/mysqld/mysqld.sock\n"
            files.write_bytes(path, f"{head}Time                 Id Command    Argument\n".encode())
        before = files.read_bytes(path) if files.is_file(path) else b""
        files.write_bytes(path, before[-MAX_FILE:] + text.encode())
    except OSError as error:
        server.note(f"[MY-011071] [Server] Could not use {path} for logging (error {error.errno}).", "ERROR")


def _tidb_text(entry: SlowStatement) -> str:
    at = datetime.fromtimestamp(entry.ended, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000Z")
    return (
        f"# Time: {at}\n# Txn_start_ts: {int(entry.ended * 1000) << 18}\n"
        f"# User@Host: {entry.user}[{entry.user}] @ {entry.host} [{entry.host}]\n# Conn_ID: {entry.session}\n"
        f"# Query_time: {entry.seconds:.9f}\n# DB: {entry.database}\n# Is_internal: false\n# Succ: true\n"
        f"{entry.text};\n"
    )


def _mysql_text(entry: SlowStatement) -> str:
    at = datetime.fromtimestamp(entry.ended, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    where = "localhost []" if entry.host == "localhost" else f" [{entry.host}]"
    lines = [
        f"# Time: {at}",
        f"# User@Host: {entry.user}[{entry.user}] @ {where}  Id: {entry.session:5d}",
        f"# Query_time: {entry.seconds:.6f}  Lock_time: 0.000004 Rows_sent: 1  Rows_examined: 1",
        *([f"use {entry.database};"] if entry.database else []),
        f"SET timestamp={int(entry.ended - entry.seconds)};",
        f"{entry.text};",
    ]
    return "\n".join(lines) + "\n"
