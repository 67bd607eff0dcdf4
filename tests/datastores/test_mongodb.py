"""MongoDB as an operator meets it through exec, and as an application's traffic asks it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from srearena.cluster.embedded.machine.containers.container import Container, Mount
from srearena.cluster.embedded.machine.files.filesystem import Volume
from srearena.cluster.embedded.machine.files.inodes import Space
from srearena.cluster.embedded.programs.datastores.datastore import Datastore, Login
from srearena.cluster.embedded.programs.datastores.mongodb.server import MongoServer
from tests.containers.machine import Machine, Outcome

from .stores import folder, served, stopped
from .traffic_reports import slow_statements

ADMIN = Login("admin", "admin", "geo-db", "admin")
SCRIPT = """\
#!/bin/bash
ADMIN_USER="admin"
until mongo --quiet --eval "print('up')"; do sleep 1; done
mongo <<EOF
use admin
db.createUser({
  user: '$ADMIN_USER', pwd: 'admin',
  roles: [{role: 'userAdminAnyDatabase', db: 'admin'}, {role: 'readWrite', db: 'geo-db'}]
})
db.createUser({user: 'root', pwd: 'root', roles: [{role: 'root', db: 'admin'}]})
EOF
"""


def hotel(machine: Machine, data: Volume, image: str = "mongo:4.4.6") -> Container:
    """A database of Hotel Reservation: authentication on, its users made by a script."""
    scripts = Mount("/docker-entrypoint-initdb.d", folder(init__sh=SCRIPT))
    container = machine.container(image, args=["--auth"], mounts=[Mount("/data/db", data), scripts])
    machine.clock.advance(10)
    return container


def as_admin(machine: Machine, container: Container, script: str, *, database: str = "admin") -> Outcome:
    login = ["-u", "admin", "-p", "admin", "--authenticationDatabase", "admin"]
    return machine.run(container, ["mongo", database, *login, "--quiet", "--eval", script])


def server(machine: Machine) -> Datastore:
    found = served(machine, 27017)
    assert isinstance(found, Datastore)
    return found


def lines(container: Container) -> list[dict[str, Any]]:
    return [json.loads(line) for line in container.log.text().splitlines() if line.startswith("{")]


def test_scripts_make_the_users_on_an_empty_directory_and_never_again(machine: Machine) -> None:
    data = folder()
    container = hotel(machine, data)
    assert "running /docker-entrypoint-initdb.d/init.sh" in container.log.text()
    users = json.loads(as_admin(machine, container, "JSON.stringify(db.getUsers())").out)
    assert [user["user"] for user in users] == ["admin", "root"]
    assert as_admin(machine, container, "db.dropUser('root')").out == "true\n"
    machine.clock.advance(1)
    assert stopped(machine, container) == 0
    again = hotel(machine, data)
    assert "running /docker-entrypoint-initdb.d" not in again.log.text()
    assert as_admin(machine, again, "db.getUser('root')").out == "null\n"


def test_a_revoked_role_forbids_and_a_granted_one_allows_again(machine: Machine) -> None:
    container = hotel(machine, folder())
    store = server(machine)
    assert store.refuses(ADMIN, "connect", "") is None
    assert store.refuses(ADMIN, "read", "geo") is None
    before = store.epoch
    as_admin(machine, container, "db.revokeRolesFromUser('admin', [{role: 'readWrite', db: 'geo-db'}])")
    assert store.epoch > before
    refusal = store.refuses(ADMIN, "read", "geo")
    assert refusal is not None
    assert refusal.kind == "permission"
    assert refusal.message == 'not authorized on geo-db to execute command { find: "geo", $db: "geo-db" }'
    outcome = as_admin(machine, container, "db.geo.find()", database="geo-db")
    assert "not authorized on geo-db" in outcome.out
    assert outcome.status == 252
    as_admin(machine, container, "db.grantRolesToUser('admin', [{role: 'readWrite', db: 'geo-db'}])")
    assert store.refuses(ADMIN, "write", "geo") is None


def test_a_dropped_user_cannot_log_in_and_the_log_says_so(machine: Machine) -> None:
    container = hotel(machine, folder())
    store = server(machine)
    assert store.attach("geo-7d9", ADMIN, 2) is None
    assert store.attached("geo-7d9") == 2
    assert as_admin(machine, container, "db.dropUser('admin')").out == "true\n"
    refusal = store.refuses(ADMIN, "connect", "")
    assert refusal is not None
    assert refusal.kind == "auth"
    assert store.attach("geo-8e0", ADMIN, 1) == refusal
    failed = [line for line in lines(container) if line["msg"] == "Authentication failed"]
    assert failed[-1]["c"] == "ACCESS"
    assert failed[-1]["attr"]["error"] == 'UserNotFound: Could not find user "admin" for db "admin"'
    outcome = as_admin(machine, container, "1")
    assert outcome.status == 1
    assert outcome.out.startswith("Error: Authentication failed. :\n")


def test_a_changed_password_leaves_who_is_in(machine: Machine) -> None:
    container = hotel(machine, folder())
    store = server(machine)
    store.attach("geo-7d9", ADMIN, 3)
    as_admin(machine, container, "db.changeUserPassword('admin', 'other')")
    assert store.attached("geo-7d9") == 3
    refusal = store.refuses(ADMIN, "connect", "")
    assert refusal is not None
    assert refusal.kind == "auth"


def test_what_applications_seed_an_operator_finds_and_a_restart_keeps(machine: Machine) -> None:
    data = folder()
    container = hotel(machine, data)
    assert server(machine).put("geo-db", "geo", [{"hotelId": str(i), "lat": 37.5 + i} for i in range(1, 81)]) is None
    assert as_admin(machine, container, "db.geo.count()", database="geo-db").out == "80\n"
    found = as_admin(machine, container, "db.geo.find({hotelId: '3'}, {_id: 0})", database="geo-db")
    assert found.out == '{ "hotelId" : "3", "lat" : 40.5 }\n'
    as_admin(machine, container, "db.geo.deleteMany({hotelId: {$in: ['1', '2']}})", database="geo-db")
    machine.clock.advance(1)
    assert stopped(machine, container) == 0
    hotel(machine, data)
    assert server(machine).count("geo-db", "geo") == 78


def test_an_incompatible_version_refuses_the_data_and_the_old_one_still_opens_it(machine: Machine) -> None:
    data = folder()
    assert stopped(machine, hotel(machine, data)) == 0
    newer = machine.container("mongo:8.0.14-rc0", mounts=[Mount("/data/db", data)])
    machine.clock.advance(10)
    assert newer.done.value.code == 62
    fatal = next(line for line in lines(newer) if line["s"] == "F")
    assert fatal["msg"] == "Wrong mongod version"
    assert "Invalid feature compatibility version value '4.4'; expected '7.0' or '8.0'" in fatal["attr"]["error"]
    older = hotel(machine, data)
    assert older.running
    assert as_admin(machine, older, "db.getUsers().length").out == "2\n"


def damaged_hotel(machine: Machine, data: Volume, file: str, script: str) -> Container:
    """A database with eighty hotels, one of whose files is changed while it is down, started again."""
    container = hotel(machine, data)
    assert server(machine).put("geo-db", "geo", [{"hotelId": str(i)} for i in range(1, 81)]) is None
    machine.clock.advance(1)
    assert stopped(machine, container) == 0
    shell = machine.container("mongo:4.4.6", args=["sleep", "100000"], mounts=[Mount("/data/db", data)])
    found = machine.sh(f"ls /data/db/{file}", shell).out.split()
    assert len(found) == 1 and int(machine.sh(f"stat -c %s {found[0]}", shell).out) % 4096 == 0
    assert machine.sh(script.replace("FILE", found[0]), shell).status == 0
    broken = hotel(machine, data)
    assert broken.done.is_set and broken.done.value.code == 14
    return shell


def repaired(machine: Machine, data: Volume) -> list[str]:
    """The messages of a repair."""
    container = machine.container("mongo:4.4.6", args=["--repair"], mounts=[Mount("/data/db", data)])
    machine.clock.advance(10)
    assert container.done.value.code == 0
    return [line["msg"] for line in lines(container)]


def test_a_lost_catalogue_is_begun_anew_and_its_collections_become_orphans(machine: Machine) -> None:
    data = folder()
    shell = damaged_hotel(machine, data, "_mdb_catalog.wt", "head -c 4096 /dev/zero > FILE")
    messages = repaired(machine, data)
    assert "Salvage failed. The file will be moved out of the way and a new ident will be created." in messages
    assert "Successfully created an entry in the catalog for the orphaned collection" in messages
    assert machine.sh("ls /data/db/_mdb_catalog.wt.corrupt", shell).status == 0
    again = machine.container("mongo:4.4.6", mounts=[Mount("/data/db", data)])
    machine.clock.advance(10)
    find = "db.getCollectionNames().map(name => db.getCollection(name).count()).join()"
    counts = machine.run(again, ["mongo", "local", "--quiet", "--eval", find])
    assert "80" in counts.out.strip().split(","), counts
    assert server(machine).refuses(ADMIN, "connect", "") is not None, "the users are lost with the catalogue"


def test_of_a_damaged_collection_the_sound_records_are_kept(machine: Machine) -> None:
    data = folder()
    where = "$(grep -l hotelId /data/db/collection-*.wt)"
    shell = damaged_hotel(machine, data, "_mdb_catalog.wt", f'sed -i \'s/."hotelId":"7"/{{x/\' {where}')
    messages = repaired(machine, data)
    assert "Verify failed. Running a salvage operation." in messages
    assert "Successfully created an entry in the catalog for the orphaned collection" not in messages
    assert machine.sh("ls /data/db/*.corrupt", shell).status != 0
    hotel(machine, data)
    assert server(machine).count("geo-db", "geo") == 79
    assert server(machine).refuses(ADMIN, "connect", "") is None


@pytest.mark.parametrize(
    ("files", "line"),
    [
        ({}, "fopen:No such file or directory"),
        ({"tls__pem": "not a certificate"}, "PEM routines:get_name:no start line"),
    ],
)
def test_unusable_certificates_keep_it_from_starting(machine: Machine, files: dict[str, str], line: str) -> None:
    config = "net:\n  tls:\n    mode: requireTLS\n    certificateKeyFile: /etc/tls/tls.pem\n"
    mounts = [Mount("/etc/mongo", folder(mongod__conf=config)), Mount("/etc/tls", folder(**files))]
    container = machine.container("mongo:4.4.6", args=["--config", "/etc/mongo/mongod.conf"], mounts=mounts)
    machine.clock.advance(10)
    assert container.done.value.code == 1
    assert line in container.log.text()
    assert "InvalidSSLConfiguration" in container.log.text()


def test_required_tls_turns_plain_clients_away(machine: Machine) -> None:
    pem = "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n-----BEGIN CERTIFICATE-----\nAA==\n"
    args = ["--tlsMode", "requireTLS", "--tlsCertificateKeyFile", "/etc/tls/tls.pem"]
    container = machine.container("mongo:4.4.6", args=args, mounts=[Mount("/etc/tls", folder(tls__pem=pem))])
    machine.clock.advance(10)
    refusal = server(machine).attach("url-shorten-1", None, 1)
    assert refusal is not None
    assert refusal.kind == "closed"
    assert "The server is configured to only allow SSL connections" in container.log.text()


def test_mongosh_prints_as_mongosh_does(machine: Machine) -> None:
    container = machine.container("mongo:8.0")
    machine.clock.advance(5)

    def run(*words: str, stdin: bytes = b"") -> Outcome:
        return machine.run(container, ["mongosh", "--quiet", *words], stdin=stdin)

    assert run("--eval", "db.runCommand({ping: 1})").out == "{ ok: 1 }\n"
    assert run("--eval", "db.a.insertOne({_id: 7, tags: ['x', 'y']})").out == "{ acknowledged: true, insertedId: 7 }\n"
    assert run("--eval", "db.a.find()").out == "[ { _id: 7, tags: [ 'x', 'y' ] } ]\n"
    assert run("--eval", "db.a.updateOne({_id: 7}, {$set: {n: 1}}); db.a.findOne().n + 1").out == "2\n"
    assert run("shop", "--eval", "db.getName()").out == "shop\n"
    assert run(stdin=b"use shop\ndb.c.insertMany([{x: 1}, {x: 2}]).acknowledged\nshow collections\n").out == (
        "switched to db shop\ntrue\nc\n"
    )
    unknown = run("--eval", "db.runCommand({flush: 1})")
    assert unknown.err == "MongoServerError[CommandNotFound]: no such command: 'flush'\n"
    assert unknown.status == 1
    assert run("--eval", "let total = 0; for (const d of [1, 2, 3]) { total += d }; total").out == "6\n"
    assert run("--eval", "nonsense(").err.startswith("SyntaxError: ")
    assert run("--port", "1").err == "MongoNetworkError: connect ECONNREFUSED 127.0.0.1:1\n"


def test_a_read_only_disk_refuses_writes_and_ends_the_server_that_tries(machine: Machine) -> None:
    mount = Mount("/data/db", folder())
    container = machine.container("mongo:4.4.6", mounts=[mount])
    machine.clock.advance(5)
    store = server(machine)
    assert store.refuses(None, "write", "geo") is None
    before = store.epoch
    mount.volume.read_only = True
    machine.clock.advance(10)
    assert store.epoch > before
    refusal = store.refuses(None, "write", "geo")
    assert refusal is not None
    assert refusal.kind == "readonly"
    assert store.refuses(None, "read", "geo") is None
    machine.run(container, ["mongo", "--quiet", "--eval", "db.a.insert({x: 1})"])
    machine.clock.advance(1)
    assert container.done.value.code == 14
    assert "Read-only file system" in container.log.text()
    assert "***aborting after fassert() failure" in container.log.text()


def test_a_full_disk_refuses_writes(machine: Machine) -> None:
    space = Space(4 * 1024 * 1024)
    machine.container("mongo:4.4.6", mounts=[Mount("/data/db", Volume(space=space))])
    machine.clock.advance(5)
    space.take(4 * 1024 * 1024 - space.used - 1000)
    refusal = server(machine).refuses(None, "write", "geo")
    assert refusal is not None
    assert refusal.kind == "full"


def test_slow_operations_of_traffic_are_in_the_log_current_and_profiled(machine: Machine) -> None:
    container = machine.container("mongo:4.4.6")
    machine.clock.advance(3)
    store = server(machine)
    assert isinstance(store, MongoServer)
    store.put("geo-db", "geo", [{"hotelId": "1", "lat": 37.7}])
    store.attach("geo-0/1", None, 1, "10.244.1.7")
    report = slow_statements("geo-0/1", operation="find", database="geo-db", target="geo")
    store.report_statements([report])
    slow = [line["attr"] for line in lines(container) if line["msg"] == "Slow query"]
    assert len(slow) == 10
    assert (slow[0]["ns"], slow[0]["planSummary"], slow[0]["command"]["filter"]) == (
        *("geo-db.geo", "COLLSCAN"),
        {"hotelId": "1"},
    )
    assert 1000 < slow[0]["durationMillis"] < 4000

    def ask(script: str, database: str = "geo-db") -> Any:
        words = ["mongo", database, "--quiet", "--eval", f"JSON.stringify({script})"]
        return json.loads(machine.run(container, words).out)

    current = ask("db.currentOp({ns: 'geo-db.geo'}).inprog.map(o => [o.op, o.ns, o.planSummary])")
    assert current == [["query", "geo-db.geo", "COLLSCAN"]] * 3
    assert ask("db.serverStatus().globalLock.activeClients.readers") == 3
    ask("db.setProfilingLevel(1)")
    store.report_statements([report])
    assert ask("db.system.profile.find({op: 'query'}).count()") == 10
    assert ask("db.geo.find({hotelId: '1'}).explain().queryPlanner.winningPlan.stage") == "COLLSCAN"
    ask("db.geo.createIndex({hotelId: 1})")
    assert ask("db.geo.find({hotelId: '1'}).explain('executionStats').executionStats.totalKeysExamined") == 1
    assert ask("db.geo.find({hotelId: '1'}).explain().queryPlanner.winningPlan.inputStage.indexName") == "hotelId_1"
    printed = machine.run(container, ["mongostat", "-n", "2"]).out.splitlines()
    assert printed[0].split()[:4] == ["insert", "query", "update", "delete"]
    assert len(printed) == 3
    assert "3|0" in printed[1]
