"""The agent's way into a cluster that is not ours: everything is passed on, and what it makes is written down.

A TLS server on the loopback interface, with a certificate of its own. It holds no rights: the agent's credentials go
through it, and the API server judges them. One request per connection, so that nothing has to be known of HTTP beyond
the head of a request; watches, `exec` and port-forwards are bytes in two directions. Only answers to requests that may
bring an object into being are held back for the moment in which it is noted.
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
from srearena.service.kubeconfig import Access

_LARGEST_HEAD = 1 << 16
_PIECE = 1 << 16
_CREATED = 201
_PATIENCE = 60.0
# /api/v1/persistentvolumes, /apis/apps/v1/namespaces/default/deployments, and with a name behind.
_OBJECTS = re.compile(r"/(?:api|apis/[^/]+)/[^/]+(?:/namespaces/[^/]+)?/[^/]+(?P<name>/[^/]+)?$")
_TALKS = re.compile(r"/(?:exec|attach|portforward|proxy)(?:/|$)")
_APPLY = "application/apply-patch"
Note = Callable[[Mapping[str, Any]], None]


class Door:
    """Open from its making until `close`."""

    def __init__(self, access: Access, note: Note) -> None:
        """`access` is the agent's own: where it would go by itself."""
        self._target = urlsplit(access.server)
        self._tls = access.tls
        self._name = access.server_name or self._target.hostname or ""
        self._note = note
        context, self._authority = server_context()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="door", daemon=True)
        self._thread.start()
        self._tasks: set[asyncio.Task[None]] = set()
        opening = asyncio.run_coroutine_threadsafe(self._open(context), self._loop)
        self._server = opening.result()

    @property
    def server(self) -> str:
        port = self._server.sockets[0].getsockname()[1]
        return f"https://127.0.0.1:{port}{self._target.path}"

    def lead(self, kubeconfig: Path) -> None:
        """Have a kubeconfig lead here; who it is about stays as it is."""
        document = yaml.safe_load(kubeconfig.read_text())
        for entry in document["clusters"]:
            authority = b64encode(self._authority).decode()
            entry["cluster"] = {"server": self.server, "certificate-authority-data": authority}
        kubeconfig.write_text(yaml.safe_dump(document))

    def close(self) -> None:
        """Nobody comes in any more, and who is in has to leave."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._shut(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _open(self, context: ssl.SSLContext) -> asyncio.Server:
        return await asyncio.start_server(self._admit, "127.0.0.1", 0, ssl=context, limit=_LARGEST_HEAD)

    async def _shut(self) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await self._pass_on(reader, writer)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # one side has gone, or does not speak HTTP
        finally:
            await _closed(writer)
            self._tasks.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = _Head.read(await reader.readuntil(b"\r\n\r\n"))
        if "expect" in head.fields:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            away, home = await self._connected()
        except OSError as problem:
            writer.write(_unreachable(problem))
            await writer.drain()
            return
        try:
            home.write(head.rewritten(self._target.netloc, making=head.may_make))
            sending = asyncio.create_task(_pump(reader, home))
            receiving = asyncio.create_task(self._noted(away, writer) if head.may_make else _pump(away, writer))
            try:
                await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
                if head.may_make or (sending.done() and sending.exception()):
                    # The client has gone, but what it asked for may still come about; or the cluster answers before it
                    # has heard everything.
                    await asyncio.wait({receiving}, timeout=_PATIENCE)
            finally:
                for task in (sending, receiving):
                    task.cancel()
                await asyncio.gather(sending, receiving, return_exceptions=True)
        finally:
            await _closed(home)

    async def _noted(self, away: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """An answer, passed on when what it speaks of is on record."""
        reply = await away.read()
        made = _made(reply)
        if made is not None:
            self._note(made)
        writer.write(reply)
        await writer.drain()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        port = self._target.port or (443 if self._tls else 80)
        name = self._name if self._tls else None
        return await asyncio.open_connection(self._target.hostname, port, ssl=self._tls, server_hostname=name)


@dataclass(frozen=True, slots=True)
class _Head:
    method: str
    where: str
    rest: str
    """The version."""
    fields: dict[str, list[str]]

    @classmethod
    def read(cls, data: bytes) -> _Head:
        first, *lines = data.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, where, rest = first.split(" ")
        fields: dict[str, list[str]] = {}
        for line in lines:
            name, _, value = line.partition(":")
            fields.setdefault(name.strip().lower(), []).append(value.strip())
        return cls(method, where, rest, fields)

    @property
    def may_make(self) -> bool:
        """Whether it can bring an object into being."""
        address = urlsplit(self.where)
        path = _OBJECTS.search(address.path)
        if path is None or parse_qs(address.query).get("dryRun"):
            return False
        if self.method == "PATCH":
            return any(kind.startswith(_APPLY) for kind in self.fields.get("content-type", ()))
        return self.method == ("POST" if path["name"] is None else "PUT")

    def rewritten(self, host: str, *, making: bool) -> bytes:
        fields = {name: values for name, values in self.fields.items() if name not in ("host", "expect")}
        if "upgrade" not in fields or not _TALKS.search(urlsplit(self.where).path):
            fields.pop("upgrade", None)
            fields["connection"] = ["close"]
        if making:
            # What is to be read here has to be plain.
            fields.pop("accept-encoding", None)
            if any("json" in value for value in fields.get("accept", ["json"])):
                fields["accept"] = ["application/json"]
        lines = [f"{self.method} {self.where} {self.rest}", f"host: {host}"]
        lines += [f"{name}: {value}" for name, values in fields.items() for value in values]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _made(reply: bytes) -> dict[str, Any] | None:
    """The object of which an answer says that it did not exist before."""
    head, _, body = reply.partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    if len(words) < 2 or words[1] != str(_CREATED).encode():
        return None
    if b"transfer-encoding: chunked" in head.lower():
        body = _joined(body)
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _joined(chunks: bytes) -> bytes:
    body = b""
    while chunks:
        size, _, chunks = chunks.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        if not length:
            break
        body, chunks = body + chunks[:length], chunks[length + 2 :]
    return body


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Everything from one side to the other, as it comes."""
    while data := await reader.read(_PIECE):
        writer.write(data)
        await writer.drain()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError, asyncio.CancelledError, asyncio.TimeoutError):
        await asyncio.wait_for(writer.wait_closed(), 5)


def _unreachable(problem: OSError) -> bytes:
    message = f"the cluster does not answer: {problem}"
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": 502})
    head = "HTTP/1.1 502 Bad Gateway\r\ncontent-type: application/json\r\nconnection: close\r\n"
    return f"{head}content-length: {len(body.encode())}\r\n\r\n{body}".encode()
