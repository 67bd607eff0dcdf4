"""Consul in development mode: registration, health and key-value over its HTTP API."""

from __future__ import annotations

import base64
import json
from signal import Signals
from typing import Any, ClassVar

from srearena.cluster.embedded.machine.networking.sockets import Connection, HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.accounts import Account
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.datastores.datastore import Instance
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.root_filesystem import Folder
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, until_stopped
from srearena.cluster.embedded.programs.timestamps import stamp

HTTP_PORT = 8500
OTHER_PORTS = (8300, 8301, 8302, 8600)


@program("consul", "hashicorp/consul", "bitnami/consul")
class Consul(Program):
    entrypoint = ("docker-entrypoint.sh",)
    cmd = ("agent", "-dev", "-client", "0.0.0.0")
    base = "alpine"
    ports = (HTTP_PORT, *OTHER_PORTS)
    binaries = ("/usr/local/bin/docker-entrypoint.sh", "/bin/consul")
    accounts_added = (Account("consul", 100, 1000, "/home/consul"),)
    folders: ClassVar = {"/consul/data": Folder(0o755, 100, 1000), "/consul/config": Folder(0o755, 100, 1000)}
    threads = 12
    idle_cpu = 0.01
    idle_memory = 45 * 1024 * 1024
    default_version = "1.22.0"

    async def run(self, process: Process) -> int:
        words = process.argv[1:]
        if process.binary == "docker-entrypoint.sh":
            if words and words[0] not in ("agent", "consul", "version", "members"):
                process.execute(words, process.env)
            words = words[1:] if words[:1] == ["consul"] else words
        if words[:1] == ["version"]:
            await process.write(f"Consul v{self.version}\n")
            return 0
        if words[:1] != ["agent"]:
            return await self._query(process)
        return await self._agent(process, Flags(words[1:], frozenset(("dev", "ui", "server"))))

    async def _log(self, process: Process, text: str, level: str = "INFO") -> None:
        await process.write(f"{stamp(process, '%Y-%m-%dT%H:%M:%S.%LZ')} [{level}]  {text}\n")

    async def _agent(self, process: Process, flags: Flags) -> int:
        catalog = Catalog(process)
        address = flags.get("client", "127.0.0.1")

        async def quiet(connection: Connection) -> None:
            while await connection.read():
                pass

        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        name = process.container.host.hostname
        await process.write(
            f"==> Starting Consul agent...\n               Version: '{self.version}'\n"
            f"             Node name: '{name}'\n"
            f"            Datacenter: 'dc1' (Segment: '<all>')\n                Server: true (Bootstrap: false)\n"
            f"           Client Addr: [{address}] (HTTP: {HTTP_PORT}, HTTPS: -1, gRPC: 8502, DNS: 8600)\n\n"
            "==> Log data will now stream in as it occurs:\n\n"
        )
        try:
            listeners = [process.container.namespace.listen(process, HTTP_PORT, address=address, http=catalog.answer)]
            listeners[0].server = catalog
            listeners[0].server = catalog
            listeners += [process.container.namespace.listen(process, port, stream=quiet) for port in OTHER_PORTS]
        except OSError as error:
            await process.error(f"==> {go_bind_error(HTTP_PORT, error)}\n")
            return 1
        process.set_memory(self.idle_memory)
        await self._log(process, "agent: Started HTTP server: address=[::]:8500 network=tcp")
        await self._log(process, "agent: Consul agent running!")
        await process.sleep(0.5)
        await self._log(process, "agent.server: cluster leadership acquired")
        await self._log(process, f"agent.server: New leader elected: payload={name}")
        await self._log(process, "agent: Synced node info")
        await until_stopped(process, stop, listeners, grace=0.0)
        await self._log(
            process, f"agent: Caught: signal={'terminated' if stop.value == Signals.SIGTERM else 'interrupt'}"
        )
        await self._log(
            process, "agent: Exit code: code=1" if stop.value == Signals.SIGTERM else "agent: Exit code: code=0"
        )
        return 1 if stop.value == Signals.SIGTERM else 0

    async def _query(self, process: Process) -> int:
        """`consul members` and its like, asked of the local agent."""
        request = HttpRequest("GET", "/v1/status/leader", {"Host": "127.0.0.1:8500"})
        result = await process.container.network.http("127.0.0.1", HTTP_PORT, request, timeout=10.0)
        if result.response is None:
            await process.error(
                'Error retrieving members: Get "http://127.0.0.1:8500/v1/agent/members?segment=_all": dial tcp '
                f"127.0.0.1:8500: connect: {result.outcome}\n"
            )
            return 1
        address = process.container.namespace.address
        await process.write("Node  Address  Status  Type  Build  Protocol  DC  Partition  Segment\n")
        row = (
            f"{process.container.host.hostname}  {address}:8301  alive  server  {self.version}  2  dc1  default  <all>"
        )
        await process.write(f"{row}\n")
        return 0


class Catalog:
    """What an agent knows: services that registered themselves, and keys.

    There are no health checks: a service that stopped without deregistering stays listed, as in Consul
    without health checks. An agent in development mode keeps nothing over a restart.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.services: dict[str, dict[str, Any]] = {}
        self.keys: dict[str, bytes] = {}
        self.index = 1

    # As the traffic of applications asks it (`datastore.Discovery`)

    @property
    def epoch(self) -> int:
        return self.index

    def register(self, service: str, ip: str, port: int) -> None:
        self._enter(f"{service}-{ip}-{port}", service, ip, port)

    def deregister(self, service: str, ip: str, port: int) -> None:
        if self.services.pop(f"{service}-{ip}-{port}", None) is not None:
            self.index += 1

    def instances(self, service: str) -> list[Instance]:
        """All registered services: without health checks none is removed."""
        found = [one for one in self.services.values() if one["Service"] == service]
        return [Instance(service, str(one["Address"]), int(one["Port"])) for one in found]

    def _enter(self, identifier: str, name: str, address: str, port: int, tags: Any = None) -> None:
        entry = {"ID": identifier, "Service": name, "Tags": tags or [], "Port": port, "Address": address}
        if self.services.get(identifier) != entry:  # a repeated registration is no change
            self.index += 1
            self.services[identifier] = entry

    # Over HTTP

    async def answer(self, request: HttpRequest) -> HttpResponse:
        await self.process.spend(0.0002)
        path = request.path
        if path == "/v1/status/leader":
            return _json(f"{self.process.container.namespace.address}:8300")
        if path == "/v1/agent/service/register" and request.method == "PUT":
            return self._register(request.body)
        if path.startswith("/v1/agent/service/deregister/") and request.method == "PUT":
            known = self.services.pop(path.rpartition("/")[2], None)
            self.index += known is not None
            return (
                HttpResponse(200)
                if known is not None
                else HttpResponse.text(f'Unknown service ID "{path.rpartition("/")[2]}".', 404)
            )
        if path == "/v1/agent/members":
            node = self.process.container.host.hostname
            return _json([{"Name": node, "Addr": self.process.container.namespace.address, "Port": 8301, "Status": 1}])
        if path == "/v1/agent/services":
            return _json(self.services)
        if path == "/v1/catalog/services":
            return _json({name: [] for name in ("consul", *sorted({s["Service"] for s in self.services.values()}))})
        if path.startswith(("/v1/health/service/", "/v1/catalog/service/")):
            return self._instances(path.rpartition("/")[2], health="/health/" in path)
        if path.startswith("/v1/kv/"):
            return self._key(request, path.removeprefix("/v1/kv/"))
        if path in ("/", "/ui/"):
            return HttpResponse(200, b"<!DOCTYPE html><title>Consul</title>", {"Content-Type": "text/html"})
        return HttpResponse(404)

    def _register(self, body: bytes) -> HttpResponse:
        try:
            definition = json.loads(body)
            name = str(definition["Name"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return HttpResponse.text("Missing service name", 400)
        identifier = str(definition.get("ID") or name)
        self._enter(identifier, name, definition.get("Address", ""), definition.get("Port", 0), definition.get("Tags"))
        return HttpResponse(200)

    def _instances(self, name: str, *, health: bool) -> HttpResponse:
        node = {"Node": self.process.container.host.hostname, "Address": self.process.container.namespace.address}
        found = [service for service in self.services.values() if service["Service"] == name]
        if health:
            return _json([{"Node": node, "Service": service, "Checks": []} for service in found], self.index)
        rows = [
            {
                **node,
                "ServiceID": s["ID"],
                "ServiceName": s["Service"],
                "ServiceAddress": s["Address"],
                "ServicePort": s["Port"],
            }
            for s in found
        ]
        return _json(rows, self.index)

    def _key(self, request: HttpRequest, key: str) -> HttpResponse:
        if request.method == "PUT":
            self.keys[key] = request.body
            self.index += 1
            return _json(True)
        if request.method == "DELETE":
            self.keys.pop(key, None)
            return _json(True)
        value = self.keys.get(key)
        if value is None:
            return HttpResponse(404)
        if "raw" in request.query:
            return HttpResponse(200, value)
        return _json([{"Key": key, "Value": base64.b64encode(value).decode(), "Flags": 0, "LockIndex": 0}], self.index)


def _json(value: Any, index: int = 1) -> HttpResponse:
    headers = {"Content-Type": "application/json", "X-Consul-Index": str(index)}
    return HttpResponse(200, json.dumps(value).encode(), headers)
