"""How the simulated clients of datastores talk to the simulated servers: JSON messages over a connection.

The real protocols of MongoDB, PostgreSQL and MySQL are not spoken. A conversation opens with a word no real client
sends, so that a server can tell its own clients from strangers (whom it greets in its real protocol, as far as that
goes). Reachability, delay and resets are those of the connection.

Each message is authenticated with a key that does not leave the simulator, for its place in the conversation: an
operator can relay a conversation and repeat it from its start, but not make up messages. So both ends may rely on the
fields of what they receive.
"""

from __future__ import annotations

import secrets
from hashlib import blake2b
from typing import Any

import orjson

from srearena.cluster.embedded.machine.networking.sockets import Connection

OPENING = b"\x16\x7f\x00\n"
"""An operator who puts another server in a datastore's place can read it, so it names nothing."""
_KEY = secrets.token_bytes(32)
"""Not derived from the world's seed, which agents may know."""
_DIGEST_SIZE = 16
_LONGEST = 64 * 2**20
"""Bytes of one message; more than MongoDB's limit of 48 MB. A stranger's endless line must not fill the memory."""


class Dialogue:
    """One end of such a conversation."""

    def __init__(self, connection: Connection, protocol: str, *, server: bool, buffer: bytes = b"") -> None:
        self.connection = connection
        self._buffer = buffer
        roles = (f"{protocol} client", f"{protocol} server")
        self._sender, self._receiver = reversed(roles) if server else roles
        self._sent = 0
        self._received = 0

    @classmethod
    def opened(cls, connection: Connection, first: bytes, protocol: str) -> Dialogue | None:
        """The server's end, where what came first is such an opening."""
        if not first.startswith(OPENING):
            return None
        return cls(connection, protocol, server=True, buffer=first[len(OPENING) :])

    @classmethod
    async def open(cls, connection: Connection, protocol: str) -> Dialogue:
        """The client's end."""
        await connection.write(OPENING)
        return cls(connection, protocol, server=False)

    async def say(self, message: dict[str, Any]) -> None:
        content = orjson.dumps(message, option=orjson.OPT_NON_STR_KEYS)
        digest = _digest(self._sender, self._sent, content)
        self._sent += 1
        await self.connection.write(digest + content + b"\n")

    async def hear(self) -> dict[str, Any] | None:
        """The next message; None when the other side has hung up, or is no such server or client.

        An operator may put any program in the place of a server.
        """
        while b"\n" not in self._buffer:
            data = await self.connection.read()
            if not data:
                return None
            self._buffer += data
            if len(self._buffer) > _LONGEST:
                self.connection.close()
                return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        digest, content = line[: 2 * _DIGEST_SIZE], line[2 * _DIGEST_SIZE :]
        if not secrets.compare_digest(digest, _digest(self._receiver, self._received, content)):
            self.connection.close()
            return None
        self._received += 1
        message: dict[str, Any] = orjson.loads(content)
        return message

    async def ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """The answer; None where the connection ends before it comes."""
        try:
            await self.say(message)
            return await self.hear()
        except OSError:
            return None


def _digest(sender: str, number: int, content: bytes) -> bytes:
    state = blake2b(f"{sender} {number}\n".encode(), key=_KEY, digest_size=_DIGEST_SIZE)
    state.update(content)
    return state.hexdigest().encode()
