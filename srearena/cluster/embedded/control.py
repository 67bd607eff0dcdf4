"""The harness's control connection to a cluster in another process: JSON lines over a Unix socket.

Agents have no access: the socket is in a directory that only its owner can enter, and it is not visible in the
Kubernetes API. Each request is `{"operation": ..., ...}`, each answer `{"result": ...}` or
`{"error": text}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

Handler = Callable[[dict[str, Any]], Awaitable[Any]]
_LINE_LIMIT = 1 << 20
_LONGEST_ADDRESS = 100
_DESCRIPTORS = Path("/proc/self/fd")


class ControlError(Exception):
    """The cluster refused the operation, or could not be reached."""


async def serve_control(path: Path, handler: Handler) -> asyncio.Server:
    """Answer control requests until the returned server is closed."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                writer.write(json.dumps(await _answer(handler, line)).encode() + b"\n")
                await writer.drain()
        except (ConnectionError, ValueError):
            return
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        path.unlink(missing_ok=True)
        with _address(path) as address:
            listener.bind(address)
        return await asyncio.start_unix_server(talk, sock=listener, limit=_LINE_LIMIT)
    except BaseException:
        listener.close()
        raise


@contextlib.contextmanager
def _address(path: Path) -> Iterator[str]:
    """The address of a socket: Linux allows 107 bytes, and home folders may be longer than that."""
    if len(os.fsencode(path)) <= _LONGEST_ADDRESS or not _DESCRIPTORS.is_dir():
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield str(_DESCRIPTORS / str(folder) / path.name)
    finally:
        os.close(folder)


async def _answer(handler: Handler, line: bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            return {"error": "a control request is a JSON object"}
        return {"result": await handler(request)}
    except (ControlError, ValueError) as problem:
        return {"error": str(problem)}


class ControlLine:
    """The client side, for use from ordinary threads."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ask(self, operation: str, *, timeout: float | None = None, **arguments: Any) -> Any:
        request = json.dumps({"operation": operation, **arguments}).encode() + b"\n"
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
                line.settimeout(timeout)
                with _address(self._path) as address:
                    line.connect(address)
                line.sendall(request)
                with line.makefile("rb") as answers:
                    answer = json.loads(answers.readline() or b'{"error": "the cluster hung up"}')
        except (OSError, ValueError) as problem:
            raise ControlError(f"cannot talk to the cluster: {problem}") from problem
        if "error" in answer:
            raise ControlError(str(answer["error"]))
        return answer.get("result")
