"""Messages between a client and the process of an episode: JSON documents over a Unix socket, with file descriptors."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
from collections.abc import Sequence
from typing import Any

from srearena.closeable import Closeable

_HEADER = struct.Struct(">I")
_MOST_DESCRIPTORS = 3


class Hangup(Exception):
    """The other side has closed the connection, or its process has ended."""


class MessageSocket(Closeable):
    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def send(self, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
        data = json.dumps(message, default=str).encode()
        try:
            socket.send_fds(self._socket, [_HEADER.pack(len(data))], list(descriptors))
            self._socket.sendall(data)
        except OSError as problem:
            raise Hangup(str(problem)) from problem

    def receive(self) -> tuple[dict[str, Any], list[int]]:
        """The next message, and the file descriptors that came with it; they belong to the caller."""
        try:
            header, descriptors, _, _ = socket.recv_fds(self._socket, _HEADER.size, _MOST_DESCRIPTORS)
            try:
                header += self._exactly(_HEADER.size - len(header))
                message = json.loads(self._exactly(*_HEADER.unpack(header)))
            except BaseException:
                for descriptor in descriptors:
                    os.close(descriptor)
                raise
        except OSError as problem:
            raise Hangup(str(problem)) from problem
        return message, descriptors

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise Hangup("the connection was closed")
            data += part
        return bytes(data)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.close()
