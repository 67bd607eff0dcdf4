"""Running a command in a container: the WebSocket protocol behind `kubectl exec`, without kubectl."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import orjson
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus, WebSocketException
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from srearena.service.errors import Unreachable, refusal
from srearena.service.kubeconfig import Access
from srearena.service.transport import USER_AGENT, is_loopback, target

_PROTOCOLS = [Subprotocol("v5.channel.k8s.io"), Subprotocol("v4.channel.k8s.io")]
_STDIN, _STDOUT, _STDERR, _ERROR, _RESIZE, _CLOSE = 0, 1, 2, 3, 4, 255
_CHUNK = 32 * 1024
_LARGEST_MESSAGE = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that ran to its end."""

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
) -> Finished:
    """Run a command through the exec subresource at `path`; a command that fails is a result, not an exception."""
    query: dict[str, Any] = {
        "command": command,
        "container": container,
        "stdin": stdin is not None,
        "stdout": True,
        "stderr": True,
    }
    url = f"{access.server.replace('http', 'ws', 1)}{target(path, query)}"
    options: dict[str, Any] = {"ssl": access.tls} if access.tls is not None else {}
    if access.server_name:
        options["server_hostname"] = access.server_name
    streams: dict[int, bytearray] = {_STDOUT: bytearray(), _STDERR: bytearray(), _ERROR: bytearray()}
    try:
        with connect(
            url,
            subprotocols=_PROTOCOLS,
            additional_headers=access.headers,
            user_agent_header=USER_AGENT,
            compression=None,
            max_size=_LARGEST_MESSAGE,
            proxy=None if is_loopback(urlsplit(url).hostname or "") else True,
            open_timeout=timeout,
            close_timeout=1,
            **options,
        ) as socket:
            if stdin is not None:
                for start in range(0, len(stdin), _CHUNK):
                    socket.send(bytes((_STDIN,)) + stdin[start : start + _CHUNK])
                if socket.subprotocol == _PROTOCOLS[0]:
                    socket.send(bytes((_CLOSE, _STDIN)))
            while True:
                try:
                    message = socket.recv(timeout)
                except ConnectionClosed:
                    break
                data = message.encode() if isinstance(message, str) else message
                if data and data[0] in streams:
                    streams[data[0]] += data[1:]
    except InvalidStatus as problem:
        body = bytes(problem.response.body or b"")
        raise refusal(problem.response.status_code, _object(body), body.decode("utf-8", "replace")) from problem
    except TimeoutError as problem:
        raise Unreachable(f"the command {command[0]!r} did not end within {timeout:g} s") from problem
    except (OSError, InvalidHandshake, WebSocketException) as problem:
        raise Unreachable(f"{urlsplit(url).netloc} cannot be reached: {problem}") from problem
    return Finished(
        _exit_status(_object(bytes(streams[_ERROR]))),
        streams[_STDOUT].decode("utf-8", "replace"),
        streams[_STDERR].decode("utf-8", "replace"),
    )


def _object(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        return None


def _exit_status(status: Any) -> int:
    """The exit status in the Status that ends a command; a refusal by the node is an exception."""
    if not isinstance(status, dict):
        raise Unreachable("the connection closed before the command ended")
    if status.get("status") == "Success":
        return 0
    causes = (status.get("details") or {}).get("causes") or ()
    code = next((cause.get("message") for cause in causes if cause.get("reason") == "ExitCode"), None)
    if code is None:
        raise refusal(int(status.get("code") or 500), {"kind": "Status", **status})
    return int(code)
