"""Kafka as an operator meets it through its scripts, and as an application's traffic produces and consumes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from srearena.cluster.embedded.machine.containers.container import Container, Mount
from srearena.cluster.embedded.programs.datastores.kafka.broker import KafkaBroker
from srearena.cluster.embedded.programs.datastores.kafka.partitions import Partition
from tests.containers.machine import Machine, Outcome

from .stores import folder, served, stopped

MIB = 1024 * 1024
SHOP = {"KAFKA_HEAP_OPTS": "-Xmx400M -Xms400M", "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://web-0:9092"}


def shop(machine: Machine, env: dict[str, str] | None = None, mounts: list[Mount] | None = None) -> Container:
    """The broker of Astronomy Shop: 400 MB of heap in 600 MiB."""
    container = machine.container(
        "apache/kafka:3.9.1", env={**SHOP, **(env or {})}, mounts=mounts or [], memory_limit=600 * MIB
    )
    machine.clock.advance(10)
    return container


def broker(machine: Machine) -> KafkaBroker:
    found = served(machine, 9092)
    assert isinstance(found, KafkaBroker)
    return found


def tool(machine: Machine, container: Container, name: str, *words: str, stdin: bytes = b"") -> Outcome:
    path = f"/opt/kafka/bin/kafka-{name}.sh"
    return machine.run(container, [path, "--bootstrap-server", "localhost:9092", *words], stdin=stdin)


def test_topics_are_made_listed_described_and_deleted(machine: Machine) -> None:
    container = shop(machine)
    assert tool(machine, container, "topics", "--create", "--topic", "orders", "--partitions", "3").out == (
        "Created topic orders.\n"
    )
    assert tool(machine, container, "topics", "--list").out == "orders\n"
    described = tool(machine, container, "topics", "--describe", "--topic", "orders").out.splitlines()
    assert "PartitionCount: 3\tReplicationFactor: 1" in described[0]
    assert described[3].startswith("\tTopic: orders\tPartition: 2\tLeader: 1\tReplicas: 1\tIsr: 1")
    again = tool(machine, container, "topics", "--create", "--topic", "orders")
    assert again.err == "Error while executing topic command : Topic 'orders' already exists.\n"
    assert tool(machine, container, "topics", "--delete", "--topic", "orders").status == 0
    assert tool(machine, container, "topics", "--list").out == ""
    missing = tool(machine, container, "topics", "--describe", "--topic", "orders")
    assert missing.err == "Error while executing topic command : Topic 'orders' does not exist as expected\n"


def test_a_group_that_stops_reading_falls_behind(machine: Machine) -> None:
    container = shop(machine)
    store = broker(machine)
    assert store.append("orders", 100, 500) is None
    assert store.fetch("accounting", "orders", 60) == 60
    assert store.lag("accounting", "orders") == 40
    described = tool(machine, container, "consumer-groups", "--describe", "--group", "accounting").out
    assert described.splitlines()[-1].split()[:6] == ["accounting", "orders", "0", "60", "100", "40"]
    machine.clock.advance(60)
    described = tool(machine, container, "consumer-groups", "--describe", "--group", "accounting").out
    assert "Consumer group 'accounting' has no active members." in described
    assert store.fetch("accounting", "orders", 1000) == 40
    assert store.lag("accounting", "orders") == 0
    assert tool(machine, container, "consumer-groups", "--list").out == "accounting\n"


def test_offsets_of_an_idle_group_can_be_moved_and_those_of_a_busy_one_cannot(machine: Machine) -> None:
    container = shop(machine)
    store = broker(machine)
    store.append("orders", 10, 100)
    store.fetch("fraud-detection", "orders", 4)
    words = ("--reset-offsets", "--group", "fraud-detection", "--topic", "orders", "--to-latest", "--execute")
    refused = tool(machine, container, "consumer-groups", *words)
    assert "Assignments can only be reset if the group 'fraud-detection' is inactive" in refused.out
    assert store.committed("fraud-detection", "orders") == 4
    machine.clock.advance(60)
    assert tool(machine, container, "consumer-groups", *words).out.split()[-1] == "10"
    assert store.lag("fraud-detection", "orders") == 0


def test_messages_come_out_as_they_went_in(machine: Machine) -> None:
    container = shop(machine)
    lines = b'{"id": 1}\n{"id": 2, "cut\n{"id": 3}\n'
    tool(machine, container, "console-producer", "--topic", "orders-fulfillment", stdin=lines)
    words = ("--topic", "orders-fulfillment", "--from-beginning", "--timeout-ms", "3000")
    read = tool(machine, container, "console-consumer", *words)
    assert read.out.encode() == lines
    assert read.err.endswith("Processed a total of 3 messages\n")
    one = ("--topic", "orders-fulfillment", "--partition", "0", "--offset", "1", "--max-messages", "1")
    assert tool(machine, container, "console-consumer", *one).out == '{"id": 2, "cut\n'
    assert tool(machine, container, "get-offsets", "--topic", "orders-fulfillment").out == "orders-fulfillment:0:3\n"
    shell = ["/opt/kafka/bin/kafka-run-class.sh", "kafka.tools.GetOffsetShell", "--broker-list", "localhost:9092"]
    assert machine.run(container, [*shell, "--topic", "orders-fulfillment", "--time", "-2"]).out == (
        "orders-fulfillment:0:0\n"
    )


def test_a_message_may_be_as_large_as_configured(machine: Machine) -> None:
    container = shop(machine)
    store = broker(machine)
    refusal = store.append("orders", 1, 2 * MIB)
    assert refusal is not None
    assert "larger than the max message size" in refusal.message
    words = (
        "--alter",
        "--entity-type",
        "topics",
        "--entity-name",
        "orders",
        "--add-config",
        "max.message.bytes=4194304",
    )
    assert tool(machine, container, "configs", *words).out == "Completed updating config for topic orders.\n"
    assert store.append("orders", 1, 2 * MIB) is None


def test_a_flood_of_huge_messages_outgrows_the_container_and_ordinary_traffic_does_not(machine: Machine) -> None:
    container = shop(machine, env={"KAFKA_MESSAGE_MAX_BYTES": str(20 * MIB)})
    store = broker(machine)
    for _ in range(600):
        store.append("orders", 50, 800)
        machine.clock.advance(1)
    assert container.running
    assert store.process.memory < 450 * MIB
    for _ in range(10):
        if container.done.is_set:
            break
        store.append("orders", 20, 10 * MIB)
        machine.clock.advance(1)
    assert container.done.value.code == 137


def test_a_producer_with_huge_messages_is_such_a_flood(machine: Machine) -> None:
    container = shop(machine, env={"KAFKA_MESSAGE_MAX_BYTES": str(20 * MIB)})
    words = "/opt/kafka/bin/kafka-producer-perf-test.sh --topic orders --num-records 100000 --throughput 20 "
    words += f"--record-size {10 * MIB} --producer-props bootstrap.servers=10.244.1.5:9092"
    sender = machine.container("apache/kafka:3.9.1", "sleep", "10000")
    refused = machine.run(sender, words.split())
    assert "the max.request.size configuration" in refused.err
    assert container.running
    flood = machine.run(sender, [*words.split(), f"max.request.size={20 * MIB}"], patience=30.0)
    assert flood.status != 0
    assert container.done.value.code == 137


def test_retention_drops_the_oldest(machine: Machine) -> None:
    shop(machine, env={"KAFKA_LOG_RETENTION_MS": "60000"})
    store = broker(machine)
    for _ in range(20):
        store.append("orders", 10, 100)
        machine.clock.advance(61)
    assert store.logs["orders"].end == 200
    assert store.lag("new", "orders") < 100


def test_without_auto_creation_an_unknown_topic_is_refused(machine: Machine) -> None:
    shop(machine, env={"KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false"})
    refusal = broker(machine).refuses(None, "write", "orders")
    assert refusal is not None
    assert refusal.kind == "missing"


def test_a_volume_keeps_topics_and_offsets(machine: Machine) -> None:
    data = Mount("/data", folder())
    container = shop(machine, env={"KAFKA_LOG_DIRS": "/data"}, mounts=[data])
    broker(machine).append("orders", 7, 100)
    broker(machine).fetch("accounting", "orders", 5)
    assert stopped(machine, container) == 143
    shop(machine, env={"KAFKA_LOG_DIRS": "/data"}, mounts=[data])
    assert broker(machine).lag("accounting", "orders") == 2


def test_who_cannot_reach_what_the_broker_advertises_fails_after_a_minute(machine: Machine) -> None:
    container = shop(machine, env={"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka:9092"})
    outcome = tool(machine, container, "topics", "--list")
    assert outcome.status == 1
    assert "DNS resolution failed for kafka" in outcome.out
    assert "Timed out waiting for a node assignment" in outcome.err


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["bulk", "single", "retain"]), st.integers(1, 50)), max_size=40))
def test_offsets_only_grow_and_what_is_held_is_between_them(steps: list[tuple[str, int]]) -> None:
    partition, now, total = Partition(), 0.0, 0
    for kind, amount in steps:
        now += 30.0
        if kind == "bulk":
            partition.append(amount, 10, now)
            total += amount
        elif kind == "single":
            partition.add(None, b"x" * amount, now)
            total += 1
        else:
            partition.retain(now - amount, -1)
        assert partition.end == total
        assert 0 <= partition.start <= partition.end
        assert partition.size == sum(batch.bytes for batch in partition.batches)
        messages = partition.read(0, 10_000)
        assert [offset for offset, _, _ in messages] == list(range(partition.end - len(messages), partition.end))
