"""Kafka in KRaft mode, one node: the container's entry point, the broker process, its log, and the tools beside it."""

from __future__ import annotations

import re
from typing import ClassVar

from srearena.cluster.embedded.machine.networking.sockets import Connection, Listener
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import PATH, Program
from srearena.cluster.embedded.programs.datastores.dialogue import Dialogue
from srearena.cluster.embedded.programs.datastores.kafka.broker import IDLE_HEAP, OUTSIDE_HEAP, KafkaBroker
from srearena.cluster.embedded.programs.datastores.kafka.requests import answer
from srearena.cluster.embedded.programs.datastores.kafka.tools import BINARIES, Tool
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.root_filesystem import Folder
from srearena.cluster.embedded.programs.serving import stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import stamp

MIB = 1024 * 1024
DEFAULT_HEAP = 1024 * MIB
REQUEST_COST = 0.0004
DEFAULTS = {
    "num.partitions": "1",
    "auto.create.topics.enable": "true",
    "log.dirs": "/tmp/kraft-combined-logs",
    "log.retention.ms": "604800000",
    "log.retention.bytes": "-1",
    "message.max.bytes": "1048588",
}
_UNITS = {"k": 1024, "m": MIB, "g": 1024 * MIB}


def heap_size(options: str) -> int:
    """What -Xmx says; the image's default without it."""
    found = re.search(r"-Xmx(\d+)([kKmMgG]?)", options)
    return DEFAULT_HEAP if found is None else int(found.group(1)) * _UNITS.get(found.group(2).lower(), 1)


@program("apache/kafka", "bitnami/kafka", "confluentinc/cp-kafka", "kafka", "strimzi/kafka")
class Kafka(Program):
    entrypoint = ("/__cacert_entrypoint.sh",)
    cmd = ("/etc/kafka/docker/run",)
    base = "alpine"
    ports = (9092,)
    binaries = ("/__cacert_entrypoint.sh", "/etc/kafka/docker/run", *BINARIES)
    folders: ClassVar = {
        "/tmp/kafka-logs": Folder(0o777, 1000, 1000),
        "/tmp/kraft-combined-logs": Folder(0o777, 1000, 1000),
        "/var/lib/kafka/data": Folder(0o777, 1000, 1000),
    }
    env: ClassVar = {"PATH": f"/opt/kafka/bin:{PATH}"}
    threads = 78
    idle_cpu = 0.02
    idle_memory = OUTSIDE_HEAP + IDLE_HEAP
    default_version = "4.0.0"
    start_seconds = 5.0

    async def run(self, process: Process) -> int:
        if process.binary.endswith(".sh") and process.binary.startswith("kafka-"):
            return await Tool(process).run()
        if process.binary == "__cacert_entrypoint.sh":
            process.execute(process.argv[1:] or list(self.cmd), process.env)
        settings = _settings(process)
        await self._log(
            process, "Registered `kafka:type=kafka.Log4jController` MBean (kafka.utils.Log4jControllerRegistration$)"
        )
        await self._log(process, "Starting (kafka.server.KafkaRaftServer)")
        stop = stop_signal(process)
        heap = heap_size(process.env.get("KAFKA_HEAP_OPTS", ""))
        await process.allocate(OUTSIDE_HEAP + min(heap, IDLE_HEAP) - process.memory)
        if await stop.wait(self.start_seconds):
            return 143
        broker = KafkaBroker(process, settings, heap=heap, version=self.version)
        if not await self._open(process, broker):
            return 1
        listeners = await self._listen(process, broker)
        if listeners is None:
            return 1
        await self._log(process, f"Kafka version: {self.version} (org.apache.kafka.common.utils.AppInfoParser)")
        await self._log(process, "[KafkaRaftServer nodeId=1] Kafka Server started (kafka.server.KafkaRaftServer)")
        await until_stopped(process, stop, listeners, grace=0.0)
        await self._log(
            process, "Terminating process due to signal SIGTERM (org.apache.kafka.common.utils.LoggingSignalHandler)"
        )
        broker.flush()
        await process.sleep(1.0)
        await self._log(process, "[BrokerServer id=1] shut down completed (kafka.server.BrokerServer)")
        return 143

    async def _open(self, process: Process, broker: KafkaBroker) -> bool:
        try:
            process.files.mkdir(broker.folder, 0o755, parents=True)
            process.files.write_bytes(f"{broker.folder}/meta.properties", b"version=1\nnode.id=1\n")
            broker.load()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "invalid metadata"
            text = (
                f"Failed to create or validate data directory {broker.folder} (org.apache.kafka.storage.internals.log."
            )
            await self._log(process, f"{text}LogDirFailureChannel)\njava.io.IOException: {reason}", "ERROR")
            await self._log(process, "Exiting Kafka due to fatal exception (kafka.Kafka$)", "FATAL")
            return False
        await self._log(process, f"Loading logs from log dirs ArrayBuffer({broker.folder}) (kafka.log.LogManager)")
        return True

    async def _listen(self, process: Process, broker: KafkaBroker) -> list[Listener] | None:
        advertised = _advertised(process)

        async def serve(connection: Connection) -> None:
            first = await connection.read()
            dialogue = Dialogue.opened(connection, first, "kafka")
            while dialogue is None and await connection.read():
                # A real client: heard out, but its protocol is not spoken here.
                await process.spend()
            while dialogue is not None and (message := await dialogue.hear()) is not None:
                await process.spend(REQUEST_COST)
                await dialogue.say({**answer(broker, message), "advertised": advertised})

        listeners: list[Listener] = []
        for port in _ports(process):
            try:
                listener = process.container.namespace.listen(process, port, stream=serve)
            except OSError as error:
                await self._log(process, f"Socket server failed to bind to 0.0.0.0:{port}: {error.strerror}.", "ERROR")
                return None
            listener.server = broker
            listeners.append(listener)
            await self._log(
                process, f"Awaiting socket connections on 0.0.0.0:{port}. (kafka.network.DataPlaneAcceptor)"
            )
        return listeners

    @staticmethod
    async def _log(process: Process, text: str, level: str = "INFO") -> None:
        await process.write(
            f"[{stamp(process, '%Y-%m-%d %H:%M:%S')},{int(process.clock.now % 1 * 1000):03d}] {level} {text}\n"
        )


def _settings(process: Process) -> dict[str, str]:
    """The defaults, and what KAFKA_MESSAGE_MAX_BYTES and its like say (message.max.bytes)."""
    found = dict(DEFAULTS)
    for name, value in process.env.items():
        if name.startswith("KAFKA_") and name not in ("KAFKA_HEAP_OPTS", "KAFKA_OPTS"):
            key = name.removeprefix("KAFKA_").removeprefix("CFG_").lower().replace("_", ".")
            found[key] = value
    if "log.retention.hours" in found:
        found["log.retention.ms"] = str(int(found["log.retention.hours"]) * 3_600_000)
    for name in ("num.partitions", "log.retention.ms", "log.retention.bytes", "message.max.bytes"):
        if not found[name].lstrip("-").isdigit():
            found[name] = DEFAULTS[name]
    return found


def _ports(process: Process) -> list[int]:
    """From KAFKA_LISTENERS, where it is set."""
    text = process.env.get("KAFKA_LISTENERS") or process.env.get("KAFKA_CFG_LISTENERS", "")
    ports = [int(part.rpartition(":")[2]) for part in text.split(",") if part.rpartition(":")[2].isdigit()]
    return list(dict.fromkeys(ports)) or [9092]


def _advertised(process: Process) -> str:
    """Where clients are sent: host:port of the first advertised listener."""
    text = process.env.get("KAFKA_ADVERTISED_LISTENERS") or process.env.get("KAFKA_CFG_ADVERTISED_LISTENERS", "")
    return text.split(",")[0].rpartition("/")[2]
