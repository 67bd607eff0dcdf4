"""Running a command in a container: the WebSocket protocol behind `kubectl exec`, without kubectl.

The connection runs in a short-lived event loop. The library's blocking client reads and writes one TLS connection from
two threads, which Python before 3.13 does not guard: measured, one command in five hundred was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, WebSocketException
from websockets.typing import Subprotocol

from srearena.cluster.base import ClusterUnavailable, DirectApi
from srearena.coroutines import run_blocking
from srearena.service.errors import Unreachable, api_error
from srearena.service.kubeconfig import Access
from srearena.service.transport import USER_AGENT, is_loopback, request_target

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_PROTOCOLS = [Subprotocol("v5.channel.k8s.io"), Subprotocol("v4.channel.k8s.io")]
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_SWITCHING_PROTOCOLS = 101
_CHUNK = 32 * 1024
_LARGEST_MESSAGE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommandResult:
    """Exit status and output of a command."""

    status: int
    output: str
    errors: str

    @property
    def ok(self) -> bool:
        return self.status == 0


def run_command(
    access: Access,
    path: str,
    command: list[str],
    *,
    container: str = "",
    stdin: bytes | None = None,
    timeout: float | None = None,
    direct: DirectApi | None = None,
) -> CommandResult:
    """Run a command through the exec subresource at `path`; a non-zero exit status is no exception."""
    query: dict[str, Any] = {
        "command": command,
        "container": container,
        "stdin": stdin is not None,
        "stdout": True,
        "stderr": True,
    }
    target = request_target(path, query)
    url = f"{access.server.replace('http', 'ws', 1)}{target}"
    options: dict[str, Any] = {"ssl": access.tls} if access.tls is not None else {}
    if access.server_name:
        options["server_hostname"] = access.server_name
    address = urlsplit(url)
    options |= {
        "subprotocols": _PROTOCOLS,
        "additional_headers": access.headers,
        "user_agent_header": USER_AGENT,
        "compression": None,
        "max_size": _LARGEST_MESSAGE,
        "proxy": None if is_loopback(address.hostname or "") else True,
        "open_timeout": timeout,
        "close_timeout": 1,
    }
    try:
        if direct is not None:
            streams = _direct_streams(direct, access, target, stdin, timeout)
        else:
            streams = run_blocking(_streams(url, options, stdin, timeout))
    except InvalidStatus as problem:
        body = bytes(problem.response.body or b"")
        raise api_error(problem.response.status_code, _object(body), body.decode("utf-8", "replace")) from problem
    except TimeoutError as problem:
        raise Unreachable(f"the command {command[0]!r} did not end within {timeout:g} s") from problem
    except (OSError, InvalidHandshake, WebSocketException, ClusterUnavailable) as problem:
        raise Unreachable(f"{address.netloc} cannot be reached: {problem}") from problem
    return CommandResult(
        _exit_status(_object(bytes(streams[_ERROR]))),
        streams[_STDOUT].decode("utf-8", "replace"),
        streams[_STDERR].decode("utf-8", "replace"),
    )


def _direct_streams(
    direct: DirectApi, access: Access, target: str, stdin: bytes | None, timeout: float | None
) -> dict[int, bytearray]:
    """Read what the command writes, by channel, from a server in this process."""
    headers = {**access.headers, "user-agent": USER_AGENT}
    sent = [*_input_messages(stdin), bytes((_CLOSE, _STDIN))] if stdin is not None else []
    reply = direct.converse(target, headers, _PROTOCOLS, sent, timeout)
    if reply.status != _SWITCHING_PROTOCOLS:
        raise api_error(reply.status, _object(reply.body), reply.body.decode("utf-8", "replace"))
    streams = _no_streams()
    for data in reply.messages:
        _add(streams, data)
    return streams


def _no_streams() -> dict[int, bytearray]:
    return {_STDOUT: bytearray(), _STDERR: bytearray(), _ERROR: bytearray()}


def _add(streams: dict[int, bytearray], data: bytes) -> None:
    if data and data[0] in streams:
        streams[data[0]] += data[1:]


def _input_messages(stdin: bytes) -> Iterator[bytes]:
    for start in range(0, len(stdin), _CHUNK):
        yield bytes((_STDIN,)) + stdin[start : start + _CHUNK]


async def _streams(
    url: str, options: dict[str, Any], stdin: bytes | None, timeout: float | None
) -> dict[int, bytearray]:
    """Read what the command writes, by channel, while its input is sent."""
    from websockets.asyncio.client import connect  # slow to import, and few clients run commands

    streams = _no_streams()
    async with connect(url, **options) as socket:
        sending = asyncio.ensure_future(_send(socket, stdin))
        try:
            while True:
                message = await asyncio.wait_for(socket.recv(), timeout)
                _add(streams, message.encode() if isinstance(message, str) else message)
        except ConnectionClosed:
            pass
        finally:
            sending.cancel()
    return streams


async def _send(socket: ClientConnection, stdin: bytes | None) -> None:
    if stdin is None:
        return
    try:
        for message in _input_messages(stdin):
            await socket.send(message)
        if socket.subprotocol == _PROTOCOLS[0]:
            await socket.send(bytes((_CLOSE, _STDIN)))
    except ConnectionClosed:
        pass  # the command ended before it had read all of its input


def _object(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        return None


def _exit_status(status: Any) -> int:
    """The exit status in the Status that ends a command; an error of the node is raised."""
    if not isinstance(status, dict):
        raise Unreachable("the connection closed before the command ended")
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or ()
    code = next((cause.get("message") for cause in causes if cause.get("reason") == "ExitCode"), None)
    if code is None:
        raise api_error(int(status.get("code") or 500), {"kind": "Status", **status})
    return int(code)
