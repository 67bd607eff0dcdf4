"""Established TCP connections: two pipes, an end for each side, and how they close."""

from __future__ import annotations

import errno
from collections.abc import Callable
from zlib import crc32

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.files.streams import CHUNK, OpenFile, Pipe, os_error

_FIRST_INODE, _INODES = 24_000, 900_000
"""Range of the inode numbers of sockets. Chosen: those of a node in use."""


def socket_inode(protocol: str, local: tuple[str, int], peer: tuple[str, int], owner: object | None) -> int:
    """The inode number of a socket, which stays the same as long as it is open; 0 where no process has it."""
    if owner is None:
        return 0
    key = f"{protocol} {local} {peer} {getattr(owner, 'pid', 0)}"
    return _FIRST_INODE + crc32(key.encode()) % _INODES


class Connection:
    """One end of an established TCP connection."""

    __slots__ = ("_incoming", "_on_close", "_outgoing", "_reset", "closed", "local", "owner", "peer")

    def __init__(
        self,
        incoming: Pipe,
        outgoing: Pipe,
        local: tuple[str, int],
        peer: tuple[str, int],
        on_close: Callable[[], object] | None = None,
    ) -> None:
        self._incoming = incoming
        self._outgoing = outgoing
        self._on_close = on_close
        self._reset = False
        self.closed = False
        self.local = local
        self.peer = peer
        self.owner: object | None = None
        """The process that has accepted it; None in the accept queue, and at the client's end."""

    @property
    def incoming(self) -> Pipe:
        """Data from the peer; for readers outside the simulated machine (`read_now`, `watch`)."""
        return self._incoming

    @property
    def outgoing(self) -> Pipe:
        return self._outgoing

    async def read(self, size: int = CHUNK) -> bytes:
        data = await self._incoming.read(size)
        if not data and self._reset:
            raise os_error(errno.ECONNRESET)
        return data

    async def write(self, data: bytes) -> None:
        if self._reset:
            raise os_error(errno.ECONNRESET)
        await self._outgoing.write(data)

    def close_writing(self) -> None:
        """Send FIN; the peer may continue to send."""
        self._outgoing.close_writer()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._outgoing.close_writer()
        self._incoming.close_reader()
        if self._on_close is not None:
            self._on_close()

    def mark_reset(self) -> None:
        """The peer sent RST: reads and writes fail from now on."""
        self._reset = True
        self._incoming.close_writer()


class ConnectionFile(OpenFile):
    """A connection as a descriptor of a process."""

    __slots__ = ("connection",)

    def __init__(self, connection: Connection) -> None:
        super().__init__()
        self.connection = connection

    @property
    def description(self) -> str:  # type: ignore[override]
        one = self.connection
        return f"socket:[{socket_inode('TCP', one.local, one.peer, one.owner or self)}]"

    async def read(self, size: int = CHUNK) -> bytes:
        return await self.connection.read(size)

    async def write(self, data: bytes) -> None:
        await self.connection.write(data)

    def closed(self) -> None:
        self.connection.close()


def connection_pair(
    clock: Clock,
    client: tuple[str, int],
    server: tuple[str, int],
    *,
    on_client_close: Callable[[], object] | None = None,
    on_server_close: Callable[[], object] | None = None,
) -> tuple[Connection, Connection]:
    """The client's and the server's end of a new connection."""
    up, down = Pipe(clock), Pipe(clock)
    return Connection(down, up, client, server, on_client_close), Connection(up, down, server, client, on_server_close)
