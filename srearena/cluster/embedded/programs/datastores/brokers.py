"""Message brokers and what they lean on: ZooKeeper and NATS. Kafka and RabbitMQ have modules of their own."""

from __future__ import annotations

from signal import Signals

from srearena.cluster.embedded.machine.networking.sockets import Connection, HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import stamp


async def swallow(connection: Connection) -> None:
    """Take whatever a client sends and say nothing."""
    while await connection.read():
        pass


@program("zookeeper", "bitnami/zookeeper", "confluentinc/cp-zookeeper")
class ZooKeeper(Program):
    threads = 42
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


@program("nats")
class Nats(Program):
    threads = 10
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
