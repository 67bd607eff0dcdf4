"""rabbitmqctl and rabbitmq-diagnostics: commands run on the node, and the client prints the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from srearena.cluster.program_models import Outcome, Process
from srearena.cluster.program_models.datastores import Dialogue
from srearena.service.apps.train_ticket.programs.rabbitmq.node import Queue, RabbitNode, User

PORT = 5672
START_SECONDS = 1.5


class Refused(Exception):
    """The node rejects the command."""


Rows = list[list[Any]]
_COLUMNS: dict[str, Callable[[Queue], Any]] = {
    "name": lambda queue: queue.name,
    "messages": lambda queue: queue.messages,
    "messages_ready": lambda queue: queue.messages,
    "messages_unacknowledged": lambda queue: 0,
    "consumers": lambda queue: sum(queue.consumers.values()),
    "memory": lambda queue: 14_000 + queue.size,
    "state": lambda queue: "running",
    "durable": lambda queue: "true" if queue.durable else "false",
    "message_bytes": lambda queue: queue.size,
    "type": lambda queue: "classic",
}


def perform(node: RabbitNode, words: list[str]) -> dict[str, Any]:
    """Run one command on the node: {"head": line, "rows": rows} or {"error": text}."""
    command, *args = words
    function = COMMANDS.get(command)
    if function is None:
        return {
            "error": f"Command '{command}' not found. ",
            "code": 64,
        }
    try:
        head, rows = function(node, args)
    except Refused as refused:
        return {"error": str(refused), "code": 65}
    except IndexError:
        return {"error": "Error (argument validation): not enough arguments.", "code": 64}
    return {"head": head, "rows": rows}


def _queues(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    names = [arg for arg in args if not arg.startswith("-")] or ["name", "messages"]
    for name in names:
        if name not in _COLUMNS:
            raise Refused(f"Error (argument validation): Info key `{name}` not found")
    rows: Rows = [list(names)] if node.queues else []
    rows += [[_COLUMNS[name](queue) for name in names] for queue in node.queues.values()]
    return "Timeout: 60.0 seconds ...\nListing queues for vhost / ...", rows


def _users(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    return "Listing users ...", [
        ["user", "tags"],
        *([user.name, f"[{', '.join(user.tags)}]"] for user in node.users.values()),
    ]


def _connections(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    rows: Rows = [["user", "peer_host", "peer_port", "state"]]
    for client, (count, user) in node.pools.items():
        rows += [[user, client, 40000 + number, "blocked" if node.alarm else "running"] for number in range(count)]
    return "Listing connections ...", rows if len(rows) > 1 else []


def _consumers(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    rows: Rows = [["queue_name", "channel_pid", "consumer_tag", "ack_required", "prefetch_count", "active"]]
    for queue in node.queues.values():
        for client, count in queue.consumers.items():
            rows += [
                [queue.name, "<rabbit.1.2.0>", f"amq.ctag-{client}-{n}", "true", 250, "true"] for n in range(count)
            ]
    return "Listing consumers in vhost / ...", rows if len(rows) > 1 else []


def _user(node: RabbitNode, name: str) -> User:
    if name not in node.users:
        raise Refused(f'User "{name}" does not exist')
    return node.users[name]


def _add_user(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    if args[0] in node.users:
        raise Refused(f'User "{args[0]}" already exists')
    node.users[args[0]] = User(args[0], args[1], permitted=False)
    node.epoch += 1
    done = "Done. Don't forget to grant the user permissions to some virtual hosts! "
    return f'Adding user "{args[0]}" ...', [[f"{done}See 'rabbitmqctl help set_permissions' to learn more."]]


def _change_password(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    _user(node, args[0]).password = args[1]
    node.epoch += 1
    return f'Changing password for user "{args[0]}" ...', []


def _delete_user(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    del node.users[_user(node, args[0]).name]
    node.epoch += 1
    return f'Deleting user "{args[0]}" ...', []


def _permit(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    words = args[2:] if args[0] == "-p" else args
    _user(node, words[0]).permitted = True
    node.epoch += 1
    return f'Setting permissions for user "{words[0]}" in vhost "/" ...', []


def _forbid(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    words = args[2:] if args[0] == "-p" else args
    _user(node, words[0]).permitted = False
    node.epoch += 1
    return f'Clearing permissions for user "{words[0]}" in vhost "/" ...', []


def _tags(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    _user(node, args[0]).tags = args[1:]
    return f'Setting tags for user "{args[0]}" to [{", ".join(args[1:])}] ...', []


def _purge(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    if args[0] not in node.queues:
        raise Refused(f"no queue '{args[0]}' in vhost '/'")
    node.consume(args[0], node.queues[args[0]].messages)
    return f"Purging queue '{args[0]}' in vhost '/' ...", []


def _delete_queue(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    if node.queues.pop(args[0], None) is None:
        raise Refused(f"Queue {args[0]} not found.")
    node.epoch += 1
    return f"Deleting queue '{args[0]}' on vhost '/' ...", [["Queue was successfully deleted with 0 ready messages"]]


def _status(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    name = f"rabbit@{node.process.container.host.hostname}"
    waiting = sum(queue.messages for queue in node.queues.values())
    lines = (
        *("Runtime", "", f"OS PID: {node.process.pid}", "OS: Linux"),
        f"Uptime (seconds): {int(node.process.clock.now - node.process.started_at)}",
        *(f"RabbitMQ version: {node.version}", f"Node name: {name}", "", "Alarms", ""),
        "Memory alarm on node " + name if node.alarm else "(none)",
        *("", "Memory", "", f"Total memory used: {node.process.memory / 1024**3:.4f} gb"),
        f"Memory high watermark setting: 0.6 of available memory, computed to: {node.memory_limit / 1024**3:.4f} gb",
        *("", "Totals", "", f"Connection count: {sum(count for count, _ in node.pools.values())}"),
        *(f"Queue count: {len(node.queues)}", f"Message count: {waiting}", "", "Listeners", ""),
        "Interface: [::], port: 5672, protocol: amqp, purpose: AMQP 0-9-1 and AMQP 1.0",
    )
    return f"Status of node {name} ...", [[line] for line in lines]


def _ping(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    name = f"rabbit@{node.process.container.host.hostname}"
    head = (
        f"Will ping {name}. This only checks if the OS process is running and registered with epmd. Timeout: 60000 ms."
    )
    return head, [["Ping succeeded"]]


def _alarms(node: RabbitNode, args: list[str]) -> tuple[str, Rows]:
    if node.alarm:
        raise Refused(f"Error:\nNode rabbit@{node.process.container.host.hostname} reported alarms: memory")
    return "Asking node to report any local resource alarms ...", [["Node reported no local alarms"]]


COMMANDS: dict[str, Callable[[RabbitNode, list[str]], tuple[str, Rows]]] = {
    "list_queues": _queues,
    "list_users": _users,
    "list_connections": _connections,
    "list_consumers": _consumers,
    "add_user": _add_user,
    "change_password": _change_password,
    "delete_user": _delete_user,
    "set_permissions": _permit,
    "clear_permissions": _forbid,
    "set_user_tags": _tags,
    "purge_queue": _purge,
    "delete_queue": _delete_queue,
    "status": _status,
    "ping": _ping,
    "check_local_alarms": _alarms,
    "check_running": _ping,
    "check_port_connectivity": _ping,
}


async def control(process: Process) -> int:
    """Run a command given to rabbitmqctl or rabbitmq-diagnostics."""
    await process.sleep(START_SECONDS)
    quiet = any(word in ("-q", "--quiet", "-s", "--silent") for word in process.argv[1:])
    words = [word for word in process.argv[1:] if word not in ("-q", "--quiet", "-s", "--silent")]
    result = await process.container.network.connect("127.0.0.1", PORT, timeout=5.0)
    node = f"rabbit@{process.container.host.hostname}"
    if result.outcome is not Outcome.CONNECTED or result.connection is None:
        await process.error(
            f"Error: unable to perform an operation on node '{node}'. Please see diagnostics information "
            "and suggestions below.\n"
        )
        return 69
    try:
        dialogue = await Dialogue.open(result.connection, "rabbitmq")
        reply = await dialogue.ask({"words": words or ["help"]})
    except OSError:
        reply = None
    finally:
        result.connection.close()
    if reply is None:
        await process.error(f"Error: unable to perform an operation on node '{node}'.\n")
        return 69
    if "error" in reply:
        text = reply["error"]
        await process.error(f"{text if text.startswith('Error') else f'Error:{chr(10)}{text}'}\n")
        return int(reply["code"])
    if not quiet:
        await process.write(f"{reply['head']}\n")
    await process.write("".join("\t".join(str(cell) for cell in row) + "\n" for row in reply["rows"]))
    return 0
