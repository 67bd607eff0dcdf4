"""Message brokers and what they lean on: ZooKeeper, RabbitMQ, NATS. Kafka is in `kafka_server`."""

from __future__ import annotations

from signal import Signals
from typing import ClassVar

from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.base import PATH, Program
from srearena.cluster.embedded.node.programs.registry import program
from srearena.cluster.embedded.node.programs.rootfs import Folder
from srearena.cluster.embedded.node.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.node.programs.timestamps import stamp
from srearena.cluster.embedded.node.reachability import Outcome
from srearena.cluster.embedded.node.sockets import Connection, HttpRequest, HttpResponse, Listener


async def swallow(connection: Connection) -> None:
    """Take whatever a client sends and say nothing."""
    while await connection.read():
        pass


@program("zookeeper", "bitnami/zookeeper", "confluentinc/cp-zookeeper")
class ZooKeeper(Program):
    entrypoint = ("/docker-entrypoint.sh",)
    cmd = ("zkServer.sh", "start-foreground")
    ports = (2181, 2888, 3888, 8080)
    binaries = ("/docker-entrypoint.sh", "/usr/local/bin/zkServer.sh")
    idle_cpu = 0.005
    idle_memory = 90 * 1024 * 1024
    default_version = "3.9.4"

    async def run(self, process: Process) -> int:
        if process.binary == "docker-entrypoint.sh":
            process.execute(process.argv[1:] or list(self.cmd), process.env)

        async def serve(connection: Connection) -> None:
            word = (await connection.read(64)).strip()
            if word == b"ruok":
                await connection.write(b"imok")
            elif word:
                await swallow(connection)

        stop = stop_signal(process)
        await process.write("ZooKeeper JMX enabled by default\nUsing config: /conf/zoo.cfg\n")
        if await stop.wait(1.5):
            return 143
        try:
            listener = process.container.namespace.listen(process, 2181, stream=serve)
        except OSError as error:
            text = f"Unexpected exception, exiting abnormally: java.net.BindException: {error.strerror}"
            await process.error(f"{stamp(process, '%Y-%m-%d %H:%M:%S')},000 [myid:] - ERROR [main] - {text}\n")
            return 1
        process.set_memory(self.idle_memory)
        place = "[main:o.a.z.s.NIOServerCnxnFactory@660] - binding to port 0.0.0.0/0.0.0.0:2181"
        await process.write(f"{stamp(process, '%Y-%m-%d %H:%M:%S')},000 [myid:] - INFO  {place}\n")
        await until_stopped(process, stop, [listener], grace=0.0)
        return 143


@program("rabbitmq", "bitnami/rabbitmq")
class RabbitMq(Program):
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("rabbitmq-server",)
    base = "ubuntu"
    ports = (4369, 5671, 5672, 15691, 15692, 25672)
    binaries = (
        *("/usr/local/bin/docker-entrypoint.sh", "/opt/rabbitmq/sbin/rabbitmq-server"),
        *("/opt/rabbitmq/sbin/rabbitmq-diagnostics", "/opt/rabbitmq/sbin/rabbitmqctl"),
    )
    env: ClassVar = {"PATH": f"/opt/rabbitmq/sbin:{PATH}", "RABBITMQ_VERSION": "4.1.0"}
    folders: ClassVar = {"/var/lib/rabbitmq": Folder(0o777, 999, 999)}
    idle_cpu = 0.01
    idle_memory = 140 * 1024 * 1024
    default_version = "4.1.0"
    start_seconds = 7.0

    async def run(self, process: Process) -> int:
        if process.binary in ("rabbitmq-diagnostics", "rabbitmqctl"):
            return await self._diagnose(process)
        words = process.argv[1:]
        if process.binary == "docker-entrypoint.sh" and words and words[0] != "rabbitmq-server":
            process.execute(words, process.env)
        stop = stop_signal(process)
        await self._log(process, f"Starting RabbitMQ {self.version} on Erlang 27.3 [jit]")
        if await stop.wait(self.start_seconds):
            return 0
        listeners: list[Listener] = []
        with_management = "management" in self.reference.tag
        ports = [5672, *([15672] if with_management else [])]
        for port in ports:
            try:
                if port == 5672:
                    listeners.append(process.container.namespace.listen(process, port, stream=self._greet))
                else:
                    listeners.append(process.container.namespace.listen(process, port, http=self._manage))
            except OSError as error:
                await self._log(
                    process, f"Failed to start Ranch listener on {port}: eaddrinuse ({error.strerror})", "error"
                )
                return 1
        process.set_memory(self.idle_memory)
        await self._log(process, "started TCP listener on [::]:5672")
        await self._log(process, f"Server startup complete; {4 if with_management else 3} plugins started.")
        await until_stopped(process, stop, listeners, grace=0.0)
        await self._log(process, "SIGTERM received - shutting down")
        await process.sleep(1.0)
        return 0

    @staticmethod
    async def _greet(connection: Connection) -> None:
        if (await connection.read(8)).startswith(b"AMQP"):
            await swallow(connection)
        else:
            await connection.write(b"AMQP\x00\x00\x09\x01")

    @staticmethod
    async def _manage(request: HttpRequest) -> HttpResponse:
        if request.path.startswith("/api/"):
            return HttpResponse(
                401, b'{"error":"not_authorized","reason":"Login failed"}', {"Content-Type": "application/json"}
            )
        return HttpResponse(200, b"<html><title>RabbitMQ Management</title></html>", {"Content-Type": "text/html"})

    @staticmethod
    async def _log(process: Process, text: str, level: str = "info") -> None:
        await process.write(f"{stamp(process, '%Y-%m-%d %H:%M:%S.%f')}+00:00 [{level}] <0.230.0> {text}\n")

    async def _diagnose(self, process: Process) -> int:
        result = await process.container.network.connect("127.0.0.1", 5672, timeout=5.0)
        node = f"rabbit@{process.container.host.hostname}"
        if result.outcome is not Outcome.CONNECTED or result.connection is None:
            await process.error(
                f"Error: unable to perform an operation on node '{node}'. Please see diagnostics information "
                "and suggestions below.\n"
            )
            return 69
        result.connection.close()
        if "-q" not in process.argv:
            await process.write(
                f"Will ping {node}. This only checks if the OS process is running and registered.\nPing succeeded\n"
            )
        return 0


@program("nats")
class Nats(Program):
    entrypoint = ("/nats-server",)
    cmd = ("--config", "nats-server.conf")
    base = "scratch"
    ports = (4222, 6222, 8222)
    binaries = ("/nats-server",)
    idle_memory = 12 * 1024 * 1024
    default_version = "2.12.1"
    stop_signal = Signals.SIGTERM

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:], frozenset(("js", "jetstream", "D", "V", "DV")))
        port = flags.port("port", flags.port("p", 4222))
        host = process.container.host.hostname

        async def greet(connection: Connection) -> None:
            await connection.write(
                f'INFO {{"server_name":"{host}","version":"{self.version}","max_payload":1048576}} \r\n'.encode()
            )
            while data := await connection.read():
                if b"PING" in data:
                    await connection.write(b"PONG\r\n")

        async def monitor(request: HttpRequest) -> HttpResponse:
            return HttpResponse(200, b'{"status":"ok"}', {"Content-Type": "application/json"})

        stop = stop_signal(process)
        try:
            listeners = [
                process.container.namespace.listen(process, port, stream=greet),
                process.container.namespace.listen(process, flags.port("m", 8222), http=monitor),
            ]
        except OSError as error:
            await self._log(process, "FTL", f'Error listening on port: 0.0.0.0:{port}, "{go_bind_error(port, error)}"')
            return 1
        process.set_memory(self.idle_memory)
        await self._log(process, "INF", f"Starting nats-server\n[{process.pid}]   Version:  {self.version}")
        await self._log(process, "INF", f"Listening for client connections on 0.0.0.0:{port}")
        await self._log(process, "INF", "Server is ready")
        await until_stopped(process, stop, listeners, grace=0.0)
        await self._log(process, "INF", "Server Exiting..")
        return 1 if stop.value == Signals.SIGINT else 0

    @staticmethod
    async def _log(process: Process, level: str, text: str) -> None:
        await process.error(f"[{process.pid}] {stamp(process, '%Y/%m/%d %H:%M:%S.%f')} [{level}] {text}\n")
