"""Metrics of a Kafka server, under the names of its usual exporter."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from srearena.cluster.embedded.machine.exporter import Exporter, Sample

if TYPE_CHECKING:
    from srearena.cluster.embedded.programs.datastores.kafka.broker import KafkaBroker


def _samples(broker: KafkaBroker) -> Iterable[Sample]:
    for name, topic in sorted(broker.logs.items()):
        yield "kafka_topic_partitions", {"topic": name}, len(topic.partitions)
        for number, partition in enumerate(topic.partitions):
            labels = {"topic": name, "partition": str(number)}
            yield "kafka_topic_partition_current_offset", labels, partition.end
            yield "kafka_topic_partition_oldest_offset", labels, partition.start
    for group in sorted(broker.groups.values(), key=lambda group: group.name):
        yield "kafka_consumergroup_members", {"consumergroup": group.name}, broker.active(group)
        for name, offsets in sorted(group.committed.items()):
            read = broker.logs.get(name)
            for number, (partition, offset) in enumerate(zip(read.partitions if read else (), offsets, strict=False)):
                labels = {"consumergroup": group.name, "topic": name, "partition": str(number)}
                reached = min(max(offset, partition.start), partition.end)
                yield "kafka_consumergroup_current_offset", labels, reached
                yield "kafka_consumergroup_lag", labels, partition.end - reached


EXPORTER = Exporter("kafka-exporter", "kafka_brokers", _samples)
