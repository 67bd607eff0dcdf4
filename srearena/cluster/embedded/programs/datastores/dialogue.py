"""How the simulated clients of datastores talk to the simulated servers: JSON messages over a connection.

The real protocols of MongoDB, PostgreSQL and MySQL are not spoken. A conversation opens with a word no real client
sends, so that a server can tell its own clients from strangers (whom it greets in its real protocol, as far as that
goes). Reachability, delay and resets are those of the connection.
"""

from __future__ import annotations

from typing import Any

import orjson

from srearena.cluster.embedded.machine.networking.sockets import Connection

OPENING = b"\x16\x7f\x00\n"
"""An operator who puts another server in a datastore's place can read it, so it names nothing."""


class Dialogue:
    """One end of such a conversation."""

    def __init__(self, connection: Connection, buffer: bytes = b"") -> None:
        self.connection = connection
        self._buffer = buffer

    @classmethod
    def opened(cls, connection: Connection, first: bytes) -> Dialogue | None:
        """The server's end, where what came first is such an opening."""
        return cls(connection, first[len(OPENING) :]) if first.startswith(OPENING) else None

    @classmethod
    async def open(cls, connection: Connection) -> Dialogue:
        """The client's end."""
        await connection.write(OPENING)
        return cls(connection)

    async def say(self, message: dict[str, Any]) -> None:
        await self.connection.write(orjson.dumps(message, option=orjson.OPT_NON_STR_KEYS) + b"\n")

    async def hear(self) -> dict[str, Any] | None:
        """The next message; None when the other side has hung up, or is no such server or client.

        An operator may put any program in the place of a server.
        """
        while b"\n" not in self._buffer:
            data = await self.connection.read()
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            message = orjson.loads(line)
        except orjson.JSONDecodeError:
            message = None
        if isinstance(message, dict):
            return message
        self.connection.close()
        return None

    async def ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """The answer; None where the connection ends before it comes."""
        try:
            await self.say(message)
            return await self.hear()
        except OSError:
            return None
