"""What single requests do to an application's data.

The walk of a request (`walks`) decides whether it succeeds and how long it takes. A handler then reads and writes the
stores that the services on the way use, and gives the answer that the real program gives. Handlers are written beside
the application and registered by application, program and operation; an operation without one answers as its model
says. A handler reaches a store only as the service it acts for would: from that service's pod, with its login.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from random import Random
from typing import Any, TypeVar
from urllib.parse import parse_qs

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.network.network import Network
from srearena.cluster.embedded.programs.datastores.kafka.broker import KafkaBroker
from srearena.cluster.embedded.programs.datastores.memcached import MemcachedServer
from srearena.cluster.embedded.programs.datastores.mongodb.server import MongoServer
from srearena.cluster.embedded.programs.datastores.postgresql.server import PostgresServer
from srearena.cluster.embedded.programs.datastores.redis.server import RedisServer
from srearena.cluster.embedded.traffic.servers import Instance
from srearena.cluster.embedded.traffic.store_clients import (
    Connection,
    MemcachedClient,
    MongoClient,
    MysqlClient,
    MysqlModel,
    PostgresClient,
    RedisClient,
    StoreFailed,
    connected_store,
)

S = TypeVar("S")
"""The model of a store."""


@dataclass(slots=True)
class Visit:
    """A server that a request came through, and the operation it ran there."""

    instance: Instance
    operation: str
    ok: bool = True
    """Whether that operation succeeded; a caller may go on without it."""


class Exchange:
    """One request with its path through the application, and access to the stores of the services on that path."""

    def __init__(
        self,
        request: HttpRequest,
        visits: list[Visit],
        network: Network,
        random: Random,
        now: float,
        others: Iterable[Instance] = (),
        *,
        is_sample: bool = False,
    ) -> None:
        self.request = request
        self.network = network
        self.random = random
        self.now = now
        self.is_sample = is_sample
        """Whether it belongs to the load, whose operations are counted in bulk."""
        self.published: list[Message] = []
        """Messages that the request has sent, for their consumers."""
        self._connections: dict[tuple[str, str, str, str], tuple[object, Connection]] = {}
        self._visits = visits
        self._namespace = visits[0].instance.namespace
        self._others = others
        self._instances: dict[str, Instance] = {}
        for visit in visits:
            self._instances.setdefault(visit.instance.name, visit.instance)

    @property
    def today(self) -> date:
        return datetime.fromtimestamp(self.now, UTC).date()

    @cached_property
    def query(self) -> dict[str, str]:
        """Query parameters; of repeated ones the first."""
        return {name: values[0] for name, values in self.request.query.items()}

    @cached_property
    def form(self) -> dict[str, str]:
        """Fields of a URL-encoded body; of repeated ones the first."""
        fields = parse_qs(self.request.body.decode(errors="replace"), keep_blank_values=True)
        return {name: values[0] for name, values in fields.items()}

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """A JSON body; empty where it is no JSON object."""
        try:
            parsed = json.loads(self.request.body or b"{}")
        except ValueError:
            return {}
        return parsed if isinstance(parsed, dict) else {}

    def succeeded(self, service: str, operation: str) -> bool:
        """Return whether an operation on the way succeeded; False where it failed and its caller went on."""
        return any(one.ok for one in self._visits if one.instance.name == service and one.operation == operation)

    def loaded(self, service: str, collection: str) -> list[dict[str, Any]]:
        """Return the documents that a service has read into memory at its start."""
        return self._instance(service).loaded.get(collection, [])

    # Stores, as a service sees them

    def _connect(self, kind: type[S], service: str, dependency: str, action: str, target: str) -> tuple[S, Connection]:
        """Open a connection to a store of this kind; fail as a client does that gets answers of another protocol."""
        key = (service, dependency, action, target)
        found = self._connections.get(key)
        if found is None:
            instance = self._instance(service)
            found = self._connections[key] = connected_store(self.network, instance, dependency, action, target)
        model, connection = found
        if not isinstance(model, kind):
            raise StoreFailed("unexpected answer from the server")
        return model, connection

    def _instance(self, service: str) -> Instance:
        """Return the instance that the request came through; one of its namespace where the path of a walk has none."""
        found = self._instances.get(service)
        if found is None:
            candidates = (one for one in self._others if one.name == service and one.namespace == self._namespace)
            found = next((one for one in candidates if one.ready and one.alive), None)
            if found is None:
                raise StoreFailed(f"{service} is unavailable")
            self._instances[service] = found
        return found

    def mongo(self, service: str, collection: str, dependency: str = "mongo", action: str = "read") -> MongoClient:
        model, connection = self._connect(MongoServer, service, dependency, action, collection)
        database = connection.login.database if connection.login is not None else ""
        return MongoClient(model, database, collection, self.is_sample)

    def redis(self, service: str, dependency: str, action: str = "read", target: str = "") -> RedisClient:
        model, connection = self._connect(RedisServer, service, dependency, action, target)
        return RedisClient(model, connection.client, self.is_sample)

    def memcached(self, service: str, dependency: str = "memcached") -> MemcachedClient:
        model, _ = self._connect(MemcachedServer, service, dependency, "read", "")
        return MemcachedClient(model, self.is_sample)

    def postgres(self, service: str, target: str, dependency: str = "db", action: str = "read") -> PostgresClient:
        model, connection = self._connect(PostgresServer, service, dependency, action, target)
        database = connection.login.database if connection.login is not None else ""
        return PostgresClient(model, database, self.is_sample)

    def mysql(self, service: str, target: str, dependency: str = "db", action: str = "read") -> MysqlClient:
        model, connection = self._connect(MysqlModel, service, dependency, action, target)  # type: ignore[type-abstract]
        database = connection.login.database if connection.login is not None else ""
        return MysqlClient(model, database, self.is_sample)

    def publish(self, service: str, dependency: str, topic: str, value: bytes, record: dict[str, Any]) -> None:
        """Send one message to a topic; a client that cannot goes on, as producers that do not wait do."""
        try:
            model, _ = self._connect(KafkaBroker, service, dependency, "write", topic)
        except StoreFailed:
            return
        if self.is_sample or model.produce(topic, None, value) is None:
            position = model.logs[topic].end if topic in model.logs else 0
            self.published.append(Message(model, topic, position, self.now, record, self.is_sample))


@dataclass(slots=True, eq=False)
class Message:
    """A message of a single request that waits for its consumers."""

    broker: KafkaBroker
    topic: str
    position: int
    """The number of messages that a group must have consumed, including this one."""
    sent_at: float
    record: dict[str, Any]
    is_sample: bool = False
    """Whether it stands for a message of the load, which the broker has already."""
    taken_by: set[str] = field(default_factory=set)
    """Groups that have consumed it."""


Handler = Callable[[Exchange], HttpResponse]
ConsumerHandler = Callable[[Exchange, dict[str, Any]], None]
_CONSUMERS: dict[tuple[str, str, str], ConsumerHandler] = {}
_HANDLERS: dict[tuple[str, str, str], Handler] = {}


def handles(application: str, program: str, *operations: str) -> Callable[[Handler], Handler]:
    """Register the handler of operations that a program serves."""

    def register(handler: Handler) -> Handler:
        for operation in operations:
            _HANDLERS[application, program, operation] = handler
        return handler

    return register


def consumes(application: str, program: str, operation: str) -> Callable[[ConsumerHandler], ConsumerHandler]:
    """Register what a program does with a message that one of its operations consumes."""

    def register(handler: ConsumerHandler) -> ConsumerHandler:
        _CONSUMERS[application, program, operation] = handler
        return handler

    return register


def consumer_for(visit: Visit) -> ConsumerHandler | None:
    """Return what the program does with a message that it consumes, if anything."""
    return _CONSUMERS.get((visit.instance.application, visit.instance.name, visit.operation))


def handler_for(visits: list[Visit]) -> Handler | None:
    """Return the handler of the first server on the way that has one: a proxy passes requests on."""
    for visit in visits:
        found = _HANDLERS.get((visit.instance.application, visit.instance.name, visit.operation))
        if found is not None:
            return found
    return None


__all__ = [
    "Exchange",
    "Handler",
    "Message",
    "StoreFailed",
    "Visit",
    "consumer_for",
    "consumes",
    "handler_for",
    "handles",
]
