"""etcd: the control plane's own, of which only its health is seen, and members that serve clients of their own.

Clients use the JSON form of the API (`/v3/kv/range` and so on), which the real server offers beside gRPC. There is one
member per cluster; a watch ends with the first changes it reports.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

import orjson

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.system.control_plane import ControlPlaneProgram

_CLIENT_PORT = 2379
_LOG = "member/wal/0000000000000000-0000000000000000.wal"
_WATCH_SECONDS = 1800.0


class BadRequest(Exception):
    """The request cannot be understood or answered; the message is the server's."""


@dataclass(frozen=True, slots=True)
class Change:
    revision: int
    key: bytes
    value: bytes | None
    """None where the key was deleted."""


@dataclass(frozen=True, slots=True)
class KeyValue:
    key: bytes
    value: bytes
    created: int
    modified: int
    version: int

    def document(self) -> Obj:
        return {
            "key": _encoded(self.key),
            "create_revision": str(self.created),
            "mod_revision": str(self.modified),
            "version": str(self.version),
            "value": _encoded(self.value),
        }


class KeyValueStore:
    """Keys with revisions, as a member keeps them; every change is appended to a log that a restart reads."""

    def __init__(self, process: Process, folder: str) -> None:
        self._process = process
        self._path = f"{folder}/{_LOG}"
        self.revision = 1
        self.history: list[Change] = []
        self._keys: dict[bytes, KeyValue] = {}
        self.changed: Signal[None] = Signal(process.clock)
        files = process.files
        if files.is_file(self._path):
            for line in files.read_bytes(self._path).splitlines():
                key, value = orjson.loads(line)
                self._apply(base64.b64decode(key), None if value is None else base64.b64decode(value))
        else:
            files.mkdir(self._path.rpartition("/")[0], 0o700, parents=True)

    def range(self, key: bytes, end: bytes) -> list[KeyValue]:
        """The keys from `key` up to `end`, or exactly `key` without an end."""
        if not end:
            found = self._keys.get(key)
            return [found] if found is not None else []
        # A zero byte as the end means all keys from there on.
        return [self._keys[name] for name in sorted(self._keys) if key <= name and (end == b"\0" or name < end)]

    async def put(self, key: bytes, value: bytes) -> None:
        await self._append(key, value)

    async def delete(self, key: bytes, end: bytes) -> list[KeyValue]:
        found = self.range(key, end)
        for entry in found:
            await self._append(entry.key, None)
        return found

    async def _append(self, key: bytes, value: bytes | None) -> None:
        line = orjson.dumps([_encoded(key), None if value is None else _encoded(value)]) + b"\n"
        await self._process.open(self._path, "a", 0o600).write(line)
        self._apply(key, value)
        self.changed.set(None)
        self.changed = Signal(self._process.clock)

    def _apply(self, key: bytes, value: bytes | None) -> None:
        self.revision += 1
        self.history.append(Change(self.revision, key, value))
        before = self._keys.get(key)
        if value is None:
            self._keys.pop(key, None)
        elif before is None:
            self._keys[key] = KeyValue(key, value, self.revision, self.revision, 1)
        else:
            self._keys[key] = KeyValue(key, value, before.created, self.revision, before.version + 1)


class Member:
    """The JSON API of a member."""

    def __init__(self, process: Process, store: KeyValueStore, version: str) -> None:
        self._process = process
        self._store = store
        self._version = version

    async def answer(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/health":
            return _json({"health": "true", "reason": ""})
        if request.path == "/version":
            cluster = f"{self._version.rpartition('.')[0]}.0"
            return _json({"etcdserver": self._version, "etcdcluster": cluster})
        try:
            body = orjson.loads(request.body or b"{}")
            if not isinstance(body, dict):
                raise BadRequest("json: cannot unmarshal value")
            match request.path:
                case "/v3/kv/range":
                    return _json(self._range(body))
                case "/v3/kv/put":
                    return _json(await self._put(body))
                case "/v3/kv/deleterange":
                    return _json(await self._delete(body))
                case "/v3/kv/txn":
                    return _json(await self._transaction(body))
                case "/v3/watch":
                    return await self._watch(body.get("create_request") or {})
        except (BadRequest, orjson.JSONDecodeError, AttributeError, TypeError) as problem:
            return _json({"error": str(problem), "code": 3, "message": str(problem)}, 400)
        except OSError as problem:
            text = f"etcdserver: {str(problem.strerror).lower()}"
            return _json({"error": text, "code": 13, "message": text}, 500)
        return HttpResponse.text("404 page not found\n", 404)

    def _head(self, **more: Any) -> Obj:
        head = {"cluster_id": "14841639068965178418", "member_id": "10276657743932975437", "raft_term": "2"}
        return {"header": {**head, "revision": str(self._store.revision)}, **more}

    def _range(self, body: Obj) -> Obj:
        found = self._store.range(_bytes(body, "key"), _bytes(body, "range_end"))
        return self._head(kvs=[entry.document() for entry in found], count=str(len(found)))

    async def _put(self, body: Obj) -> Obj:
        key = _bytes(body, "key")
        if not key:
            raise BadRequest("etcdserver: key is not provided")
        await self._store.put(key, _bytes(body, "value"))
        return self._head()

    async def _delete(self, body: Obj) -> Obj:
        found = await self._store.delete(_bytes(body, "key"), _bytes(body, "range_end"))
        return self._head(deleted=str(len(found)), prev_kvs=[entry.document() for entry in found])

    async def _transaction(self, body: Obj) -> Obj:
        succeeded = all(self._holds(comparison) for comparison in body.get("compare") or ())
        responses = []
        for operation in body.get("success" if succeeded else "failure") or ():
            if "request_put" in operation:
                responses.append({"response_put": await self._put(operation["request_put"])})
            elif "request_delete_range" in operation:
                responses.append({"response_delete_range": await self._delete(operation["request_delete_range"])})
            elif "request_range" in operation:
                responses.append({"response_range": self._range(operation["request_range"])})
        return self._head(succeeded=succeeded, responses=responses)

    def _holds(self, comparison: Obj) -> bool:
        """Whether a key has the revision that a transaction requires; other comparisons are not supported."""
        if comparison.get("target") != "MOD" or comparison.get("result", "EQUAL") != "EQUAL":
            raise BadRequest("etcdserver: invalid comparison")
        found = self._store.range(_bytes(comparison, "key"), b"")
        return str(found[0].modified if found else 0) == str(comparison.get("mod_revision", "0"))

    async def _watch(self, create: Obj) -> HttpResponse:
        key, end = _bytes(create, "key"), _bytes(create, "range_end")
        start = int(str(create.get("start_revision") or self._store.revision + 1))
        deadline = self._process.clock.now + _WATCH_SECONDS
        while True:
            events = [
                change
                for change in self._store.history[max(0, start - 2) :]
                if change.key == key or (end and key <= change.key and (end == b"\0" or change.key < end))
            ]
            left = deadline - self._process.clock.now
            if events or left <= 0:
                lines = [self._head(created=True), self._head(events=[_event(change) for change in events])]
                return HttpResponse(200, b"".join(orjson.dumps({"result": line}) + b"\n" for line in lines))
            await self._store.changed.wait(left)


def _event(change: Change) -> Obj:
    head = {"key": _encoded(change.key), "mod_revision": str(change.revision)}
    if change.value is None:
        return {"type": "DELETE", "kv": head}
    return {"type": "PUT", "kv": {**head, "value": _encoded(change.value)}}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _bytes(body: Obj, name: str) -> bytes:
    try:
        return base64.b64decode(body.get(name) or "", validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise BadRequest(f"invalid value for bytes field {name}") from None


def _json(document: Obj, status: int = 200) -> HttpResponse:
    return HttpResponse(status, orjson.dumps(document), {"Content-Type": "application/json"})


@program("etcd")
class EtcdProgram(ControlPlaneProgram):
    entrypoint = ("etcd",)
    binaries: ClassVar[tuple[str, ...]] = ("/usr/local/bin/etcd",)
    port = 2381
    tls = False
    idle_cpu = 0.03
    idle_memory = 48 * 1024**2
    default_version = "3.6.4"
    greeting = (
        '"caller":"embed/etcd.go:140","msg":"configuring peer listeners"}',
        '"caller":"etcdserver/server.go:2170","msg":"published local member to cluster through raft"}',
        '"caller":"embed/serve.go:124","msg":"ready to serve client requests"}',
    )

    def stamp(self, now: float, severity: str = "I") -> str:
        moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return f'{{"level":"info","ts":"{moment}",'

    def line(self, now: float, severity: str, text: str) -> str:
        place, _, fields = text.partition("] ")
        return f'{self.stamp(now)}"caller":"{place}",{fields}}}'

    async def run(self, process: Process) -> int:
        flags = Flags(process.argv[1:])
        urls = flags.get("listen-client-urls")
        if not urls:
            return await super().run(process)
        return await self._serve_clients(process, urls.split(",")[0], flags.get("data-dir", "default.etcd"))

    async def _serve_clients(self, process: Process, url: str, folder: str) -> int:
        address, port = _address(url)
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        try:
            store = KeyValueStore(process, folder)
        except OSError as problem:
            reason = str(problem.strerror).lower()
            text = f'"msg":"cannot access data directory","dir":"{folder}","error":"{reason}"}}'
            await process.error(f"{self.stamp(process.clock.now)}{text}\n")
            return 1
        member = Member(process, store, self.version.partition("-")[0])
        try:
            listener = process.container.namespace.listen(process, port, address=address, http=member.answer)
        except OSError as problem:
            text = f'"msg":"failed to start etcd","error":"{go_bind_error(port, problem)}"}}'
            await process.error(f"{self.stamp(process.clock.now)}{text}\n")
            return 1
        for line in self.greeting:
            await process.error(f"{self.stamp(process.clock.now)}{line}\n")
        await until_stopped(process, stop, [listener])
        return 0


def _address(url: str) -> tuple[str, int]:
    """Address and port of `http://127.0.0.1:2379`."""
    host, _, port = url.partition("://")[2].rstrip("/").rpartition(":")
    return host, int(port) if port.isdigit() and int(port) < 65536 else _CLIENT_PORT
