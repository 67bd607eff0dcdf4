"""MySQL as an operator meets it through the client, and as an application's traffic asks it."""

from __future__ import annotations

from pathlib import Path

from srearena.cluster.embedded.machine.containers.container import Container, Mount
from srearena.cluster.embedded.machine.files.filesystem import Volume
from srearena.cluster.embedded.machine.files.streams import BytesFile, Capture
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.datastore import Login
from srearena.service.products.mysql.server import MysqlServer
from tests.containers.machine import Machine, Outcome

from .stores import folder, served, stopped
from .traffic_reports import slow_statements

GOLDEN = Path(__file__).parent / "golden"
TS = Login("ts", "Ts_123456", "ts")
ENV = {"MYSQL_ROOT_PASSWORD": "r", "MYSQL_DATABASE": "ts", "MYSQL_USER": "ts", "MYSQL_PASSWORD": "Ts_123456"}
INIT = """\
CREATE TABLE contacts (id VARCHAR(36) PRIMARY KEY, name VARCHAR(255), document_number VARCHAR(64));
INSERT INTO contacts VALUES ('a1', 'One', '111'), ('a2', 'Two', '222');
"""


def tickets(machine: Machine, data: Volume | None = None, *words: str) -> Container:
    mounts = [Mount("/docker-entrypoint-initdb.d", folder(init__sql=INIT))]
    if data is not None:
        mounts.append(Mount("/var/lib/mysql", data))
    args = ["mysqld", *words] if words else None
    container = machine.container("mysql:8.4", env=ENV, mounts=mounts, args=args)
    machine.clock.advance(20)
    return container


def server(machine: Machine) -> MysqlServer:
    found = served(machine, 3306)
    assert isinstance(found, MysqlServer)
    return found


def mysql(machine: Machine, container: Container, statement: str, *words: str) -> Outcome:
    login = words or ("-uroot",)
    return machine.run(container, ["env", "MYSQL_PWD=r", "mysql", *login, "ts", "-e", statement])


def aside(container: Container, statement: str) -> Process:
    words = ["env", "MYSQL_PWD=r", "mysql", "-uroot", "ts", "-e", statement]
    return container.exec(words, stdin=BytesFile(b""), stdout=Capture(), stderr=Capture())


def test_prints_what_the_real_one_prints(machine: Machine) -> None:
    """golden/mysql.txt is what the client and server of MariaDB 10.11 made of golden/mysql.sql."""
    container = machine.container("mariadb:11", env={"MARIADB_ROOT_PASSWORD": "x"})
    machine.clock.advance(20)
    script = (GOLDEN / "mysql.sql").read_bytes()
    printed = machine.run(container, ["sh", "-c", "mariadb -uroot -px 2>&1"], stdin=script).out
    assert printed == (GOLDEN / "mysql.txt").read_text()


def test_the_first_start_makes_what_it_was_asked_for_and_a_restart_keeps_it(machine: Machine) -> None:
    data = folder()
    container = tickets(machine, data)
    assert mysql(machine, container, "SELECT name FROM contacts ORDER BY id").out == "name\nOne\nTwo\n"
    mysql(machine, container, "DELETE FROM contacts WHERE id = 'a1'")
    machine.clock.advance(1)
    assert stopped(machine, container) == 0
    again = tickets(machine, data)
    assert mysql(machine, again, "SELECT name FROM contacts").out == "name\nTwo\n"
    assert server(machine).refuses(TS, "write", "contacts") is None


def test_logins_are_checked_and_said_as_the_client_says_them(machine: Machine) -> None:
    container = tickets(machine)
    wrong = machine.run(container, ["mysql", "-uroot", "-pwrong", "-e", "SELECT 1"])
    assert wrong.status == 1
    assert wrong.err.endswith("ERROR 1045 (28000): Access denied for user 'root'@'localhost' (using password: YES)\n")
    right = machine.run(
        container, ["mysql", "-h", "10.244.1.5", "-uts", "-pTs_123456", "-N", "-e", "SELECT DATABASE()"]
    )
    assert right.out == "NULL\n"
    refusal = server(machine).refuses(Login("ts", "old", "ts"), "connect", "")
    assert refusal is not None
    assert refusal.kind == "auth"
    mysql(machine, container, "ALTER USER 'ts'@'%' IDENTIFIED BY 'new'")
    rotated = server(machine).refuses(TS, "connect", "")
    assert rotated is not None
    assert rotated.kind == "auth"


def test_unknown_columns_and_tables_are_1054_and_1146(machine: Machine) -> None:
    container = tickets(machine)
    assert mysql(machine, container, "SELECT document_num FROM contacts").err == (
        "ERROR 1054 (42S22) at line 1: Unknown column 'document_num' in 'field list'\n"
    )
    assert mysql(machine, container, "SELECT * FROM nothing").err == (
        "ERROR 1146 (42S02) at line 1: Table 'ts.nothing' doesn't exist\n"
    )
    assert mysql(machine, container, "SELEC 1").err.startswith("ERROR 1064 (42000) at line 1: You have an error")
    store = server(machine)
    assert store.refuses(TS, "read", "contacts(document_number)") is None
    refusal = store.refuses(TS, "read", "contacts(id, document_num)")
    assert refusal is not None
    assert (refusal.kind, refusal.message) == ("missing", "Unknown column 'document_num' in 'field list'")


def test_connections_run_out_and_an_operator_raises_the_limit(machine: Machine) -> None:
    container = tickets(machine, None, "--max_connections=5")
    store = server(machine)
    assert store.attach("ts-order", TS, 5) is None
    refusal = store.attach("ts-travel", TS, 1)
    assert refusal is not None
    assert (refusal.kind, refusal.message) == ("busy", "Too many connections")
    assert "Threads_connected\t6" in mysql(machine, container, "SHOW STATUS LIKE 'Threads_connected'").out
    mysql(machine, container, "SET GLOBAL max_connections = 500")
    assert mysql(machine, container, "SHOW VARIABLES LIKE 'max_conn%'").out == (
        "Variable_name\tValue\nmax_connections\t500\n"
    )
    assert store.attach("ts-travel", TS, 1) is None


def test_a_locked_table_stops_readers_until_its_holder_is_killed(machine: Machine) -> None:
    container = tickets(machine)
    store = server(machine)
    store.attach("ts-contacts", TS, 1)
    holder = aside(container, "LOCK TABLES contacts WRITE; SELECT SLEEP(600)")
    machine.clock.advance(2)
    refusal = store.refuses(TS, "read", "contacts")
    assert refusal is not None
    assert refusal.kind == "locked"
    store.occupy("ts-contacts", 1, "SELECT * FROM contacts", "contacts")
    listed = mysql(machine, container, "SHOW PROCESSLIST").out
    assert "User sleep\tSELECT SLEEP(600)" in listed
    assert "Waiting for table metadata lock\tSELECT * FROM contacts" in listed
    number = next(line.split("\t")[0] for line in listed.splitlines() if "User sleep" in line)
    assert mysql(machine, container, f"KILL {number}").status == 0
    machine.clock.advance(1)
    assert holder.done.value == 1
    assert store.refuses(TS, "read", "contacts") is None


def test_privileges_are_granted_and_revoked(machine: Machine) -> None:
    container = tickets(machine)
    store = server(machine)
    mysql(machine, container, "REVOKE INSERT ON ts.* FROM 'ts'@'%'")
    refusal = store.refuses(TS, "write", "contacts")
    assert refusal is not None
    assert refusal.kind == "permission"
    assert store.refuses(TS, "read", "contacts") is None
    mysql(machine, container, "GRANT ALL PRIVILEGES ON ts.* TO 'ts'@'%'")
    assert store.refuses(TS, "write", "contacts") is None
    assert "GRANT ALL PRIVILEGES ON `ts`.* TO `ts`@`%`" in mysql(machine, container, "SHOW GRANTS FOR 'ts'@'%'").out


def test_slow_statements_of_traffic_are_listed_counted_and_logged(machine: Machine) -> None:
    container = tickets(machine)
    database = server(machine)
    database.attach("ts-contacts-0/1", TS, 1, "10.244.1.7")
    report = slow_statements("ts-contacts-0/1", database="ts", target="contacts")
    mysql(machine, container, "SET GLOBAL slow_query_log = ON; SET GLOBAL long_query_time = 1")
    database.report_statements([report])
    text = "SELECT id, name, document_number FROM contacts WHERE id = '1'"
    assert mysql(machine, container, "SHOW FULL PROCESSLIST").out.count(f"executing\t{text}") == 3
    assert "Threads_connected\t4" in mysql(machine, container, "SHOW STATUS LIKE 'Threads_connected'").out
    query = "SELECT DIGEST_TEXT, COUNT_STAR FROM performance_schema.events_statements_summary_by_digest"
    assert "SELECT id , name , document_number FROM contacts WHERE id = ?\t10" in mysql(machine, container, query).out
    assert "20.00 s" in mysql(machine, container, "SELECT query, total_latency FROM sys.statement_analysis LIMIT 1").out
    log = machine.run(container, ["sh", "-c", "cat /var/lib/mysql/*-slow.log"]).out
    assert log.count("# Query_time: ") == log.count(f"{text};") == 10
    assert "Slow_queries\t10" in mysql(machine, container, "SHOW GLOBAL STATUS LIKE 'Slow_queries'").out


def test_explain_and_engine_status(machine: Machine) -> None:
    container = tickets(machine)
    plan = mysql(machine, container, "EXPLAIN SELECT * FROM contacts WHERE id = 'a1'").out
    assert "SIMPLE\tcontacts\tNULL\tconst\tPRIMARY" in plan
    plan = mysql(machine, container, "EXPLAIN SELECT * FROM contacts WHERE name = 'One'").out
    assert "SIMPLE\tcontacts\tNULL\tALL\tNULL" in plan and "Using where" in plan
    assert "Table scan on contacts" in mysql(machine, container, "EXPLAIN FORMAT=TREE SELECT * FROM contacts").out
    assert "document_number" in mysql(machine, container, "EXPLAIN contacts").out
    status = mysql(machine, container, "SHOW ENGINE INNODB STATUS\\G").out
    assert "INNODB MONITOR OUTPUT" in status and "TRANSACTIONS" in status
    assert "PRIMARY\t1\tid" in mysql(machine, container, "SHOW INDEX FROM contacts").out


def test_waiting_for_a_table_lock_is_seen_with_its_holder(machine: Machine) -> None:
    container = tickets(machine)
    aside(container, "BEGIN; LOCK TABLES contacts WRITE; SELECT SLEEP(60)")
    machine.clock.advance(1)
    aside(container, "SELECT * FROM contacts")
    machine.clock.advance(5)
    query = "SELECT object_name, waiting_query, blocking_lock_type FROM sys.schema_table_lock_waits"
    assert "contacts\tSELECT * FROM contacts\tSHARED_NO_READ_WRITE" in mysql(machine, container, query).out
    query = "SELECT LOCK_STATUS FROM performance_schema.metadata_locks ORDER BY 1"
    assert mysql(machine, container, query).out == "LOCK_STATUS\nGRANTED\nPENDING\n"
    query = "SELECT trx_state FROM information_schema.INNODB_TRX"
    assert mysql(machine, container, query).out == "trx_state\nRUNNING\n"


def test_savepoints(machine: Machine) -> None:
    container = tickets(machine)
    script = "BEGIN; DELETE FROM contacts WHERE id = 'a1'; SAVEPOINT s; DELETE FROM contacts; ROLLBACK TO s; COMMIT"
    mysql(machine, container, script)
    assert mysql(machine, container, "SELECT name FROM contacts").out == "name\nTwo\n"
    assert "SAVEPOINT s does not exist" in mysql(machine, container, "ROLLBACK TO s").err
