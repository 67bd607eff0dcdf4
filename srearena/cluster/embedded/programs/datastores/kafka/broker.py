"""A running Kafka broker: topics, consumer groups, its memory and its disk.

Memory is a JVM's: the heap is touched as far as requests push it and never given back, and each network thread keeps
a buffer as large as the largest message it has seen. A broker that is sent messages far beyond what it was sized for
therefore outgrows its container, which the kernel ends; nothing here decides that it must die.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from srearena.cluster.embedded.clock import Timer
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.datastores.datastore import Login, Refusal
from srearena.cluster.embedded.programs.datastores.disk_watch import DiskWatch
from srearena.cluster.embedded.programs.datastores.kafka.exporter import EXPORTER
from srearena.cluster.embedded.programs.datastores.kafka.partitions import Partition
from srearena.cluster.embedded.programs.log_lines import write_now
from srearena.cluster.embedded.programs.timestamps import stamp

MIB = 1024 * 1024
FLUSH_SECONDS = 5.0
RETENTION_SECONDS = 300.0
OUTSIDE_HEAP = 150 * MIB
IDLE_HEAP = 190 * MIB
HALF_LIFE = 2.0
"""Seconds in which the collector clears half of what requests left on the heap."""
COPIES = 3
"""How often a message lies on the heap while it is handled."""
THREADS = 20
"""Connections that send at the same time, at most, each with a buffer of its own."""
MEMBER_SECONDS = 45.0
"""A group's member that has not been heard for so long is gone."""
_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(slots=True)
class Topic:
    name: str
    partitions: list[Partition]
    settings: dict[str, str] = field(default_factory=dict)
    turn: int = 0

    @property
    def end(self) -> int:
        return sum(partition.end for partition in self.partitions)

    @property
    def size(self) -> int:
        return sum(partition.size for partition in self.partitions)


@dataclass(slots=True)
class Group:
    name: str
    committed: dict[str, list[int]] = field(default_factory=dict)
    heard_at: float = float("-inf")
    member: str = ""
    host: str = ""


class KafkaBroker:
    exporter = EXPORTER

    def __init__(
        self, process: Process, settings: Mapping[str, str], *, heap: int, version: str, node: int = 1
    ) -> None:
        self.process = process
        self.settings = dict(settings)
        self.version = version
        self.node = node
        self.heap = heap
        self.epoch = 0
        self.logs: dict[str, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.folder = self.settings["log.dirs"].split(",")[0]
        self.largest = 0
        self.disk = DiskWatch(process, self.folder, self._moved)
        self._pressure = 0.0
        self._pressed_at = process.clock.now
        self._touched = min(heap, IDLE_HEAP)
        self._buffers = 0
        self._flush: Timer | None = None
        process.clock.after(RETENTION_SECONDS, self._retention)

    def _moved(self) -> None:
        self.epoch += 1

    def log(self, text: str, level: str = "INFO") -> None:
        now = self.process.clock.now
        when = f"{stamp(self.process, '%Y-%m-%d %H:%M:%S')},{int(now % 1 * 1000):03d}"
        write_now(self.process, f"[{when}] {level} {text}\n")

    # --- topics ------------------------------------------------------------------------------------------------

    @property
    def topics(self) -> Mapping[str, int]:
        return {name: len(topic.partitions) for name, topic in self.logs.items()}

    @property
    def partitions(self) -> Mapping[str, list[Partition]]:
        return {name: topic.partitions for name, topic in self.logs.items()}

    def create_topic(self, name: str, partitions: int = 0, settings: Mapping[str, str] | None = None) -> str:
        """Make it; why not, where it cannot be."""
        if name in self.logs:
            return f"Topic '{name}' already exists."
        if not _TOPIC.fullmatch(name) or name in (".", ".."):
            return f"Topic name is invalid: '{name}'"
        count = partitions or int(self.settings["num.partitions"])
        self.logs[name] = Topic(name, [Partition() for _ in range(count)], dict(settings or {}))
        self.log(
            f"[QuorumController id={self.node}] CreateTopics result(s): CreatableTopic(name='{name}', numPartitions="
            f"{count}, replicationFactor=1, assignments=[], configs=[]): SUCCESS "
            "(org.apache.kafka.controller.ReplicationControlManager)"
        )
        for number in range(count):
            self.log(
                f"Created log for partition {name}-{number} in {self.folder}/{name}-{number} with properties {{}} "
                "(kafka.log.LogManager)"
            )
        self._moved()
        self._changed()
        return ""

    def delete_topic(self, name: str) -> bool:
        if self.logs.pop(name, None) is None:
            return False
        for group in self.groups.values():
            group.committed.pop(name, None)
        self.log(
            f"Log for partition {name}-0 is renamed to {self.folder}/{name}-0.-delete and is scheduled for deletion"
        )
        self._moved()
        self._changed()
        return True

    def setting(self, topic: Topic, name: str) -> str:
        """A topic's own, else the broker's."""
        broker = {
            "max.message.bytes": "message.max.bytes",
            "retention.ms": "log.retention.ms",
            "retention.bytes": "log.retention.bytes",
        }
        return topic.settings.get(name, self.settings.get(broker.get(name, name), ""))

    def topic(self, name: str) -> Topic | None:
        """That topic, made where that is allowed."""
        if name not in self.logs and self.settings["auto.create.topics.enable"] == "true":
            self.create_topic(name)
        return self.logs.get(name)

    # --- traffic -----------------------------------------------------------------------------------------------

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None:
        if self.process.done.is_set:
            return Refusal("closed", "Connection to node -1 could not be established. Node may not be available.")
        if action == "connect":
            return None
        if target and target not in self.logs and self.settings["auto.create.topics.enable"] != "true":
            return Refusal("missing", "This server does not host this topic-partition.")
        if action in ("write", "create"):
            state, text = self.disk.look(), "Disk error when trying to access log file on the disk."
            if state:
                return Refusal("full", text) if state == "full" else Refusal("readonly", text)
        return None

    def append(self, topic: str, count: int, size: int) -> Refusal | None:
        refusal = self.refuses(None, "write", topic)
        if refusal is not None:
            return refusal
        found = self.topic(topic)
        if found is None:
            return Refusal("missing", "This server does not host this topic-partition.")
        too_large = self._too_large(found, size)
        if too_large is not None or count <= 0:
            return too_large
        now, parts = self.process.clock.now, found.partitions
        each, rest = divmod(count, len(parts))
        for index in range(len(parts)):
            number = (found.turn + index) % len(parts)
            share = each + (1 if index < rest else 0)
            if share:
                parts[number].append(share, size, now)
        found.turn = (found.turn + rest) % len(parts)
        self._press(count, size)
        self._changed()
        return None

    def _too_large(self, topic: Topic, size: int) -> Refusal | None:
        if size <= int(self.setting(topic, "max.message.bytes")):
            return None
        text = "The request included a message larger than the max message size the server will accept."
        return Refusal("full", text)

    def produce(self, topic: str, key: bytes | None, value: bytes) -> Refusal | None:
        """One message with its contents; keys choose the partition."""
        refusal = self.refuses(None, "write", topic)
        found = self.topic(topic) if refusal is None else None
        if found is None:
            return refusal or Refusal("missing", "This server does not host this topic-partition.")
        too_large = self._too_large(found, len(value))
        if too_large is not None:
            return too_large
        number = (sum(key) if key is not None else found.turn) % len(found.partitions)
        found.turn += key is None
        found.partitions[number].add(key, value, self.process.clock.now)
        self._press(1, len(value))
        self._changed()
        return None

    def group(self, name: str) -> Group:
        if name not in self.groups:
            self.groups[name] = Group(name)
            self.log(
                f"[GroupCoordinator id={self.node} topic=__consumer_offsets partition=0] Dynamic member with unknown "
                f"member id joins group {name} in Empty state (org.apache.kafka.coordinator.group.GroupMetadataManager)"
            )
        return self.groups[name]

    def positions(self, group: Group, topic: Topic) -> list[int]:
        """The committed offsets, one a partition; a new group starts at the beginning."""
        committed = group.committed.setdefault(topic.name, [])
        committed.extend(partition.start for partition in topic.partitions[len(committed) :])
        for number, partition in enumerate(topic.partitions):
            committed[number] = min(max(committed[number], partition.start), partition.end)
        return committed

    def fetch(self, group: str, topic: str, at_most: int) -> int:
        found = self.topic(topic)
        if found is None:
            return 0
        reader = self.group(group)
        reader.heard_at = self.process.clock.now
        committed = self.positions(reader, found)
        left = at_most
        order = sorted(range(len(committed)), key=lambda n: committed[n] - found.partitions[n].end)
        for number in order:
            taken = min(left, found.partitions[number].end - committed[number])
            committed[number] += taken
            left -= taken
        return at_most - left

    def lag(self, group: str, topic: str) -> int:
        found, reader = self.logs.get(topic), self.groups.get(group)
        if found is None:
            return 0
        if reader is None:
            return sum(partition.end - partition.start for partition in found.partitions)
        committed = self.positions(reader, found)
        return sum(partition.end - position for partition, position in zip(found.partitions, committed, strict=True))

    def committed(self, group: str, topic: str) -> int:
        found, reader = self.logs.get(topic), self.groups.get(group)
        return 0 if found is None or reader is None else sum(self.positions(reader, found))

    def active(self, group: Group) -> bool:
        return self.process.clock.now - group.heard_at < MEMBER_SECONDS

    # --- memory and disk ---------------------------------------------------------------------------------------

    def _press(self, count: int, size: int) -> None:
        now = self.process.clock.now
        self._pressure *= 0.5 ** ((now - self._pressed_at) / HALF_LIFE)
        self._pressed_at = now
        self._pressure += count * size * COPIES
        self.largest = max(self.largest, size)
        self._touched = int(min(self.heap, max(self._touched, IDLE_HEAP + self._pressure)))
        at_once = min(THREADS, -(-int(self._pressure) // (COPIES * max(size, 1))))
        self._buffers = max(self._buffers, at_once * size)
        memory = OUTSIDE_HEAP + self._touched + self._buffers
        if memory != self.process.memory:
            self.process.set_memory(memory)

    def _changed(self) -> None:
        if self._flush is None:
            self._flush = self.process.clock.after(FLUSH_SECONDS, self.flush)

    def flush(self) -> None:
        """Write the logs' sizes and the metadata to disk; a disk that takes no more ends the broker."""
        self._flush = None
        if self.process.done.is_set:
            return
        files = self.process.files
        try:
            for name, topic in self.logs.items():
                for number, partition in enumerate(topic.partitions):
                    place = f"{self.folder}/{name}-{number}"
                    files.mkdir(place, 0o755, parents=True)
                    files.truncate(f"{place}/00000000000000000000.log", partition.size)
            files.mkdir(f"{self.folder}/__cluster_metadata-0", 0o755, parents=True)
            files.write_bytes(f"{self.folder}/__cluster_metadata-0/00000000000000000000.log", self._metadata())
        except OSError as error:
            text = f"Error while writing to checkpoint file {self.folder}/recovery-point-offset-checkpoint"
            self.log(f"{text} (org.apache.kafka.storage.internals.log.LogDirFailureChannel)", "ERROR")
            write_now(self.process, f"java.io.IOException: {error.strerror}\n")
            text = f"Shutdown broker because all log dirs in {self.folder} have failed (kafka.log.LogManager)"
            self.log(text, "ERROR")
            self.process.end(1)

    def _metadata(self) -> bytes:
        topics = [
            {"name": t.name, "settings": t.settings, "partitions": [p.stored() for p in t.partitions]}
            for t in self.logs.values()
        ]
        groups = {group.name: group.committed for group in self.groups.values()}
        return json.dumps({"topics": topics, "groups": groups}).encode()

    def load(self) -> None:
        """What an earlier broker left in the directory, if it did."""
        path = f"{self.folder}/__cluster_metadata-0/00000000000000000000.log"
        if not self.process.files.is_file(path):
            return
        data = json.loads(self.process.files.read_bytes(path))
        for stored in data["topics"]:
            partitions = [Partition.restored(each) for each in stored["partitions"]]
            self.logs[stored["name"]] = Topic(stored["name"], partitions, stored["settings"])
        for name, committed in data["groups"].items():
            self.groups[name] = Group(name, committed)

    def _retention(self) -> None:
        if self.process.done.is_set:
            return
        now = self.process.clock.now
        for topic in self.logs.values():
            milliseconds = int(self.setting(topic, "retention.ms"))
            oldest = float("-inf") if milliseconds < 0 else now - milliseconds / 1000
            dropped = sum(part.retain(oldest, int(self.setting(topic, "retention.bytes"))) for part in topic.partitions)
            if dropped:
                self.log(f"[UnifiedLog partition={topic.name}-0, dir={self.folder}] Deleting segments due to retention")
                self._changed()
        self.process.clock.after(RETENTION_SECONDS, self._retention)
