"""Whatever somebody types, a server answers and lives: made of the words its language is made of, in any order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.containers.machine import Machine

SQL = """
SELECT INSERT UPDATE DELETE FROM INTO t t2 nope * , ( ) ; VALUES SET WHERE id name = 1 'x' "y" NULL AND OR ORDER BY
LIMIT GROUP count(*) CREATE TABLE DROP ALTER ADD COLUMN INT TEXT PRIMARY KEY GRANT REVOKE ON TO USER PASSWORD LOCK
BEGIN COMMIT ROLLBACK SHOW max_connections pg_stat_activity pg_locks pg_sleep(1) ::text now() - interval SCHEMA s s.t
IF NOT EXISTS DATABASE TABLES PROCESSLIST KILL 9 USE shop information_schema.tables @@version SLEEP(1) LIKE '%' \\G .
IDENTIFIED 'a'@'%' ALL PRIVILEGES *.* DESCRIBE TRUNCATE UNLOCK WRITE EXPLAIN UNION JOIN AS 1.5 -- /* */ $$ ' " `
""".split()
SCRIPT = """
db . c find insertOne ( ) { } [ ] , : ; x 1 'a' "b" `t${1}` $gt $set $in _id true null undefined => function var = +
- * / % == && || ! ? for while(false) if else return try catch finally throw new Date ObjectId() forEach print
printjson JSON.stringify use show dbs createUser getUsers runCommand ping sort limit count aggregate $match $group
updateOne deleteMany rs.status() /re/i ... . // /* */ 0x1f 1e5 in of const let typeof delete drop() createIndex
db.c.find( db.c.insert({ }) .toArray() [1,2].map( x=>x ) {a:1} break continue
""".split()
COMMANDS = """
GET SET DEL k k2 1 -1 x INCR LPUSH LRANGE 0 HSET HGETALL ZADD ZRANGE WITHSCORES SADD TYPE TTL EXPIRE CONFIG SET GET
maxmemory * CLIENT LIST KILL ID MEMORY USAGE INFO SELECT 99 SCAN MATCH COUNT FLUSHALL AUTH RENAME OBJECT "" ' " EX NX
ZRANGEBYSCORE -inf +inf ( APPEND GETSET MSET MGET SLOWLOG ACL WHOAMI HINCRBY nonsense ECHO SHUTDOWNX
""".split()
MONGO_WORDS = ["mongosh", "--quiet"]
SERVERS: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    ("postgres:17.6", {"env": {"POSTGRES_PASSWORD": "x"}}, ["psql", "-U", "postgres"], SQL),
    ("mysql:8.4", {"env": {"MYSQL_ROOT_PASSWORD": "x", "MYSQL_DATABASE": "shop"}}, ["mysql", "-px", "-f", "shop"], SQL),
    ("mongo:8.0", {}, MONGO_WORDS, SCRIPT),
    ("mongo:4.4", {}, ["mongo", "--quiet"], SCRIPT),
    ("redis:7", {}, ["redis-cli"], COMMANDS),
]


@pytest.mark.parametrize(("image", "options", "client", "words"), SERVERS, ids=lambda value: str(value)[:14])
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_nonsense_is_answered(
    image: str, options: dict[str, Any], client: list[str], words: list[str], data: st.DataObject
) -> None:
    line = st.lists(st.sampled_from(words), min_size=1, max_size=14).map(" ".join)
    lines = data.draw(st.lists(line, min_size=1, max_size=25))
    machine = Machine()
    container = machine.container(image, **options)
    machine.clock.advance(20)
    end = ";" if words is SQL else ""
    outcome = machine.run(container, client, stdin="".join(f"{each}{end}\n" for each in lines).encode(), patience=600.0)
    assert outcome.status is not None, lines
    assert outcome.status < 128, (lines, outcome.err)
    assert container.running
    assert "Traceback" not in outcome.out + outcome.err
