"""SHOW ENGINE INNODB STATUS: InnoDB's report of transactions, files and buffers."""

from __future__ import annotations

from srearena.service.products.mysql.server import MysqlServer, Session

_RULE = "-" * 12


def _transaction(server: MysqlServer, session: Session) -> list[str]:
    now = server.process.clock.now
    waits = session.waiting is not None and not session.waiting.granted
    head = f"---TRANSACTION {421000 + session.number}, ACTIVE {int(now - session.since)} sec"
    locks = sum(request.owner is session and request.granted for request in server.locks.requests)
    lines = [head, f"mysql tables in use {locks}, locked {locks}"]
    if waits:
        lines.append("LOCK WAIT 2 lock struct(s), heap size 1128, 0 row lock(s)")
    where = session.host if session.host == "localhost" else f"{session.host} {session.host}"
    lines.append(
        f"MySQL thread id {session.number}, OS thread handle {140000000000000 + session.number}, query id "
        f"{server.questions} {where} {session.user} {session.state}".rstrip()
    )
    return [*lines, *([session.query] if session.query else [])]


def engine_status(server: MysqlServer) -> str:
    server.settle()
    open_transactions = [session for session in server.sessions.values() if session.in_transaction]
    uptime = max(1.0, server.process.clock.now - server.process.started_at)
    pages = int(server.variables["innodb_buffer_pool_size"]) // 16384
    inserts, updates, deletes, reads = (server.commands[w] for w in ("insert", "update", "delete", "select"))
    sequence = 19_000_000 + server.changes * 320
    lines = [
        "",
        "=====================================",
        f"{server.time_text()} INNODB MONITOR OUTPUT",
        "=====================================",
        f"Per second averages calculated from the last {int(min(uptime, 60))} seconds",
        *(_RULE, "TRANSACTIONS", _RULE),
        f"Trx id counter {421000 + server.changes}",
        "Purge done for trx's n:o < 420999 undo n:o < 0 state: running but idle",
        "History list length 0",
        "LIST OF TRANSACTIONS FOR EACH SESSION:",
        *(line for session in open_transactions for line in _transaction(server, session)),
        *("---", "LOG", "---"),
        f"Log sequence number          {sequence}",
        f"Log flushed up to            {sequence}",
        f"Pages flushed up to          {sequence}",
        f"Last checkpoint at           {sequence}",
        *("----------------------", "BUFFER POOL AND MEMORY", "----------------------"),
        f"Buffer pool size   {pages - 1}",
        f"Free buffers       {pages - 1060}",
        "Database pages     1059",
        "Modified db pages  0",
        *("--------------", "ROW OPERATIONS", "--------------"),
        "0 queries inside InnoDB, 0 queries in queue",
        "0 read views open inside InnoDB",
        f"Number of rows inserted {inserts}, updated {updates}, deleted {deletes}, read {reads}",
        f"{inserts / uptime:.2f} inserts/s, {updates / uptime:.2f} updates/s, {deletes / uptime:.2f} deletes/s, "
        f"{reads / uptime:.2f} reads/s",
        *("----------------------------", "END OF INNODB MONITOR OUTPUT", "============================"),
        "",
    ]
    return "\n".join(lines)
