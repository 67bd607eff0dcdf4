"""Log lines about requests: their texts, filled when they are written.

A text has `{name}` for what differs from line to line; what is not a name of `_WORDS` stays as it is, since many
programs log JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from uuid import UUID

from srearena.cluster.embedded.traffic.graph import Call, Node
from srearena.cluster.embedded.traffic.servers import Instance

_NAME = re.compile(r"\{(\w+)\}")
_KEEPALIVE_REQUESTS = 100
"""Requests on a connection before the server closes it: nginx's default before 1.19.10, which the applications have."""
LOCAL = "127.0.0.1"
"""The client of requests that come in through the pod's own loopback interface, as a port-forward's do."""


@dataclass(slots=True)
class RequestWords:
    """What a line tells about one request."""

    node: Node
    random: Random
    error: str = ""
    seconds: float = 0.0
    client: str = LOCAL
    trace_id: int = 0
    """0 for requests that left no trace."""
    span_id: int = 0

    @property
    def route(self) -> str:
        node = self.node
        return node.route or (node.operation.route if node.operation is not None else "") or node.name

    @property
    def status(self) -> int:
        operation = self.node.operation
        return operation.status if self.error and operation is not None else 200

    @property
    def connection(self) -> int:
        """The number of the connection: it grows with the requests that the program has served."""
        server = self.node.server
        served = server.served if isinstance(server, Instance) else 0.0
        return 1 + int(served / _KEEPALIVE_REQUESTS) + self.random.randrange(10)


_WORDS: dict[str, Callable[[RequestWords], object]] = {
    "error": lambda words: words.error,
    "trace_id": lambda words: f"{words.trace_id:032x}",
    "span_id": lambda words: f"{words.span_id:016x}",
    "milliseconds": lambda words: f"{words.seconds * 1000:.0f}",
    "seconds": lambda words: f"{words.seconds:.3f}",
    "status": lambda words: words.status,
    "bytes": lambda words: round(words.node.payload),
    "route": lambda words: words.route,
    "path": lambda words: words.route.partition(" ")[2],
    "method": lambda words: words.route.partition(" ")[0],
    "client": lambda words: words.client,
    "client_port": lambda words: words.random.randrange(32768, 61000),
    "connection": lambda words: words.connection,
    "thread": lambda words: words.random.randrange(1, 10),
    "id": lambda words: f"{words.random.getrandbits(32):08x}",
    "uuid": lambda words: UUID(int=words.random.getrandbits(128), version=4),
    "number": lambda words: words.random.randrange(1000),
}


@dataclass(slots=True)
class LogLine:
    """A line that a program will write at a time."""

    time: float
    instance: Instance
    text: str
    words: RequestWords
    origin: Node | Call
    """What it is about: a request at a server, or a failed call."""

    def write(self) -> None:
        if self.instance.alive:
            self.instance.write_log(fill_words(self.instance, self.text, self.words))


def fill_words(instance: Instance, text: str, words: RequestWords) -> str:
    """Fill settings and the words of a request into a text."""
    parts = _split(instance.settings.fill(text))
    if len(parts) == 1:
        return parts[0]
    filled = list(parts)
    for place in range(1, len(parts), 2):
        name = parts[place]
        word = _WORDS.get(name)
        if word is not None:
            filled[place] = str(word(words))
        else:
            filled[place] = instance.timestamp() if name == "time" else f"{{{name}}}"
    return "".join(filled)


@lru_cache(maxsize=4096)
def _split(text: str) -> tuple[str, ...]:
    """Texts and names by turns."""
    return tuple(_NAME.split(text))
