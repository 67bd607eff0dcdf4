"""RabbitMQ: the server of the image, its management port, and its command-line tools."""

from __future__ import annotations

from typing import ClassVar

from srearena.cluster.program_models import (
    PATH,
    Connection,
    Folder,
    HttpRequest,
    HttpResponse,
    Listener,
    Process,
    Program,
    program,
    stop_signal,
    until_stopped,
)
from srearena.cluster.program_models.datastores import Dialogue
from srearena.service.apps.train_ticket.programs.rabbitmq.control import PORT, control, perform
from srearena.service.apps.train_ticket.programs.rabbitmq.node import RabbitNode

MANAGEMENT_PORT = 15672
START_SECONDS = 7.0


@program("rabbitmq", "bitnami/rabbitmq")
class RabbitMq(Program):
    threads = 26
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

    async def run(self, process: Process) -> int:
        if process.binary in ("rabbitmq-diagnostics", "rabbitmqctl"):
            return await control(process)
        words = process.argv[1:]
        if process.binary == "docker-entrypoint.sh" and words and words[0] != "rabbitmq-server":
            process.execute(words, process.env)
        stop = stop_signal(process)
        limit = process.container.config.memory_limit or process.container.host.kernel.memory
        process.set_memory(self.idle_memory)
        node = RabbitNode(process, version=self.version, memory=limit)
        node.log(f"Starting RabbitMQ {self.version} on Erlang 27.3 [jit]")
        if await stop.wait(START_SECONDS):
            return 0
        listeners = self._listen(process, node)
        if isinstance(listeners, str):
            node.log(listeners, "error")
            return 1
        node.log("started TCP listener on [::]:5672")
        node.log(f"Server startup complete; {4 if len(listeners) > 1 else 3} plugins started.")
        await until_stopped(process, stop, listeners, grace=0.0)
        node.log("SIGTERM received - shutting down")
        await process.sleep(1.0)
        return 0

    def _listen(self, process: Process, node: RabbitNode) -> list[Listener] | str:
        async def serve(connection: Connection) -> None:
            await _converse(node, connection)

        listeners: list[Listener] = []
        ports = [PORT, *([MANAGEMENT_PORT] if "management" in self.reference.tag else [])]
        for port in ports:
            try:
                if port == PORT:
                    listeners.append(process.container.namespace.listen(process, port, stream=serve))
                    listeners[-1].server = node
                else:
                    listeners.append(process.container.namespace.listen(process, port, http=_manage))
            except OSError as error:
                return f"Failed to start Ranch listener on {port}: eaddrinuse ({error.strerror})"
        return listeners


async def _converse(node: RabbitNode, connection: Connection) -> None:
    first = await connection.read()
    dialogue = Dialogue.opened(connection, first, "rabbitmq")
    if dialogue is not None:
        while (message := await dialogue.hear()) is not None:
            await node.process.spend(0.001)
            await dialogue.say(perform(node, [str(word) for word in message["words"]]))
    elif first.startswith(b"AMQP"):
        # A real client: its data is read, but AMQP is not implemented.
        while await connection.read():
            await node.process.spend()
    else:
        await connection.write(b"AMQP\x00\x00\x09\x01")


async def _manage(request: HttpRequest) -> HttpResponse:
    if request.path.startswith("/api/"):
        body = b'{"error":"not_authorized","reason":"Login failed"}'
        return HttpResponse(401, body, {"Content-Type": "application/json"})
    return HttpResponse(200, b"<html><title>RabbitMQ Management</title></html>", {"Content-Type": "text/html"})
