"""A running RabbitMQ node: virtual host `/`, its queues, users and connections, and the memory alarm.

Above the high watermark (a share of its memory limit) publishers are blocked until consumers have freed memory; the
refusal is "locked", since a blocked connection gets no response.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from srearena.cluster.program_models import Process, stamp, write_now
from srearena.cluster.program_models.datastores import Login, Record, Refusal

OVERHEAD = 700
"""Bytes of memory per queued message beyond its body."""
WATERMARK = 0.6


@dataclass(slots=True)
class Queue:
    name: str
    messages: int = 0
    size: int = 0
    published: int = 0
    consumers: dict[str, int] = field(default_factory=dict)
    durable: bool = True


@dataclass(slots=True)
class User:
    name: str
    password: str
    tags: list[str] = field(default_factory=list)
    permitted: bool = True
    """Whether it has permissions on the virtual host."""


class RabbitNode:
    def __init__(self, process: Process, *, version: str, memory: int) -> None:
        self.process = process
        self.version = version
        self.memory_limit = int(memory * WATERMARK)
        self.epoch = 0
        self.queues: dict[str, Queue] = {}
        self.pools: dict[str, tuple[int, str]] = {}
        """By client: connections, and the user they logged in as."""
        name = process.env.get("RABBITMQ_DEFAULT_USER", "guest")
        password = process.env.get("RABBITMQ_DEFAULT_PASS", "guest")
        self.users: dict[str, User] = {name: User(name, password, ["administrator"])}
        self.base_memory = process.memory
        self.alarm = False

    def log(self, text: str, level: str = "info") -> None:
        when = stamp(self.process, "%Y-%m-%d %H:%M:%S.%f")
        write_now(self.process, f"{when}+00:00 [{level}] <0.230.0> {text}\n")

    # --- traffic -----------------------------------------------------------------------------------------------

    def refuses(self, login: Login | None, action: str, target: str) -> Refusal | None:
        if self.process.done.is_set:
            return Refusal("closed", "java.net.ConnectException: Connection refused")
        who = login if login is not None and login.user else Login("guest", "guest")
        user = self.users.get(who.user)
        if user is None or (action == "connect" and user.password != who.password):
            text = "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN. "
            return Refusal("auth", f"{text}For details see the broker logfile.")
        if not user.permitted:
            text = f"access to vhost '/' refused for user '{who.user}'"
            return Refusal("permission", f"NOT_ALLOWED - {text}")
        if action == "read" and target and target not in self.queues:
            return Refusal("missing", f"NOT_FOUND - no queue '{target}' in vhost '/'")
        if action == "write" and self.alarm:
            return Refusal("locked", "connection blocked: low on memory")
        return None

    def declare(self, name: str) -> Queue:
        if name not in self.queues:
            self.queues[name] = Queue(name)
            self.epoch += 1
        return self.queues[name]

    def publish(self, queue: str, count: int, size: int) -> Refusal | None:
        """Publish messages of `size` bytes to a queue, which is created if necessary."""
        refusal = self.refuses(self._default_login(), "write", queue)
        if refusal is not None:
            return refusal
        destination = self.declare(queue)
        destination.messages += count
        destination.size += count * size
        destination.published += count
        self._account()
        return None

    def consume(self, queue: str, at_most: int) -> int:
        """Consume up to `at_most` messages; returns how many there were."""
        source = self.queues.get(queue)
        if source is None or not source.messages:
            return 0
        count = min(at_most, source.messages)
        source.size -= source.size * count // source.messages
        source.messages -= count
        self._account()
        return count

    def subscribe(self, queue: str, client: str, consumers: int) -> None:
        """Set the number of a client's consumers on a queue."""
        source = self.declare(queue)
        if consumers > 0:
            source.consumers[client] = consumers
        else:
            source.consumers.pop(client, None)

    def _default_login(self) -> Login:
        user = next(iter(self.users.values()), User("", ""))
        return Login(user.name, user.password)

    def _account(self) -> None:
        waiting = sum(queue.size + queue.messages * OVERHEAD for queue in self.queues.values())
        self.process.set_memory(self.base_memory + waiting)
        above = self.process.memory > self.memory_limit
        if above != self.alarm:
            self.alarm = above
            self.epoch += 1
            name = f"rabbit@{self.process.container.host.hostname}"
            if above:
                self.log(
                    f"vm_memory_high_watermark set. Memory used:{self.process.memory} allowed:{self.memory_limit}",
                    "warning",
                )
                self.log(f"memory resource limit alarm set on node {name}.", "warning")
            else:
                self.log(f"memory resource limit alarm cleared on node '{name}'", "warning")

    def put(self, database: str, target: str, records: Sequence[Record]) -> Refusal | None:
        return self.publish(target, len(records), 200)

    def count(self, database: str, target: str) -> int:
        return self.queues[target].messages if target in self.queues else 0

    def attach(self, client: str, login: Login | None, sessions: int, address: str = "") -> Refusal | None:
        connections = self.pools.get(client, (0, ""))[0]
        if sessions <= 0:
            self.pools.pop(client, None)
            for queue in self.queues.values():
                queue.consumers.pop(client, None)
            return None
        refusal = self.refuses(login, "connect", "") if sessions > connections else None
        who = login.user if login is not None and login.user else "guest"
        if refusal is not None:
            self.log(f"Error on AMQP connection ({client} -> 0.0.0.0:5672, state: starting):", "error")
            self.log(f"PLAIN login refused: user '{who}' - invalid credentials", "error")
            return refusal
        if sessions > connections:
            self.log(
                f"connection ({client} -> 0.0.0.0:5672): user '{who}' authenticated and granted access to vhost '/'"
            )
        self.pools[client] = (sessions, who)
        return None

    def attached(self, client: str) -> int:
        return self.pools.get(client, (0, ""))[0]
