"""The system catalogues and views that operators query, computed when a statement names one, and its functions."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from srearena.cluster.embedded.programs.datastores.postgresql.roles import SCHEMA_PRIVILEGES, TABLE_PRIVILEGES
from srearena.cluster.embedded.programs.datastores.postgresql.traffic_statements import running_statements
from srearena.cluster.embedded.programs.datastores.sql.engine import Tables

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.postgresql.server import Database, PostgresServer, Session

COMPUTED = ("pg_catalog", "information_schema")
_ACTIVITY = (
    *("datid", "datname", "pid", "usesysid", "usename", "application_name", "client_addr", "client_port"),
    *("backend_start", "xact_start", "query_start", "state_change", "wait_event_type", "wait_event", "state"),
    *("backend_xid", "query", "backend_type"),
)
_LOCKS = (
    *("locktype", "database", "relation", "page", "tuple", "virtualxid", "transactionid", "virtualtransaction"),
    *("pid", "mode", "granted", "fastpath", "waitstart"),
)
BOOLEANS = frozenset(
    {"granted", "fastpath", "rolsuper", "rolcanlogin", "rolcreatedb", "rolcreaterole", "usesuper", "hasindexes"}
    | {"pg_terminate_backend", "pg_cancel_backend", "pg_reload_conf", "is_blocked_by", "exists", "has_table_privilege"}
)
"""Columns that print t and f."""
COUNTERS = ("idx_scan", "idx_tup_fetch", "n_tup_ins", "n_tup_upd", "n_tup_del")
NAMES = frozenset(
    {"pg_stat_activity", "pg_locks", "pg_roles", "pg_user", "pg_authid", "pg_database", "pg_tables", "pg_class"}
    | {"pg_namespace", "pg_settings", "pg_stat_database", "pg_stat_user_tables", "pg_shadow", "tables", "columns"}
    | {
        "schemata",
        "pg_indexes",
        "pg_stat_statements",
        "pg_stat_bgwriter",
        "pg_stat_checkpointer",
        "pg_stat_replication",
        "pg_stat_user_indexes",
    }
    | {"pg_statio_user_tables", "pg_extension", "pg_stat_all_tables", "pg_stat_wal", "pg_stat_archiver", "pg_index"}
)


def oid_of(database: Database, schema: str, table: str) -> int:
    """A number for a table that stays as long as the table does."""
    return 16384 + sum((index + 7) * ord(letter) for index, letter in enumerate(f"{schema}.{table}")) % 40000


def places(database: Database) -> list[tuple[str, str]]:
    """(schema, table) of all user tables, by their PostgreSQL names."""
    found: list[tuple[str, str]] = []
    for schema in database.tables.schemas:
        if schema not in COMPUTED:
            found += [("public" if schema == "main" else schema, table) for table in database.tables.tables(schema)]
    return sorted(found)


def blockers_of(server: PostgresServer, session: Session) -> list[int]:
    if session.waiting is not None and not session.waiting.granted:
        return [other.pid for other in server.locks.blockers(session.waiting)]
    if session.target and session.state == "active":
        schema, _, table = session.target.rpartition(".")
        holders = server.locks.waits(f"{session.database}/{schema or 'public'}.{table}", "AccessShareLock")
        return list(dict.fromkeys(other.pid for other in holders if other is not session))
    return []


def _activity(server: PostgresServer) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    now, running = server.process.clock.now, running_statements(server)
    for session in server.sessions.values():
        blocked = bool(blockers_of(server, session))
        kind, event = (
            ("Lock", "relation")
            if blocked
            else ("Timeout", "PgSleep")
            if session.sleeping
            else ("Client", "ClientRead")
        )
        state, query, query_at = session.state, session.query, session.query_at
        statement = running.get(session.pid)
        if statement is not None and state != "active":
            state, query, query_at = "active", statement.text, now - statement.age
        if state == "active" and not blocked and not session.sleeping:
            kind, event = None, None  # type: ignore[assignment]
        if state == "idle" and session.transaction_at is not None:
            state = "idle in transaction (aborted)" if session.failed else "idle in transaction"
        rows.append(
            (
                *(
                    16384,
                    session.database,
                    session.pid,
                    10,
                    session.user,
                    session.application,
                    session.address or None,
                    -1,
                ),
                server.time_text(session.started),
                _began(server, session, state, query_at),
                server.time_text(query_at) if query_at else None,
                server.time_text(query_at) if query_at else server.time_text(session.started),
                *(kind, event, state, None, query, "client backend"),
            )
        )
    for number, (name, event) in enumerate(
        (
            ("checkpointer", "CheckpointerMain"),
            ("background writer", "BgwriterHibernate"),
            ("walwriter", "WalWriterMain"),
        )
    ):
        started = server.time_text(server.process.started_at)
        row: dict[str, Any] = dict.fromkeys(_ACTIVITY)
        row |= {"pid": server.process.pid + 26 + number, "application_name": "", "backend_start": started, "query": ""}
        row |= {"wait_event_type": "Activity", "wait_event": event, "backend_type": name}
        rows.append(tuple(row.values()))
    return rows


def _began(server: PostgresServer, session: Session, state: str, query_at: float) -> str | None:
    """When the transaction began; a statement outside of one is one."""
    if session.transaction_at is not None:
        return server.time_text(session.transaction_at)
    return server.time_text(query_at) if state == "active" and query_at else None


def indexes(database: Database) -> list[tuple[str, str, str, bool, list[str]]]:
    """(schema, table, index, unique, columns) of all indexes."""
    found: list[tuple[str, str, str, bool, list[str]]] = []
    for schema, table in places(database):
        keys = [column[0] for column in database.tables.columns(_place(schema), table) if column[4]]
        if keys:
            found.append((schema, table, f"{table}_pkey", True, keys))
        found += [(schema, table, *index) for index in database.tables.indexes(_place(schema), table)]
    return found


def _statistics(server: PostgresServer, database: Database) -> None:
    """Fill the statistics views."""
    tables, found = database.tables, places(database)
    fill = tables.fill
    index_rows = indexes(database)
    listed = [
        (
            s,
            t,
            name,
            None,
            f"CREATE {'UNIQUE ' if unique else ''}INDEX {name} ON {s}.{t} USING btree ({', '.join(parts)})",
        )
        for s, t, name, unique, parts in index_rows
    ]
    fill("pg_catalog", "pg_indexes", ("schemaname", "tablename", "indexname", "tablespace", "indexdef"), listed)
    counts = database.table_counts
    scans = [
        (s, t, name, counts.get(f"{s}.{t}", {}).get("idx_scan", 0) if name.endswith("_pkey") else 0)
        for s, t, name, *_ in index_rows
    ]
    fill("pg_catalog", "pg_stat_user_indexes", ("schemaname", "relname", "indexrelname", "idx_scan"), scans)
    blocks = [(s, t, 1, sum(counts.get(f"{s}.{t}", {}).values())) for s, t in found]
    fill("pg_catalog", "pg_statio_user_tables", ("schemaname", "relname", "heap_blks_read", "heap_blks_hit"), blocks)
    uptime = server.process.clock.now - server.process.started_at
    checkpoints = int(uptime // 300)  # checkpoint_timeout
    if int(server.version.partition(".")[0]) >= 17:
        written = ("num_timed", "num_requested", "buffers_written")
        fill("pg_catalog", "pg_stat_checkpointer", written, [(checkpoints, 0, checkpoints * 40)])
        cleaned = ("buffers_clean", "maxwritten_clean", "buffers_alloc")
        fill("pg_catalog", "pg_stat_bgwriter", cleaned, [(0, 0, 12)])
    else:
        columns = ("checkpoints_timed", "checkpoints_req", "buffers_checkpoint", "buffers_clean", "buffers_backend")
        fill("pg_catalog", "pg_stat_bgwriter", columns, [(checkpoints, 0, checkpoints * 40, 0, 12)])
    fill("pg_catalog", "pg_stat_replication", ("pid", "usename", "client_addr", "state", "replay_lsn"), [])
    fill("pg_catalog", "pg_extension", ("oid", "extname", "extversion"), [(13569, "plpgsql", "1.0")])
    if "pg_stat_statements" in server.settings["shared_preload_libraries"]:
        names = ("userid", "dbid", "queryid", "query", "calls", "total_exec_time", "min_exec_time", "max_exec_time")
        rows = [
            (
                *(10, 16384, _query_id(d.text), d.text, int(d.calls), d.seconds * 1e3, d.shortest * 1e3),
                *(d.longest * 1e3, d.seconds / d.calls * 1e3, int(d.rows)),
            )
            for d in server.activity.digests.values()
            if d.calls >= 1
        ]
        fill("pg_catalog", "pg_stat_statements", (*names, "mean_exec_time", "rows"), rows)


def _query_id(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True)


def _locks(server: PostgresServer, database: Database) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []

    def add(session: Session, table: str, mode: str, granted: bool) -> None:
        _base, _, place = table.partition("/")
        schema, _, name = place.partition(".")
        oid = oid_of(database, schema, name)
        since = None if granted else server.time_text(session.query_at)
        virtual = f"{session.pid % 100}/{session.pid}"
        rows.append(
            ("relation", 16384, oid, None, None, None, None, virtual, session.pid, mode, int(granted), 0, since)
        )

    for request in server.locks.requests:
        add(request.owner, request.table, request.mode, request.granted)
    for session in server.sessions.values():
        if session.client and blockers_of(server, session):
            schema, _, table = session.target.rpartition(".")
            add(session, f"{session.database}/{schema or 'public'}.{table}", "AccessShareLock", False)
    return rows


def refresh(server: PostgresServer, database: Database) -> None:
    """Fill the catalogues with the present state."""
    tables = database.tables
    owners = database.privileges.owners
    tables.fill("pg_catalog", "pg_stat_activity", _ACTIVITY, _activity(server))
    tables.fill("pg_catalog", "pg_locks", _LOCKS, _locks(server, database))
    roles = [
        (10 + number, r.name, int(r.superuser), int(r.login), int(r.create_database), int(r.create_role), r.limit)
        for number, r in enumerate(server.roles.values())
    ]
    columns = ("oid", "rolname", "rolsuper", "rolcanlogin", "rolcreatedb", "rolcreaterole", "rolconnlimit")
    tables.fill("pg_catalog", "pg_roles", columns, roles)
    hidden = [(*row, "SCRAM-SHA-256$4096:...") for row in roles]
    tables.fill("pg_catalog", "pg_authid", (*columns, "rolpassword"), hidden)
    users = [(row[1], row[0], row[2], "********") for row in roles if row[3]]
    tables.fill("pg_catalog", "pg_user", ("usename", "usesysid", "usesuper", "passwd"), users)
    tables.fill("pg_catalog", "pg_shadow", ("usename", "usesysid", "usesuper", "passwd"), users)
    bases = [(16384 + n, name, 10) for n, name in enumerate(server.databases)]
    tables.fill("pg_catalog", "pg_database", ("oid", "datname", "datdba"), bases)
    server.settle()
    counts = [
        (
            *(
                name,
                sum(s.database == name for s in server.sessions.values()),
                found.commits,
                0,
                120,
                found.commits * 4,
            ),
            *(sum(c.get(kind, 0) for c in found.table_counts.values()) for kind in COUNTERS[1:]),
            *(0, 0, 0),
        )
        for name, found in server.databases.items()
    ]
    heads = ("datname", "numbackends", "xact_commit", "xact_rollback", "blks_read", "blks_hit")
    rows_of = ("tup_fetched", "tup_inserted", "tup_updated", "tup_deleted")
    tables.fill("pg_catalog", "pg_stat_database", (*heads, *rows_of, "conflicts", "temp_files", "deadlocks"), counts)
    _statistics(server, database)
    found = places(database)
    listed = [(schema, table, owners.get(f"{schema}.{table}", database.owner)) for schema, table in found]
    tables.fill("pg_catalog", "pg_tables", ("schemaname", "tablename", "tableowner"), listed)
    classes = [(oid_of(database, s, t), t, oid_of(database, s, ""), "r", tables.count(_place(s), t)) for s, t in found]
    tables.fill("pg_catalog", "pg_class", ("oid", "relname", "relnamespace", "relkind", "reltuples"), classes)
    schemas = sorted({"public", *(s for s in tables.schemas if s not in ("main", *COMPUTED))})
    spaces = [(oid_of(database, s, ""), s) for s in (*schemas, *COMPUTED)]
    tables.fill("pg_catalog", "pg_namespace", ("oid", "nspname"), spaces)
    tables.fill("pg_catalog", "pg_settings", ("name", "setting"), sorted(server.settings.items()))
    statistics = [
        (
            s,
            t,
            *(database.table_counts.get(f"{s}.{t}", {}).get(counter, 0) for counter in COUNTERS),
            *(tables.count(_place(s), t), 0, 1, tables.count(_place(s), t), None),
        )
        for s, t in found
    ]
    shown_counters = (
        "schemaname",
        "relname",
        *COUNTERS,
        "n_live_tup",
        "n_dead_tup",
        "seq_scan",
        "seq_tup_read",
        "last_autovacuum",
    )
    tables.fill("pg_catalog", "pg_stat_user_tables", shown_counters, statistics)
    tables.fill("pg_catalog", "pg_stat_all_tables", shown_counters, statistics)
    shown = [(database.name, s, t, "BASE TABLE") for s, t in found]
    tables.fill("information_schema", "tables", ("table_catalog", "table_schema", "table_name", "table_type"), shown)
    parts = [
        (database.name, s, t, name, number, kind.lower())
        for s, t in found
        for number, (name, kind, *_) in enumerate(tables.columns(_place(s), t), 1)
    ]
    names = ("table_catalog", "table_schema", "table_name", "column_name", "ordinal_position", "data_type")
    tables.fill("information_schema", "columns", names, parts)
    tables.fill("information_schema", "schemata", ("schema_name",), [(s,) for s in schemas])


def _place(schema: str) -> str:
    return "main" if schema == "public" else schema


def define_functions(server: PostgresServer, database: Database, session: Session) -> None:
    """Functions answer for the session that asks."""
    tables: Tables = database.tables

    def session_of(pid: Any) -> Session | None:
        return server.sessions.get(int(pid)) if pid is not None else None

    def blocking(pid: Any) -> str:
        found = session_of(pid)
        return "{" + ",".join(str(p) for p in (blockers_of(server, found) if found else [])) + "}"

    def is_blocked_by(pid: Any, other: Any) -> int:
        found = session_of(pid)
        return int(found is not None and other in blockers_of(server, found))

    def terminate(pid: Any) -> int:
        return int(server.terminate(int(pid)))

    def cancel(pid: Any) -> int:
        found = session_of(pid)
        if found is None:
            return 0
        found.cancelled = True
        server.moved.notify()
        return 1

    def regclass(oid: Any) -> Any:
        for schema, table in places(database):
            if oid == oid_of(database, schema, table):
                return table if schema == "public" else f"{schema}.{table}"
        return oid

    def size(name: Any) -> int:
        schema, _, table = str(name).rpartition(".")
        return 8192 * (1 + tables.count(_place(schema or "public"), table) // 60)

    def may(user: Any, thing: Any, privilege: Any) -> int:
        role = server.roles.get(str(user))
        kinds = TABLE_PRIVILEGES | SCHEMA_PRIVILEGES
        wanted = str(privilege).upper()
        if role is None or wanted not in kinds:
            return 0
        name = str(thing) if "." in str(thing) else f"public.{thing}"
        return int(role.superuser or database.privileges.allows(server.names_of(role.name), name, wanted))

    for name, arguments, body in (
        ("pg_backend_pid", 0, lambda: session.pid),
        ("current_user", 0, lambda: session.user),
        ("session_user", 0, lambda: session.user),
        ("current_database", 0, lambda: session.database),
        ("current_schema", 0, lambda: "public"),
        (
            "version",
            0,
            lambda: f"PostgreSQL {server.version} (Debian {server.version}-1.pgdg13+1) on x86_64-pc-linux-gnu",
        ),
        ("inet_server_port", 0, lambda: server.port),
        ("pg_blocking_pids", 1, blocking),
        ("is_blocked_by", 2, is_blocked_by),
        ("cardinality", 1, lambda items: len([i for i in str(items or "{}").strip("{}").split(",") if i])),
        ("pg_terminate_backend", 1, terminate),
        ("pg_cancel_backend", 1, cancel),
        ("pg_reload_conf", 0, lambda: 1),
        ("pg_is_in_recovery", 0, lambda: 0),
        ("pg_postmaster_start_time", 0, lambda: server.time_text(server.process.started_at)),
        ("regclass", 1, regclass),
        ("elapsed", 1, lambda text: _elapsed(server, text)),
        ("age", 1, lambda text: _elapsed(server, text)),
        ("ago", 1, lambda text: server.time_text(server.process.clock.now - _seconds(str(text)))),
        ("interval", 1, lambda text: _clock_text(_seconds(str(text)))),
        ("pg_relation_size", 1, size),
        ("pg_total_relation_size", 1, size),
        ("pg_database_size", 1, lambda name: 7 * 1024 * 1024 + 16 * 1024),
        ("pg_size_pretty", 1, lambda number: f"{int(number) // 1024} kB"),
        ("has_table_privilege", 3, may),
        ("current_setting", 1, lambda name: server.settings.get(str(name), session.settings.get(str(name)))),
        ("concat_ws", -1, lambda glue, *items: str(glue).join(str(item) for item in items if item is not None)),
        ("left_", 2, lambda text, size: None if text is None else str(text)[: int(size)]),
        ("right_", 2, lambda text, size: None if text is None else str(text)[-int(size) :]),
        ("gen_random_uuid", 0, lambda: _uuid(server)),
    ):
        tables.function(name, arguments, body)


def _uuid(server: PostgresServer) -> str:
    text = f"{server.process.container.host.random.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"


def _elapsed(server: PostgresServer, text: Any) -> str | None:
    if text is None:
        return None
    try:
        then = datetime.fromisoformat(str(text).replace("+00", "+00:00")).astimezone(UTC).timestamp()
    except ValueError:
        return None
    return _clock_text(max(0.0, server.process.clock.now - then))


def _clock_text(seconds: float) -> str:
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    return f"{int(hours):02d}:{int(minutes):02d}:{rest:09.6f}"


def _seconds(text: str) -> float:
    units = {"second": 1, "sec": 1, "s": 1, "minute": 60, "min": 60, "hour": 3600, "day": 86400}
    words = text.split()
    total = 0.0
    for number, unit in zip(words[::2], words[1::2], strict=False):
        total += float(number) * units.get(unit.rstrip("s"), 1)
    return total
