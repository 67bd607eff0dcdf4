"""What traffic relies on, whatever the store: it can be asked, who is in stays in, who ends leaves."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.programs.datastores.datastore import Broker, Datastore, Discovery, Login, joined
from tests.containers.machine import Machine

from .stores import served

STORES: list[tuple[str, dict[str, Any], int, Login | None]] = [
    ("mongo:4.4.6", {}, 27017, None),
    ("mongo:8.0", {}, 27017, None),
    ("postgres:17.6", {"env": {"POSTGRES_PASSWORD": "x"}}, 5432, Login("postgres", "x", "postgres")),
    ("mysql:8.4", {"env": {"MYSQL_ROOT_PASSWORD": "x"}}, 3306, Login("root", "x")),
    ("mariadb:11", {"env": {"MARIADB_ROOT_PASSWORD": "x"}}, 3306, Login("root", "x")),
    ("redis:7", {}, 6379, None),
    ("valkey/valkey:9.0.1-alpine3.23", {}, 6379, None),
    ("memcached", {}, 11211, None),
    ("rabbitmq:4", {}, 5672, Login("guest", "guest")),
]


def started(machine: Machine, image: str, settings: dict[str, Any]) -> Container:
    container = machine.container(image, **settings)
    machine.clock.advance(30)
    assert container.running, container.log.text()
    return container


@pytest.mark.parametrize(("image", "settings", "port", "login"), STORES)
def test_a_process_is_connected_as_long_as_both_live(
    machine: Machine, image: str, settings: dict[str, Any], port: int, login: Login | None
) -> None:
    container = started(machine, image, settings)
    store = served(machine, port)
    assert isinstance(store, Datastore)
    assert not isinstance(store, Broker)
    client = machine.idle()
    process = client.exec(["sleep", "100"])
    assert joined(store, process, login) is None
    assert joined(store, process, login) is None
    name = f"{process.container.host.hostname}/{process.pid}"
    assert store.attached(name) == 1
    machine.clock.advance(200)
    assert process.done.is_set
    assert store.attached(name) == 0
    container.stop()
    machine.clock.advance(30)
    refusal = store.refuses(login, "connect", "")
    assert refusal is not None
    assert refusal.kind == "closed"


@pytest.mark.parametrize(("image", "settings", "port", "login"), STORES)
def test_what_is_put_is_counted(
    machine: Machine, image: str, settings: dict[str, Any], port: int, login: Login | None
) -> None:
    started(machine, image, settings)
    store = served(machine, port)
    assert isinstance(store, Datastore)
    database = {5432: "postgres", 3306: "shop", 6379: "0"}.get(port, "shop")
    assert store.count(database, "things") == 0
    assert store.put(database, "things", [{"id": number} for number in range(3)]) is None
    assert store.count(database, "things") == 3


def test_each_kind_of_server_is_told_from_the_others(machine: Machine) -> None:
    for image, port in (("apache/kafka:3.9.1", 9092), ("hashicorp/consul", 8500)):
        started(machine, image, {})
        server = served(machine, port)
        assert isinstance(server, Broker) == (port == 9092)
        assert isinstance(server, Discovery) == (port == 8500)
        assert not isinstance(server, Datastore)
