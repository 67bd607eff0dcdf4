"""agnhost guestbook: a key-value store with replicas, and a front end that writes to one and reads from the others."""

from __future__ import annotations

import json
from urllib.parse import urlencode

from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import command, log_time, serve
from srearena.cluster.embedded.programs.serving import Flags

_PATIENCE = 120.0
_PAUSE = 2.0
_DIAL_SECONDS = 5.0
_HOSTS = {"get": "agnhost-replica", "set": "agnhost-primary"}
"""The Services that a front end uses, by what it does."""


@command("guestbook")
async def guestbook(process: Process, flags: Flags) -> int:
    node = _Node(process, flags.port("backend-port", 6379))
    primary = flags.get("replicaof")
    if primary:
        process.spawn_thread(node.register(primary))
    return await serve(process, {flags.port("http-port", 80): node.answer})


class _Node:
    def __init__(self, process: Process, backend_port: int) -> None:
        self._process = process
        self._port = backend_port
        self._data: dict[str, str] = {}
        self._replicas: list[str] = []

    async def _log(self, text: str) -> None:
        await self._process.error(f"{log_time(self._process)} {text}\n")

    async def _dial(self, server: str, path: str, **query: str) -> HttpResponse | None:
        request = HttpRequest("GET", f"/{path}?{urlencode(query)}", {"Host": f"{server}:{self._port}"})
        network = self._process.container.network
        return (await network.http(server, self._port, request, timeout=_DIAL_SECONDS)).response

    async def register(self, primary: str) -> None:
        """Have the primary send its data now and its changes later."""
        process = self._process
        deadline = process.clock.now + _PATIENCE
        while process.clock.now < deadline:
            response = await self._dial(primary, "register", host=process.container.namespace.address)
            if response is not None and response.status == 200 and self._take(response.body):
                await self._log(f"Registered to node: {primary}")
                return
            await self._log(f"encountered error while registering to primary. Retrying in {_PAUSE:g}s.")
            await process.sleep(_PAUSE)
        await self._log("Timed out while registering to primary.")
        process.end(1)

    def _take(self, body: bytes) -> bool:
        """Take over what the primary sent; False where it is no primary."""
        try:
            self._data |= json.loads(body)["data"]
        except (ValueError, KeyError, TypeError):
            return False
        return True

    async def answer(self, request: HttpRequest) -> HttpResponse:
        query = {name: values[-1] for name, values in request.query.items()}
        await self._log(f"{request.method} {request.target}")
        key = query.get("key", "")
        match request.path:
            case "/register":
                self._replicas.append(query.get("host", ""))
                return _document({"data": self._data})
            case "/get":
                return _document({"data": self._data.get(key, "") if key else self._data})
            case "/set":
                return await self._set(key, query.get("value", ""))
            case "/guestbook":
                return await self._forward(query.get("cmd", "").lower(), key, query.get("value", ""))
        return HttpResponse.text("404 page not found\n", 404)

    async def _set(self, key: str, value: str) -> HttpResponse:
        if not key:
            return HttpResponse.text("cannot set with empty key.\n", 400)
        self._data[key] = value
        for replica in self._replicas:
            if await self._dial(replica, "set", key=key, value=value) is None:
                return HttpResponse.text(f"encountered error while propagating to replica '{replica}'\n", 417)
        return _document({"message": "Updated"})

    async def _forward(self, verb: str, key: str, value: str) -> HttpResponse:
        if verb not in _HOSTS:
            return HttpResponse.text(f"unsupported cmd: '{verb}'\n", 400)
        response = await self._dial(_HOSTS[verb], verb, key=key, value=value)
        if response is None:
            return HttpResponse.text(f"encountered error: {_HOSTS[verb]} cannot be reached\n", 417)
        return HttpResponse.text(response.body.decode(errors="replace"), response.status)


def _document(content: dict[str, object]) -> HttpResponse:
    return HttpResponse.text(json.dumps(content, separators=(",", ":")))
