"""Objects of an extension API server in etcd: one key per object, whose revision is the object's version."""

from __future__ import annotations

import base64
from typing import Any

import orjson

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import ApiError

_SECONDS = 10.0


class EtcdUnavailable(ApiError):
    def __init__(self, why: str) -> None:
        super().__init__(f"Internal error occurred: {why}", code=500, reason="InternalError")


class EtcdStorage:
    def __init__(self, process: Process, url: str, prefix: str) -> None:
        self._process = process
        host, _, port = url.partition("://")[2].rstrip("/").rpartition(":")
        self._host, self._port = host, int(port) if port.isdigit() else 2379
        self._prefix = prefix

    async def healthy(self) -> bool:
        """Whether etcd answers."""
        request = HttpRequest("GET", "/health")
        result = await self._process.container.network.http(self._host, self._port, request, timeout=2.0)
        return result.response is not None and result.response.status == 200

    async def objects(self, folder: str) -> tuple[list[Obj], str]:
        """The objects below a folder and the revision of the list."""
        key = f"{self._prefix}/{folder}/".encode()
        answer = await self._call("/v3/kv/range", {"key": _encoded(key), "range_end": _encoded(_after(key))})
        return [_object(entry) for entry in answer.get("kvs") or ()], str(answer["header"]["revision"])

    async def get(self, path: str) -> Obj | None:
        answer = await self._call("/v3/kv/range", {"key": self._key(path)})
        found = answer.get("kvs") or ()
        return _object(found[0]) if found else None

    async def put(self, path: str, obj: Obj, revision: str) -> Obj | None:
        """Store an object if its key has this revision ("0": does not exist); None where it has another."""
        metadata = {key: value for key, value in obj["metadata"].items() if key != "resourceVersion"}
        value = _encoded(orjson.dumps({**obj, "metadata": metadata}))
        put = {"request_put": {"key": self._key(path), "value": value}}
        answer = await self._compared(path, revision, put)
        if not answer.get("succeeded"):
            return None
        return {**obj, "metadata": {**metadata, "resourceVersion": str(answer["header"]["revision"])}}

    async def delete(self, path: str, revision: str) -> bool:
        """Delete an object that has this revision; False where it has another."""
        answer = await self._compared(path, revision, {"request_delete_range": {"key": self._key(path)}})
        return bool(answer.get("succeeded"))

    async def changes(self, folder: str, revision: str) -> list[tuple[str, Obj | None, str]]:
        """Wait for changes below a folder after a revision: (path, object or None where deleted, revision)."""
        key = f"{self._prefix}/{folder}/".encode()
        start = str(int(revision) + 1)
        wanted = {"key": _encoded(key), "range_end": _encoded(_after(key)), "start_revision": start}
        lines = (await self._body("/v3/watch", {"create_request": wanted}, None)).splitlines()
        found = []
        for line in lines:
            for event in orjson.loads(line)["result"].get("events") or ():
                entry = event["kv"]
                path = base64.b64decode(entry["key"]).decode().removeprefix(f"{self._prefix}/")
                obj = _object(entry) if event["type"] == "PUT" else None
                found.append((path, obj, str(entry["mod_revision"])))
        return found

    def _key(self, path: str) -> str:
        return _encoded(f"{self._prefix}/{path}".encode())

    async def _compared(self, path: str, revision: str, operation: Obj) -> Obj:
        comparison = {"key": self._key(path), "target": "MOD", "result": "EQUAL", "mod_revision": revision}
        return await self._call("/v3/kv/txn", {"compare": [comparison], "success": [operation]})

    async def _call(self, path: str, body: Obj) -> Obj:
        found: Any = orjson.loads(await self._body(path, body, _SECONDS))
        if not isinstance(found, dict) or "header" not in found:
            raise EtcdUnavailable("etcdserver: malformed response")
        return found

    async def _body(self, path: str, body: Obj, timeout: float | None) -> bytes:
        headers = {"Content-Type": "application/json"}
        request = HttpRequest("POST", path, headers, orjson.dumps(body))
        result = await self._process.container.network.http(self._host, self._port, request, timeout=timeout)
        response = result.response
        if response is None:
            address = f"{self._host}:{self._port}"
            raise EtcdUnavailable(
                f'rpc error: code = Unavailable desc = "transport: dial tcp {address}: {result.outcome}"'
            )
        if response.status != 200:
            raise EtcdUnavailable(response.body[:200].decode(errors="replace"))
        return response.body


def _object(entry: Obj) -> Obj:
    obj: Obj = orjson.loads(base64.b64decode(entry["value"]))
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(entry["mod_revision"])}}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _after(prefix: bytes) -> bytes:
    """The first key after all that begin with a prefix (which ends with a slash)."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
