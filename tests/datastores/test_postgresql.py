"""PostgreSQL as an operator meets it through psql, and as an application's traffic asks it."""

from __future__ import annotations

from pathlib import Path

from srearena.cluster.embedded.machine.containers.container import Container, Mount
from srearena.cluster.embedded.machine.files.filesystem import Volume
from srearena.cluster.embedded.machine.files.streams import BytesFile, Capture
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.datastore import Login, request_refusal
from srearena.cluster.embedded.programs.datastores.postgresql.server import PostgresServer
from tests.containers.machine import Machine, Outcome

from .stores import folder, served, stopped
from .traffic_reports import slow_statements

GOLDEN = Path(__file__).parent / "golden"
SHOP = Login("otelu", "otelp", "otel")
INIT = """\
CREATE USER otelu WITH PASSWORD 'otelp';
CREATE SCHEMA accounting;
GRANT USAGE ON SCHEMA accounting TO otelu;
CREATE TABLE accounting."order" (order_id TEXT PRIMARY KEY);
CREATE TABLE accounting.orderitem (item_cost BIGINT NOT NULL, quantity INTEGER, order_id TEXT NOT NULL,
  PRIMARY KEY (order_id, quantity), FOREIGN KEY (order_id) REFERENCES accounting."order"(order_id) ON DELETE CASCADE);
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA accounting TO otelu;
CREATE SCHEMA catalog;
GRANT USAGE ON SCHEMA catalog TO otelu;
CREATE TABLE catalog.products (id TEXT PRIMARY KEY, name TEXT, price_units BIGINT); -- ten of them
INSERT INTO catalog.products VALUES ('OLJCESPC7Z', 'National Park; Explorascope', 101), ('66V', 'Starsense', 349);
GRANT SELECT ON catalog.products TO otelu;
"""
ENV = {"POSTGRES_USER": "root", "POSTGRES_PASSWORD": "otel", "POSTGRES_DB": "otel"}


def shop(machine: Machine, data: Volume | None = None, init: str = INIT) -> Container:
    mounts = [Mount("/docker-entrypoint-initdb.d", folder(init__sql=init))]
    if data is not None:
        mounts.append(Mount("/var/lib/postgresql/data", data))
    container = machine.container("postgres:17.6", env=ENV, mounts=mounts)
    machine.clock.advance(6)
    return container


def server(machine: Machine) -> PostgresServer:
    found = served(machine, 5432)
    assert isinstance(found, PostgresServer)
    return found


def psql(machine: Machine, container: Container, command: str, *words: str, user: str = "root") -> Outcome:
    return machine.run(container, ["psql", "-U", user, "-d", "otel", *words, "-c", command])


def aside(container: Container, command: str) -> tuple[Process, Capture]:
    """psql in a second terminal."""
    errors = Capture()
    words = ["psql", "-U", "root", "-d", "otel", "-c", command]
    return container.exec(words, stdin=BytesFile(b""), stdout=Capture(), stderr=errors), errors


def test_prints_what_the_real_one_prints(machine: Machine) -> None:
    """golden/postgresql.txt is what psql and a server of PostgreSQL 15 made of golden/postgresql.sql."""
    container = machine.container("postgres:17.6", env={"POSTGRES_PASSWORD": "x"})
    machine.clock.advance(6)
    script = (GOLDEN / "postgresql.sql").read_bytes()
    printed = machine.run(container, ["sh", "-c", "psql -U postgres 2>&1"], stdin=script).out
    assert printed == (GOLDEN / "postgresql.txt").read_text()


def test_the_first_start_runs_the_scripts_and_a_restart_finds_what_was_written(machine: Machine) -> None:
    data = folder()
    container = shop(machine, data)
    assert "running /docker-entrypoint-initdb.d/init.sql" in container.log.text()
    assert psql(machine, container, "SELECT count(*) FROM catalog.products", "-tA").out == "2\n"
    psql(machine, container, "DELETE FROM catalog.products WHERE price_units > 200")
    machine.clock.advance(1)
    assert stopped(machine, container) == 0
    again = shop(machine, data)
    assert "Skipping initialization" in again.log.text()
    assert psql(machine, again, "SELECT name FROM catalog.products", "-tA").out == "National Park; Explorascope\n"
    assert server(machine).refuses(SHOP, "read", "catalog.products") is None


def test_a_mistake_in_a_script_ends_the_container(machine: Machine) -> None:
    container = shop(machine, init="CREATE TABLE a (id INT);\nINSERT INTO b VALUES (1);\n")
    assert container.done.value.code == 3
    assert 'ERROR:  relation "b" does not exist' in container.log.text()


def test_what_a_user_was_not_granted_is_denied(machine: Machine) -> None:
    container = shop(machine)
    assert psql(machine, container, "DELETE FROM catalog.products", user="otelu").err == (
        "ERROR:  permission denied for table products\n"
    )
    store = server(machine)
    refusal = store.refuses(SHOP, "write", "catalog.products")
    assert refusal is not None
    assert refusal.kind == "permission"
    assert store.refuses(SHOP, "write", "accounting.order") is None
    counted = psql(machine, container, "SELECT count(*) FROM accounting.order o WHERE o.order_id LIKE 'a%'", "-tA")
    assert counted.out == "0\n"
    missing = store.refuses(SHOP, "read", "catalog.nothing")
    assert missing is not None
    assert missing.kind == "missing"
    psql(machine, container, "REVOKE ALL ON accounting.orderitem FROM otelu")
    revoked = store.refuses(SHOP, "read", "accounting.orderitem")
    assert revoked is not None
    assert revoked.kind == "permission"


def test_a_rotated_password_refuses_the_old_one_but_leaves_open_sessions(machine: Machine) -> None:
    container = shop(machine)
    store = server(machine)
    assert store.attach("product-catalog-1", SHOP, 3) is None
    assert psql(machine, container, "ALTER USER otelu WITH PASSWORD 'rotated'").out == "ALTER ROLE\n"
    assert store.attached("product-catalog-1") == 3
    refusal = store.attach("product-catalog-2", SHOP, 1)
    assert refusal is not None
    assert refusal.kind == "auth"
    assert 'password authentication failed for user "otelu"' in refusal.message
    assert 'FATAL:  password authentication failed for user "otelu"' in container.log.text()
    killed = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'otelu'"
    assert psql(machine, container, killed, "-tA").out == "t\nt\nt\n"
    assert store.attached("product-catalog-1") == 0
    assert store.refuses(Login("otelu", "rotated", "otel"), "read", "catalog.products") is None


def test_over_the_network_the_password_counts_and_locally_nobody_asks(machine: Machine) -> None:
    container = shop(machine)
    outside = ["psql", "-h", "10.244.1.5", "-U", "otelu", "-d", "otel", "-tAc", "SELECT 1"]
    assert machine.run(container, outside).status == 2
    assert machine.run(container, ["env", "PGPASSWORD=wrong", *outside]).err == (
        'psql: error: connection to server at "10.244.1.5" (10.244.1.5), port 5432 failed: '
        'FATAL:  password authentication failed for user "otelu"\n'
    )
    assert machine.run(container, ["env", "PGPASSWORD=otelp", *outside]).out == "1\n"
    assert psql(machine, container, "SELECT current_user", "-tA", user="otelu").out == "otelu\n"


def test_a_held_lock_stops_readers_until_its_holder_is_ended(machine: Machine) -> None:
    container = shop(machine)
    store = server(machine)
    store.attach("product-catalog-1", SHOP, 2)
    holder, _ = aside(container, "BEGIN; LOCK TABLE catalog.products IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(3600)")
    machine.clock.advance(2)
    refusal = store.refuses(SHOP, "read", "catalog.products")
    assert refusal is not None
    assert refusal.kind == "locked"
    assert store.refuses(SHOP, "read", "accounting.order") is None
    reader, complaint = aside(container, "SELECT * FROM catalog.products")
    program = machine.idle().exec(["sleep", "1000"])
    refusal_of_program = request_refusal(store, program, SHOP, "read", "catalog.products")
    assert refusal_of_program == refusal
    machine.clock.advance(30)
    assert not reader.done.is_set
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'relation'"
    blocked = f"{waiting} AND cardinality(pg_blocking_pids(pid)) > 0"
    assert psql(machine, container, blocked, "-tA").out == "2\n"
    granted_locks = (
        "SELECT l.relation::regclass, l.mode FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.granted"
    )
    assert psql(machine, container, granted_locks, "-tA").out == "catalog.products|AccessExclusiveLock\n"
    assert psql(machine, container, "SET lock_timeout = '2s'; SELECT * FROM catalog.products").err == (
        "ERROR:  canceling statement due to lock timeout\n"
    )
    ending = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted"
    assert psql(machine, container, ending, "-tA").out == "t\n"
    machine.clock.advance(1)
    assert holder.done.is_set
    assert reader.done.value == 0
    assert complaint.text == ""
    assert request_refusal(store, program, SHOP, "read", "catalog.products") is None
    assert [session.state for session in store.sessions.values() if session.client] == ["idle"] * 3


def test_a_holder_that_commits_or_leaves_lets_go(machine: Machine) -> None:
    container = shop(machine)
    store = server(machine)
    aside(container, "BEGIN; LOCK TABLE catalog.products; SELECT pg_sleep(5); COMMIT")
    machine.clock.advance(1)
    assert store.refuses(SHOP, "read", "catalog.products") is not None
    machine.clock.advance(5)
    assert store.refuses(SHOP, "read", "catalog.products") is None
    assert [session.user for session in store.sessions.values()] == []


def test_connections_run_out(machine: Machine) -> None:
    container = machine.container("postgres:17.6", args=["-c", "max_connections=10"], env=ENV)
    machine.clock.advance(6)
    store = server(machine)
    psql(machine, container, "CREATE USER otelu PASSWORD 'otelp'")
    assert store.attach("a", SHOP, 7) is None
    refusal = store.attach("b", SHOP, 1)
    assert refusal is not None
    assert refusal.kind == "busy"
    assert "remaining connection slots are reserved" in refusal.message
    store.attach("a", SHOP, 1)
    assert store.attach("b", SHOP, 1) is None


def test_what_is_not_there_is_refused_as_the_real_ones_refuse_it(machine: Machine) -> None:
    container = shop(machine)
    copied = psql(machine, container, "COPY catalog.products FROM '/tmp/none.csv'").err
    assert copied.startswith('ERROR:  could not open file "/tmp/none.csv" for reading: No such file or directory')
    assert psql(machine, container, "\\nothing").err == "invalid command \\nothing\nTry \\? for help.\n"
    assert psql(machine, container, "FETCH 1 FROM c").err == 'ERROR:  cursor "c" does not exist\n'


def test_a_read_only_volume_refuses_writes_only(machine: Machine) -> None:
    data = folder()
    container = shop(machine, data)
    data.read_only = True
    store = server(machine)
    refusal = store.refuses(Login("root", "otel", "otel"), "write", "catalog.products")
    assert refusal is not None
    assert refusal.kind == "readonly"
    assert "Read-only file system" in psql(machine, container, "DELETE FROM catalog.products").err
    assert psql(machine, container, "SELECT count(*) FROM catalog.products", "-tA").out == "2\n"


def test_slow_statements_of_traffic_are_active_and_logged(machine: Machine) -> None:
    container = shop(machine)
    database = server(machine)
    database.attach("product-catalog-0/1", SHOP, 1, "10.244.1.7")
    database.report_statements([slow_statements("product-catalog-0/1", database="otel", target="catalog.products")])
    query = "SELECT usename, client_addr, query FROM pg_stat_activity WHERE state = 'active' AND usename = 'otelu'"
    row = "otelu|10.244.1.7|SELECT id, name, price_units FROM catalog.products WHERE id = $1\n"
    assert psql(machine, container, query, "-tA").out == row * 3
    age = "SELECT now() - query_start FROM pg_stat_activity WHERE usename = 'otelu'"
    assert all("00:00:00" <= line < "00:00:03" for line in psql(machine, container, age, "-tA").out.split())
    assert "duration" not in container.log.text()
    psql(machine, container, "ALTER SYSTEM SET log_min_duration_statement = '500ms'")
    psql(machine, container, "SELECT pg_reload_conf()")
    database.report_statements([slow_statements("product-catalog-0/1", database="otel", target="catalog.products")])
    assert (
        container.log.text().count(" ms  execute <unnamed>: SELECT id, name, price_units FROM catalog.products") == 10
    )
    database.report_statements([])
    assert psql(machine, container, query, "-tA").out == ""


def test_statement_statistics_need_the_library(machine: Machine) -> None:
    container = shop(machine)
    query = "SELECT query, calls FROM pg_stat_statements ORDER BY total_exec_time DESC LIMIT 1"
    assert 'relation "pg_stat_statements" does not exist' in psql(machine, container, query).err
    database = server(machine)
    database.settings["shared_preload_libraries"] = "pg_stat_statements"
    database.report_statements([slow_statements("a/1", database="otel", target="catalog.products")])
    expected = "SELECT id , name , price_units FROM catalog . products WHERE id = $ ?|10\n"
    assert psql(machine, container, query, "-tA").out == expected


def test_checkpoints_are_counted_where_the_version_has_them(machine: Machine) -> None:
    """Version 17 moved them from pg_stat_bgwriter to a view of their own."""
    container = shop(machine)
    assert psql(machine, container, "SELECT num_requested FROM pg_stat_checkpointer", "-tA").out == "0\n"
    refused = psql(machine, container, "SELECT checkpoints_timed FROM pg_stat_bgwriter").err
    assert 'column "checkpoints_timed" does not exist' in refused


def test_explain_shows_how_tables_are_read(machine: Machine) -> None:
    container = shop(machine)
    plan = psql(machine, container, "EXPLAIN SELECT * FROM catalog.products WHERE name = 'Starsense'").out
    assert "QUERY PLAN" in plan
    assert "Seq Scan on products  (cost=0.00..1.02 rows=2 width=96)" in plan
    assert "Filter: (name = 'Starsense')" in plan
    plan = psql(machine, container, "EXPLAIN ANALYZE SELECT count(*) FROM catalog.products").out
    assert "Aggregate" in plan and "actual time=" in plan and "Execution Time:" in plan
    assert 'relation "nothing" does not exist' in psql(machine, container, "EXPLAIN SELECT * FROM nothing").err


def test_savepoints_prepared_statements_and_copy(machine: Machine) -> None:
    container = shop(machine)
    script = (
        "BEGIN; DELETE FROM catalog.products WHERE id = '66V'; SAVEPOINT a; DELETE FROM catalog.products; "
        "ROLLBACK TO SAVEPOINT a; COMMIT; PREPARE p AS SELECT name FROM catalog.products WHERE id = $1; "
        "EXECUTE p('OLJCESPC7Z'); COPY catalog.products TO STDOUT WITH CSV HEADER;"
    )
    result = machine.run(container, ["psql", "-qtA", "-U", "root", "-d", "otel"], stdin=script.encode())
    assert result.out.splitlines() == [
        *("National Park; Explorascope", "id,name,price_units", "OLJCESPC7Z,National Park; Explorascope,101")
    ]
