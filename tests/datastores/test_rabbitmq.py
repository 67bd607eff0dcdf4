"""RabbitMQ as an operator meets it through rabbitmqctl, and as an application's traffic uses its queues."""

from __future__ import annotations

from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.programs.datastores.datastore import Login
from srearena.service.apps.train_ticket.programs.rabbitmq.node import RabbitNode
from tests.containers.machine import Machine, Outcome

from .stores import served

MIB = 1024 * 1024
GUEST = Login("guest", "guest")


def broker(machine: Machine) -> tuple[Container, RabbitNode]:
    container = machine.container("codewisdom/rabbitmq:3", memory_limit=400 * MIB)
    machine.clock.advance(10)
    node = served(machine, 5672)
    assert isinstance(node, RabbitNode)
    return container, node


def ctl(machine: Machine, container: Container, *words: str) -> Outcome:
    return machine.run(container, ["rabbitmqctl", *words])


def test_queues_are_listed_with_what_waits_in_them(machine: Machine) -> None:
    container, node = broker(machine)
    node.subscribe("food_delivery", "ts-delivery-1", 1)
    node.publish("food_delivery", 10, 500)
    node.publish("email", 3, 500)
    assert node.consume("food_delivery", 4) == 4
    assert ctl(machine, container, "-q", "list_queues", "name", "messages", "consumers").out == (
        "name\tmessages\tconsumers\nfood_delivery\t6\t1\nemail\t3\t0\n"
    )
    assert ctl(machine, container, "purge_queue", "email").status == 0
    assert node.count("/", "email") == 0
    wrong = ctl(machine, container, "list_queues", "nonsense")
    assert (wrong.status, wrong.err) == (65, "Error (argument validation): Info key `nonsense` not found\n")


def test_users_come_and_go(machine: Machine) -> None:
    container, node = broker(machine)
    assert node.attach("ts-food-1", GUEST, 2) is None
    assert ctl(machine, container, "change_password", "guest", "other").status == 0
    assert node.attached("ts-food-1") == 2
    refusal = node.attach("ts-food-2", GUEST, 1)
    assert refusal is not None
    assert refusal.kind == "auth"
    assert "PLAIN login refused: user 'guest' - invalid credentials" in container.log.text()
    ctl(machine, container, "add_user", "ts", "secret")
    forbidden = node.refuses(Login("ts", "secret"), "connect", "")
    assert forbidden is not None
    assert forbidden.kind == "permission"
    ctl(machine, container, "set_permissions", "ts", ".*", ".*", ".*")
    assert node.refuses(Login("ts", "secret"), "connect", "") is None


def test_too_much_waiting_raises_the_alarm_and_blocks_publishers_until_it_is_consumed(machine: Machine) -> None:
    container, node = broker(machine)
    assert node.publish("email", 20_000, 10_000) is None
    refusal = node.refuses(GUEST, "write", "email")
    assert refusal is not None
    assert refusal.kind == "locked"
    assert "memory resource limit alarm set on node" in container.log.text()
    assert "Memory alarm on node" in ctl(machine, container, "status").out
    assert machine.run(container, ["rabbitmq-diagnostics", "check_local_alarms"]).status == 65
    node.consume("email", 20_000)
    assert node.refuses(GUEST, "write", "email") is None
    assert "memory resource limit alarm cleared" in container.log.text()


def test_the_tools_say_when_the_node_is_down(machine: Machine) -> None:
    container = machine.container("rabbitmq:4", "sleep", "1000")
    assert ctl(machine, container, "status").status == 69
    _, node = broker(machine)
    assert "Command 'eval' not found." in ctl(machine, container, "eval", "1.").err
    assert node.refuses(None, "connect", "") is None
