"""What the command-line tools ask a broker, and what it answers: a table of small functions over plain JSON."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from srearena.cluster.embedded.programs.datastores.kafka.broker import KafkaBroker, Topic
from srearena.cluster.embedded.programs.datastores.kafka.partitions import Partition

Message = dict[str, Any]


class RequestError(Exception):
    """The broker refuses: the exception's class as the tools print it, and its text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


def answer(broker: KafkaBroker, request: Message) -> Message:
    function = REQUESTS.get(str(request.get("ask")))
    if function is None:
        return {"error": "The version of API is not supported.", "kind": "UnsupportedVersionException"}
    try:
        return function(broker, request)
    except RequestError as error:
        return {"error": error.text, "kind": error.kind}


def _topic(broker: KafkaBroker, name: str) -> Topic:
    found = broker.logs.get(name)
    if found is None:
        raise RequestError("UnknownTopicOrPartitionException", "This server does not host this topic-partition.")
    return found


def _topics(broker: KafkaBroker, request: Message) -> Message:
    wanted = request.get("topic")
    names = [str(wanted)] if wanted else sorted(broker.logs)
    rows = []
    for name in names:
        if name in broker.logs:
            topic = broker.logs[name]
            rows.append(
                {"name": name, "partitions": len(topic.partitions), "settings": topic.settings, "leader": broker.node}
            )
    return {"topics": rows}


def _create(broker: KafkaBroker, request: Message) -> Message:
    trouble = broker.create_topic(str(request["topic"]), int(request.get("partitions") or 0), request.get("settings"))
    if trouble:
        kind = "TopicExistsException" if "exists" in trouble else "InvalidTopicException"
        raise RequestError(kind, trouble)
    return {}


def _delete(broker: KafkaBroker, request: Message) -> Message:
    _topic(broker, str(request["topic"]))
    broker.delete_topic(str(request["topic"]))
    return {}


def _grow(broker: KafkaBroker, request: Message) -> Message:
    topic, count = _topic(broker, str(request["topic"])), int(request["partitions"])
    have = len(topic.partitions)
    if count <= have:
        text = f"The topic {topic.name} currently has {have} partition(s); {count} would not be an increase."
        raise RequestError("InvalidPartitionsException", text)
    topic.partitions.extend(Partition() for _ in range(count - have))
    broker.epoch += 1
    return {}


def _offsets(broker: KafkaBroker, request: Message) -> Message:
    wanted = request.get("topic")
    names = [str(wanted)] if wanted else sorted(broker.logs)
    rows = []
    for name in names:
        for number, partition in enumerate(broker.logs[name].partitions if name in broker.logs else ()):
            rows.append([name, number, partition.start if request.get("earliest") else partition.end])
    return {"offsets": rows}


def _groups(broker: KafkaBroker, request: Message) -> Message:
    return {"groups": sorted(broker.groups)}


def _group(broker: KafkaBroker, request: Message) -> Message:
    name = str(request["group"])
    group = broker.groups.get(name)
    if group is None:
        raise RequestError("GroupIdNotFoundException", f"Consumer group '{name}' does not exist.")
    rows = []
    for topic in sorted(group.committed):
        if topic not in broker.logs:
            continue
        offsets = broker.positions(group, broker.logs[topic])
        for number, partition in enumerate(broker.logs[topic].partitions):
            rows.append([topic, number, offsets[number], partition.end])
    active = broker.active(group)
    return {"rows": rows, "active": active, "member": group.member or f"{name}-1", "host": group.host or "/10.244.0.1"}


def _reset(broker: KafkaBroker, request: Message) -> Message:
    name = str(request["group"])
    group = broker.group(name)
    if broker.active(group):
        text = f"Assignments can only be reset if the group '{name}' is inactive, but the current state is Stable."
        raise RequestError("IllegalStateException", text)
    wanted = str(request.get("topic") or "")
    topic, _, numbers = wanted.partition(":")
    rows = []
    for chosen in [topic] if topic else sorted(group.committed):
        found = _topic(broker, chosen)
        offsets = broker.positions(group, found)
        for number, partition in enumerate(found.partitions):
            if numbers and str(number) not in numbers.split(","):
                continue
            moved = _moved(request, offsets[number], partition)
            rows.append([name, chosen, number, moved])
            if request.get("execute"):
                offsets[number] = moved
    broker.epoch += 1
    return {"rows": rows}


def _moved(request: Message, offsets: int, partition: Partition) -> int:
    to = request["to"]
    if to == "earliest":
        return partition.start
    if to == "latest":
        return partition.end
    wanted = offsets + int(request["value"]) if to == "shift" else int(request["value"])
    return min(max(wanted, partition.start), partition.end)


def _delete_group(broker: KafkaBroker, request: Message) -> Message:
    name = str(request["group"])
    group = broker.groups.get(name)
    if group is None:
        raise RequestError("GroupIdNotFoundException", "The group id does not exist.")
    if broker.active(group):
        raise RequestError("GroupNotEmptyException", "The group is not empty.")
    del broker.groups[name]
    return {}


def _produce(broker: KafkaBroker, request: Message) -> Message:
    key = request.get("key")
    value = base64.b64decode(request["value"])
    refusal = broker.produce(str(request["topic"]), None if key is None else str(key).encode(), value)
    if refusal is not None:
        kinds = {"full": "RecordTooLargeException", "missing": "UnknownTopicOrPartitionException"}
        raise RequestError(kinds.get(refusal.kind, "KafkaStorageException"), refusal.message)
    return {}


def _append(broker: KafkaBroker, request: Message) -> Message:
    """Many messages of one size, without contents."""
    refusal = broker.append(str(request["topic"]), int(request["count"]), int(request["size"]))
    if refusal is not None:
        kinds = {"full": "RecordTooLargeException", "missing": "UnknownTopicOrPartitionException"}
        raise RequestError(kinds.get(refusal.kind, "KafkaStorageException"), refusal.message)
    return {}


def _consume(broker: KafkaBroker, request: Message) -> Message:
    """Messages from given positions; with a group, from what it has committed, and committing what is taken."""
    topic = broker.topic(str(request["topic"]))
    if topic is None:
        raise RequestError("UnknownTopicOrPartitionException", "This server does not host this topic-partition.")
    group = broker.group(str(request["group"])) if request.get("group") else None
    positions = request.get("positions")
    if group is not None:
        group.heard_at, group.member = broker.process.clock.now, "console-consumer-1"
        new = topic.name not in group.committed
        positions = broker.positions(group, topic)
        if new and not request.get("beginning"):
            positions[:] = [partition.end for partition in topic.partitions]
    elif positions is None:
        positions = [p.start if request.get("beginning") else p.end for p in topic.partitions]
    only = request.get("partition")
    rows: list[list[Any]] = []
    limit = int(request.get("limit") or 500)
    for number, partition in enumerate(topic.partitions):
        if only is not None and int(only) != number:
            continue
        for offset, key, value in partition.read(max(positions[number], partition.start), limit - len(rows)):
            shown = None if key is None else key.decode(errors="replace")
            rows.append([number, offset, shown, base64.b64encode(value).decode()])
            positions[number] = offset + 1
    return {"rows": rows, "positions": positions}


def _configuration(broker: KafkaBroker, request: Message) -> Message:
    if request["kind"] == "brokers":
        return {"settings": {}, "all": broker.settings}
    return {"settings": _topic(broker, str(request["name"])).settings, "all": broker.settings}


def _configure(broker: KafkaBroker, request: Message) -> Message:
    add, remove = request.get("add") or {}, request.get("remove") or []
    target = broker.settings if request["kind"] == "brokers" else _topic(broker, str(request["name"])).settings
    for name, value in add.items():
        if request["kind"] != "brokers" and name not in TOPIC_SETTINGS:
            raise RequestError("InvalidConfigurationException", f"Unknown topic config name: {name}")
        target[name] = str(value)
    for name in remove:
        target.pop(name, None)
    broker.epoch += 1
    return {}


TOPIC_SETTINGS = frozenset(
    {"retention.ms", "retention.bytes", "max.message.bytes", "cleanup.policy", "segment.bytes", "segment.ms"}
    | {"min.insync.replicas", "compression.type", "delete.retention.ms", "message.timestamp.type"}
)
REQUESTS: dict[str, Callable[[KafkaBroker, Message], Message]] = {
    "topics": _topics,
    "create": _create,
    "delete": _delete,
    "grow": _grow,
    "offsets": _offsets,
    "groups": _groups,
    "group": _group,
    "reset": _reset,
    "delete group": _delete_group,
    "produce": _produce,
    "append": _append,
    "consume": _consume,
    "configuration": _configuration,
    "configure": _configure,
}
