"""A proxy between the agent and the API server of a shared cluster that records the objects the agent creates.

A TLS server on the loopback interface with its own certificate. It has no rights of its own: the agent's credentials
pass through, and the API server decides. Each connection carries one request, so only the request head is parsed;
watches, `exec` and port-forwards are copied as bytes in both directions. Only the responses to requests that can create
an object are buffered, until the object is recorded.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from srearena.conductor.shared_cluster.certificate import server_context
from srearena.coroutines import serve_until_stopped
from srearena.service.kubeconfig import Access

_LARGEST_HEAD = 1 << 16
_CHUNK = 1 << 16
_CREATED = 201
_RESPONSE_TIMEOUT = 60.0
"""The API server's own default limit for a request, `--request-timeout=1m0s`."""
# /api/v1/persistentvolumes, /apis/apps/v1/namespaces/default/deployments, optionally followed by a name.
_OBJECTS = re.compile(r"/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/[^/]+)?/[^/]+(?P<name>/[^/]+)?$")
_STREAMS = re.compile(r"/(?:exec|attach|portforward|proxy)(?:/|$)")
_APPLY = "application/apply-patch"
Record = Callable[[Mapping[str, Any]], None]


class RecordingProxy:
    """Listens from construction until `close`."""

    def __init__(self, access: Access, record: Record) -> None:
        """Proxy to the API server of `access`, the agent's own; `record` receives each created object."""
        self._target = urlsplit(access.server)
        self._tls = access.tls
        self._name = access.server_name or self._target.hostname or ""
        self._record = record
        context, self._authority = server_context()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=serve_until_stopped, args=(self._loop,), name="recording-proxy", daemon=True
        )
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()
        opening = asyncio.run_coroutine_threadsafe(self._open(context), self._loop)
        self._server = opening.result()

    @property
    def server(self) -> str:
        port = self._server.sockets[0].getsockname()[1]
        return f"https://127.0.0.1:{port}{self._target.path}"

    def rewrite_kubeconfig(self, kubeconfig: Path) -> None:
        """Point a kubeconfig at this proxy; credentials stay unchanged."""
        document = yaml.safe_load(kubeconfig.read_text())
        for entry in document["clusters"]:
            authority = b64encode(self._authority).decode()
            entry["cluster"] = {"server": self.server, "certificate-authority-data": authority}
        kubeconfig.write_text(yaml.safe_dump(document))

    def close(self) -> None:
        """Stop accepting connections and close the open ones."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _open(self, context: ssl.SSLContext) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=context, limit=_LARGEST_HEAD)

    async def _stop(self) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._forward(reader, writer)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # one side has disconnected, or does not speak HTTP
        finally:
            await _close(writer)
            self._tasks.discard(task)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = _Head.read(await reader.readuntil(b"\r\n\r\n"))
        if "expect" in head.fields:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            upstream_reader, upstream_writer = await self._connect()
        except OSError as problem:
            writer.write(_unreachable(problem))
            await writer.drain()
            return
        try:
            upstream_writer.write(head.rewritten(self._target.netloc, creating=head.can_create))
            sending = asyncio.create_task(_pump(reader, upstream_writer))
            respond = self._record_response if head.can_create else _pump
            receiving = asyncio.create_task(respond(upstream_reader, writer))
            try:
                await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
                if head.can_create or (sending.done() and sending.exception()):
                    # The client has disconnected, but the object may still be created; or the API server responds
                    # before it has read the whole request.
                    await asyncio.wait({receiving}, timeout=_RESPONSE_TIMEOUT)
            finally:
                for task in (sending, receiving):
                    task.cancel()
                await asyncio.gather(sending, receiving, return_exceptions=True)
        finally:
            await _close(upstream_writer)

    async def _record_response(self, upstream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Record the created object, if there is one, then send the response to the client."""
        reply = await upstream.read()
        created = _created_object(reply)
        if created is not None:
            self._record(created)
        writer.write(reply)
        await writer.drain()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        port = self._target.port or (443 if self._tls else 80)
        name = self._name if self._tls else None
        return await asyncio.open_connection(self._target.hostname, port, ssl=self._tls, server_hostname=name)


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of an HTTP request."""

    method: str
    target: str
    version: str
    fields: dict[str, list[str]]

    @classmethod
    def read(cls, data: bytes) -> _Head:
        first, *lines = data.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, version = first.split(" ")
        fields: dict[str, list[str]] = {}
        for line in lines:
            name, _, value = line.partition(":")
            fields.setdefault(name.strip().lower(), []).append(value.strip())
        return cls(method, target, version, fields)

    @property
    def can_create(self) -> bool:
        """Whether the request can create an object."""
        address = urlsplit(self.target)
        path = _OBJECTS.search(address.path)
        if path is None or parse_qs(address.query).get("dryRun"):
            return False
        if self.method == "PATCH":
            return any(kind.startswith(_APPLY) for kind in self.fields.get("content-type", ()))
        return self.method == ("POST" if path["name"] is None else "PUT")

    def rewritten(self, host: str, *, creating: bool) -> bytes:
        fields = {name: values for name, values in self.fields.items() if name not in ("host", "expect")}
        if "upgrade" not in fields or not _STREAMS.search(urlsplit(self.target).path):
            fields.pop("upgrade", None)
            fields["connection"] = ["close"]
        if creating:
            # The response is parsed here, so it must be uncompressed JSON.
            fields.pop("accept-encoding", None)
            if any("json" in value for value in fields.get("accept", ["json"])):
                fields["accept"] = ["application/json"]
        lines = [f"{self.method} {self.target} {self.version}", f"host: {host}"]
        lines += [f"{name}: {value}" for name, values in fields.items() for value in values]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _created_object(reply: bytes) -> dict[str, Any] | None:
    """Return the object of a `201 Created` response; None for any other response."""
    head, _, body = reply.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or words[1] != str(_CREATED).encode():
        return None
    if b"transfer-encoding: chunked" in head.lower():
        body = _dechunk(body)
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _dechunk(chunks: bytes) -> bytes:
    body = b""
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        if not length:
            break
        body, chunks = body + chunks[:length], chunks[length + 2 :]
    return body


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes from one side to the other until it ends."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, asyncio.CancelledError, asyncio.TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), 5)


def _unreachable(problem: OSError) -> bytes:
    message = f"the API server of the cluster does not respond: {problem}"
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": 502})
    head = "HTTP/1.1 502 Bad Gateway\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return f"{head}content-length: {len(body.encode())}\r\n\r\n{body}".encode()
