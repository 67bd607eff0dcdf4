"""Clients of datastores for single requests: exact reads and writes over the connection that a program has.

They change the same state as an operator's shell, and count as the commands of any client.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.programs.datastores.connection_pools import pool_of
from srearena.cluster.embedded.programs.datastores.datastore import (
    Broker,
    Datastore,
    Login,
    Record,
    Refusal,
    client_name,
    request_refusal,
)
from srearena.cluster.embedded.programs.datastores.memcached import Item, MemcachedServer
from srearena.cluster.embedded.programs.datastores.mongodb.documents import Document, changed, matches
from srearena.cluster.embedded.programs.datastores.mongodb.server import MongoServer
from srearena.cluster.embedded.programs.datastores.postgresql.server import PostgresServer
from srearena.cluster.embedded.programs.datastores.redis.resp import RespError, Value
from srearena.cluster.embedded.programs.datastores.redis.server import RedisServer
from srearena.cluster.embedded.programs.datastores.sql.engine import TableError, Tables, quoted
from srearena.cluster.embedded.traffic.failures import connect_failure
from srearena.cluster.embedded.traffic.protocols import implements
from srearena.cluster.embedded.traffic.servers import Instance

KEPT_ROWS = 5000
"""Rows of the load that a table of MySQL or TiDB keeps. Chosen: hours of FleetCast, a few hundred kilobytes."""
KEPT_RECORDS = 500
"""Documents of the load that a collection keeps; older ones are only counted. Chosen: some minutes to read back."""


class StoreFailed(Exception):
    """A store could not be reached or refused the operation; the message is that of the client library."""


@dataclass(frozen=True, slots=True)
class Connection:
    """The connection of a program to a store: its login and its name in the server's list of clients."""

    login: Login | None
    client: str


def login_of(instance: Instance, dependency: str) -> Login | None:
    """Return the credentials with which a program logs in at a dependency; None where it has none."""
    login = instance.program.dependencies[dependency].login
    if login is None:
        return None
    fill = instance.settings.fill
    return Login(fill(login.user), fill(login.password), fill(login.database), "admin")


def connected_store(
    network: Network, instance: Instance, name: str, action: str, target: str
) -> tuple[object, Connection]:
    """Return the server behind a dependency of a running program; StoreFailed where it does not allow the action."""
    dependency = instance.program.dependencies[name]
    host, _, port = instance.settings.fill(dependency.address).rpartition(":")
    if not host or not port.isdigit():
        raise StoreFailed("missing address")
    forecast = network.forecast(instance.host, host, int(port))
    outcome = forecast.lookup.outcome
    for path in forecast.paths:
        outcome = path.outcome
        if outcome is Outcome.CONNECTED and path.listener is not None:
            model = path.listener.server
            login = login_of(instance, name)
            if implements(model, Datastore) or implements(model, Broker):
                refusal = request_refusal(model, instance.process, login, action, target)  # type: ignore[arg-type]
                if refusal is not None:
                    raise StoreFailed(refusal.message)
            return model, Connection(login, client_name(instance.process))
    failure = connect_failure(outcome, instance.runtime, dependency.protocol, host, "", int(port), 0.0)
    raise StoreFailed(failure.text)


class MongoClient:
    """One collection of a MongoDB server."""

    def __init__(self, server: MongoServer, database: str, collection: str, is_sample: bool) -> None:
        self._server = server
        self._database = database
        self._collection = collection
        self._is_sample = is_sample

    def _count(self, operation: str) -> None:
        if not self._is_sample:
            self._server.operations[operation] += 1

    def find(self, query: Document) -> list[Document]:
        self._count("query")
        return list(_matching(self._rows(), query))

    def find_one(self, query: Document) -> Document | None:
        self._count("query")
        return next(_matching(self._rows(), query), None)

    def insert(self, *documents: Document) -> None:
        if self._is_sample:
            self._server.keep_sample(self._database, self._collection, documents, KEPT_RECORDS)
            return
        refusal = self._server.put(self._database, self._collection, documents)
        if refusal is not None:
            raise StoreFailed(refusal.message)

    def update(self, query: Document, update: Document, *, upsert: bool = False) -> bool:
        """Change the first document that matches; whether there was one."""
        server = self._server
        self._count("update")
        rows = self._rows()
        found = next(_matching(rows, query), None)
        if found is not None:
            rows[next(index for index, document in enumerate(rows) if document is found)] = changed(found, update)
            self._changed()
            return True
        if upsert:
            rows = server.make_collection(self._database, self._collection)
            rows.append(changed({"_id": server.new_id(), **query}, update))
            self._changed()
        return False

    def _changed(self) -> None:
        if self._is_sample:
            self._server.save_later()
        else:
            self._server.changed()

    def _rows(self) -> list[Document]:
        return self._server.collection(self._database, self._collection)


def _matching(rows: list[Document], query: Document) -> Iterator[Document]:
    """Documents that match, in their order; queries by the value of one field and more are the common ones."""
    if not all(type(value) in (str, int) and "." not in key and key[0] != "$" for key, value in query.items()):
        return (document for document in rows if matches(document, query))
    items = list(query.items())
    first, wanted = items[0] if items else ("_id", None)
    found = (row for row in rows if row.get(first) == wanted) if items else iter(rows)
    return (row for row in found if all(row.get(key) == value for key, value in items))


class RedisClient:
    """One connection of a program to a Redis server."""

    def __init__(self, server: RedisServer, client: str, is_sample: bool) -> None:
        self._server = server
        self._is_sample = is_sample
        self._session = pool_of(server.sessions.values(), client)[0]

    def command(self, name: str, *words: str | bytes | int | float) -> Value:
        args = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        server = self._server
        counts = server.commands, server.hits, server.misses
        answer = server.answer(self._session, name, args)
        if self._is_sample:
            server.commands, server.hits, server.misses = counts
        if isinstance(answer, RespError):
            raise StoreFailed(str(answer))
        return answer

    def texts(self, name: str, *words: str | bytes | int | float) -> list[str]:
        """Run a command whose answer is a list of strings."""
        answer = self.command(name, *words)
        parts = answer if isinstance(answer, list) else []
        return [part.decode(errors="replace") for part in parts if isinstance(part, bytes)]


class MemcachedClient:
    """A memcached server."""

    def __init__(self, server: MemcachedServer, is_sample: bool) -> None:
        self._server = server
        self._is_sample = is_sample

    def get(self, key: str) -> bytes | None:
        item = self._server.get(key.encode())
        if not self._is_sample:
            statistics = self._server.statistics
            statistics["cmd_get"] += 1
            statistics["get_hits" if item is not None else "get_misses"] += 1
        return None if item is None else item.value

    def set(self, key: str, value: str) -> None:
        self._server.statistics["cmd_set"] += not self._is_sample
        data = value.encode()
        self._server.store(key.encode(), Item(b"0", data, len(data)))


@runtime_checkable
class MysqlModel(Protocol):
    """What is needed of a server that speaks MySQL's protocol, whose models live beside the products."""

    tables: Tables

    def put(self, database: str, target: str, records: Sequence[Record]) -> Refusal | None: ...

    def remove(self, database: str, target: str, column: str, value: object) -> Refusal | None: ...

    def count_traffic(self, operation: str, database: str, target: str, calls: int, hits: int, misses: int) -> None: ...


class MysqlClient:
    """One database of a server that speaks MySQL's protocol. Statements are SQLite's, with `database.table`."""

    def __init__(self, server: MysqlModel, database: str, is_sample: bool) -> None:
        self._server = server
        self._database = database
        self._is_sample = is_sample

    def select(self, statement: str, *parameters: Any) -> list[dict[str, Any]]:
        try:
            found = self._server.tables.execute(statement, parameters)
        except TableError as error:
            raise StoreFailed(str(error)) from None
        if not self._is_sample:
            self._server.count_traffic("select", self._database, "", 1, 0, 0)
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def insert(self, table: str, records: Sequence[Mapping[str, Any]]) -> None:
        """Add records; of a table that load writes the newest rows are kept."""
        refusal = self._server.put(self._database, table, records)
        if refusal is not None:
            raise StoreFailed(refusal.message)
        if self._is_sample:
            place = self.place(table)
            newest = f"(SELECT max(rowid) FROM {place})"
            self._server.tables.execute(f"DELETE FROM {place} WHERE rowid <= {newest} - {KEPT_ROWS}")
        else:
            self._server.count_traffic("insert", self._database, table, len(records), 0, 0)

    def delete(self, table: str, column: str, value: object) -> None:
        """Remove the records with this value."""
        refusal = self._server.remove(self._database, table, column, value)
        if refusal is not None:
            raise StoreFailed(refusal.message)
        if not self._is_sample:
            self._server.count_traffic("delete", self._database, table, 1, 0, 0)

    def place(self, table: str) -> str:
        """Return the name of a table of this database for a statement."""
        return f"{quoted(self._database)}.{quoted(table)}"


class PostgresClient:
    """One database of a PostgreSQL server. Statements are SQLite's; a schema is named as in PostgreSQL."""

    def __init__(self, server: PostgresServer, database: str, is_sample: bool) -> None:
        self._server = server
        self._database = database
        self._is_sample = is_sample

    def select(self, statement: str, *parameters: Any) -> list[dict[str, Any]]:
        try:
            found = self._server.databases[self._database].tables.execute(statement, parameters)
        except (TableError, KeyError) as error:
            raise StoreFailed(f"ERROR: {error}") from None
        return [dict(zip(found.columns, row, strict=True)) for row in found.rows]

    def insert(self, table: str, records: Sequence[Mapping[str, Any]]) -> None:
        refusal = self._server.put(self._database, table, records)
        if refusal is not None:
            raise StoreFailed(refusal.message)
        if not self._is_sample:
            self._server.count_traffic("insert", self._database, table, len(records), 0, 0)
