"""Nacos: a service registry with an HTTP API and heartbeats.

An instance without a heartbeat for fifteen seconds is unhealthy, after thirty seconds it is removed. The servers of a
cluster replicate their registrations on a change and every few seconds; those of a silent server expire. Registering
again is the heartbeat. Configuration management and the gRPC port of newer clients are not modelled.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import parse_qs

from srearena.cluster.program_models import (
    Change,
    Connection,
    Folder,
    HttpRequest,
    HttpResponse,
    Listener,
    Process,
    Program,
    program,
    stamp,
    stop_signal,
    until_stopped,
)
from srearena.cluster.program_models.datastores import Instance
from srearena.service.products.mysql.login_check import login_error

PORT = 8848
OTHER_PORTS = (7848, 9848, 9849)
START_SECONDS = 18.0
UNHEALTHY_SECONDS = 15.0
GONE_SECONDS = 30.0
SHARE_SECONDS = 10.0
SWEEP_SECONDS = 5.0
REQUEST_COST = 0.0004


@program("nacos/nacos-server")
class Nacos(Program):
    threads = 210
    entrypoint = ("/home/nacos/bin/docker-startup.sh",)
    working_dir = "/home/nacos"
    ports = (PORT, *OTHER_PORTS)
    base = "debian"
    tools = ("curl",)
    binaries = ("/home/nacos/bin/docker-startup.sh",)
    folders: ClassVar = {"/home/nacos/logs": Folder(0o777), "/home/nacos/conf": Folder(0o755)}
    idle_cpu = 0.03
    idle_memory = 620 * 1024 * 1024
    default_version = "2.0.1"

    async def run(self, process: Process) -> int:
        stop = stop_signal(process)
        mode = "cluster" if process.env.get("MODE", "cluster") == "cluster" else "stand alone"
        await process.write(
            f"\n         ,--.\n       ,--.'|\n   ,--,:  : |               Nacos {self.version}\n"
            f",`--.'`|  ' :               Running in {mode} mode, All function modules\n"
            f"|   :  :  | |               Port: {PORT}\n\n"
        )
        await self._log(process, "Nacos is starting...")
        await process.allocate(self.idle_memory // 2)
        if await stop.wait(START_SECONDS):
            return 143
        error = await self._database_error(process)
        if error:
            await process.write(
                f"{stamp(process, '%Y-%m-%d %H:%M:%S.%L')} ERROR Error starting ApplicationContext.\n\n"
                "org.springframework.context.ApplicationContextException: Unable to start web server; nested exception "
                f"is java.lang.RuntimeException: [db-load-error]load jdbc.properties error\n"
                f"Caused by: java.lang.IllegalStateException: No DataSource set\nCaused by: {error}\n"
            )
            await self._log(process, "Nacos started failed, please see /home/nacos/logs/nacos.log for more details.")
            return 1
        registry = NacosRegistry(process)
        listeners = await self._listen(process, registry)
        if listeners is None:
            return 1
        process.set_memory(self.idle_memory)
        storage = "external" if process.env.get("SPRING_DATASOURCE_PLATFORM") == "mysql" else "embedded"
        await self._log(process, f"Nacos started successfully in {mode} mode. use {storage} storage")
        process.spawn_thread(registry.share())
        process.spawn_thread(registry.sweep())
        await until_stopped(process, stop, listeners, grace=0.0)
        return 143

    @staticmethod
    async def _log(process: Process, text: str) -> None:
        await process.write(f"{stamp(process, '%Y-%m-%d %H:%M:%S,%L')} INFO {text}\n\n")

    @staticmethod
    async def _database_error(process: Process) -> str:
        env = process.env
        if env.get("SPRING_DATASOURCE_PLATFORM") != "mysql":
            return ""
        port = env.get("MYSQL_SERVICE_PORT", "3306")
        return await login_error(
            process,
            env.get("MYSQL_SERVICE_HOST", ""),
            int(port) if port.isdigit() else 3306,
            env.get("MYSQL_SERVICE_USER", ""),
            env.get("MYSQL_SERVICE_PASSWORD", ""),
            env.get("MYSQL_SERVICE_DB_NAME", ""),
        )

    async def _listen(self, process: Process, registry: NacosRegistry) -> list[Listener] | None:
        async def quiet(connection: Connection) -> None:
            while await connection.read():
                pass

        try:
            listeners = [process.container.namespace.listen(process, PORT, http=registry.answer)]
            listeners += [process.container.namespace.listen(process, port, stream=quiet) for port in OTHER_PORTS]
        except OSError as error:
            await process.write(f"Web server failed to start. Port {PORT} was already in use. ({error.strerror})\n")
            return None
        listeners[0].server = registry
        return listeners


@dataclass(slots=True)
class Entry:
    service: str
    ip: str
    port: int
    heard_at: float
    weight: float = 1.0
    enabled: bool = True


class NacosRegistry:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.epoch = 0
        self.registrations: dict[tuple[str, str, int], Entry] = {}
        self.replicated: dict[str, tuple[float, list[Entry]]] = {}
        """Registrations of other servers: when each was last heard from, and its entries."""
        self.peers = self._peers()
        self._changed = Change(process.clock)

    def _peers(self) -> list[str]:
        me = self.process.container.host.hostname
        servers = self.process.env.get("NACOS_SERVERS", "").split()
        return [server for server in servers if server.partition(".")[0].partition(":")[0] != me]

    # --- traffic -----------------------------------------------------------------------------------------------

    def register(self, service: str, ip: str, port: int) -> None:
        """Register an address of a service; repeating it is the heartbeat, due every five seconds."""
        entry = self.registrations.get((service, ip, port))
        now = self.process.clock.now
        if entry is None:
            self.registrations[(service, ip, port)] = Entry(service, ip, port, now)
            self._moved()
            return
        if now - entry.heard_at > UNHEALTHY_SECONDS:
            self._moved()
        entry.heard_at = now

    def deregister(self, service: str, ip: str, port: int) -> None:
        if self.registrations.pop((service, ip, port), None) is not None:
            self._moved()

    def instances(self, service: str) -> list[Instance]:
        return [Instance(e.service, e.ip, e.port) for e in self._entries(service) if self._healthy(e) and e.enabled]

    def _moved(self) -> None:
        self.epoch += 1
        self._changed.notify()

    def _healthy(self, entry: Entry) -> bool:
        return self.process.clock.now - entry.heard_at <= UNHEALTHY_SECONDS

    def _entries(self, service: str = "") -> list[Entry]:
        """The registrations of this server, then those of others, each address once."""
        now = self.process.clock.now
        found: dict[tuple[str, str, int], Entry] = dict(self.registrations)
        for moment, entries in self.replicated.values():
            if now - moment <= GONE_SECONDS:
                for entry in entries:
                    key = (entry.service, entry.ip, entry.port)
                    if key not in found or found[key].heard_at < entry.heard_at:
                        found[key] = entry
        return [found[key] for key in sorted(found) if not service or key[0] == service]

    async def sweep(self) -> None:
        """Remove instances without heartbeats, and detect those that became unhealthy."""
        unhealthy: set[tuple[str, str, int]] = set()
        while True:
            await self.process.sleep(SWEEP_SECONDS)
            now = self.process.clock.now
            for key in [key for key, entry in self.registrations.items() if now - entry.heard_at > GONE_SECONDS]:
                del self.registrations[key]
                self._moved()
            silent = {(e.service, e.ip, e.port) for e in self._entries() if not self._healthy(e)}
            if silent != unhealthy:
                unhealthy = silent
                self.epoch += 1

    # --- the cluster -------------------------------------------------------------------------------------------

    async def share(self) -> None:
        """Replicate the registrations of this server to the others."""
        if not self.peers:
            return
        while True:
            await self._changed.wait(SHARE_SECONDS)
            rows = [[e.service, e.ip, e.port, e.heard_at, e.weight, e.enabled] for e in self.registrations.values()]
            body = json.dumps({"from": self.process.container.host.hostname, "entries": rows}).encode()
            for peer in self.peers:
                host, _, port = peer.partition(":")
                request = HttpRequest("PUT", "/nacos/v1/ns/distro/datum", {"Host": peer}, body)
                await self.process.container.network.http(host, int(port or PORT), request, timeout=2.0)
            await self.process.sleep(0.5)

    def _receive(self, body: bytes) -> HttpResponse:
        try:
            data = json.loads(body)
            entries = [Entry(*row) for row in data["entries"]]
            name = str(data["from"])
        except (ValueError, KeyError, TypeError):
            return HttpResponse.text("caused: bad datum", 400)
        before = self.replicated.get(name, (0.0, []))[1]
        self.replicated[name] = (self.process.clock.now, entries)
        if {(e.service, e.ip, e.port) for e in before} != {(e.service, e.ip, e.port) for e in entries}:
            self.epoch += 1
        return HttpResponse.text("ok")

    # --- the HTTP API ------------------------------------------------------------------------------------------

    async def answer(self, request: HttpRequest) -> HttpResponse:
        await self.process.spend(REQUEST_COST)
        path = request.path.removeprefix("/nacos")
        values = {name: items[-1] for name, items in request.query.items()}
        if request.body and path != "/v1/ns/distro/datum":
            values |= {name: items[-1] for name, items in parse_qs(request.body.decode(errors="replace")).items()}
        if path == "/v1/ns/distro/datum" and request.method == "PUT":
            return self._receive(request.body)
        if path == "/v1/ns/instance" and request.method in ("POST", "DELETE", "PUT"):
            return self._change(request.method, values)
        if path == "/v1/ns/instance/beat":
            return self._beat(values)
        if path == "/v1/ns/instance/list":
            return self._list(_service(values))
        if path == "/v1/ns/service/list":
            names = sorted({entry.service for entry in self._entries()})
            size, page = int(values.get("pageSize", "10")), int(values.get("pageNo", "1"))
            return _json({"count": len(names), "doms": names[(page - 1) * size : page * size]})
        if path == "/v1/ns/operator/metrics":
            entries = self._entries()
            services = len({entry.service for entry in entries})
            return _json({"serviceCount": services, "instanceCount": len(entries), "status": "UP"})
        if path.startswith("/v1/console/health/"):
            return HttpResponse.text("OK")
        if path in ("", "/", "/index.html"):
            return HttpResponse(200, b"<!DOCTYPE html><title>Nacos</title>", {"Content-Type": "text/html"})
        at = stamp(self.process, "%Y-%m-%dT%H:%M:%S.%L+00:00")
        body = {"timestamp": at, "status": 404, "error": "Not Found", "path": f"/nacos{path}"}
        return HttpResponse(404, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _change(self, method: str, values: dict[str, str]) -> HttpResponse:
        port = values.get("port", "")
        if not values.get("serviceName") or not values.get("ip") or not port.isdigit():
            name = next(n for n in ("serviceName", "ip", "port") if not values.get(n) or n == "port")
            return HttpResponse.text(f"caused: Param '{name}' is required.;", 400)
        key = (_service(values), values["ip"], int(port))
        if method == "DELETE":
            self.deregister(*key)
        else:
            self.register(*key)
            if key in self.registrations:
                self.registrations[key].enabled = values.get("enabled", "true") != "false"
        return HttpResponse.text("ok")

    def _beat(self, values: dict[str, str]) -> HttpResponse:
        try:
            beat = json.loads(values["beat"]) if values.get("beat") else values
            self.register(_service(values), str(beat["ip"]), int(beat["port"]))
        except (ValueError, KeyError, TypeError):
            return HttpResponse.text("caused: Param 'beat' is required.;", 400)
        return _json({"clientBeatInterval": 5000, "code": 10200, "lightBeatEnabled": True})

    def _list(self, service: str) -> HttpResponse:
        hosts = [
            {
                "ip": entry.ip,
                "port": entry.port,
                "healthy": self._healthy(entry),
                "enabled": entry.enabled,
                "weight": entry.weight,
                "ephemeral": True,
                "clusterName": "DEFAULT",
                "serviceName": f"DEFAULT_GROUP@@{service}",
                "instanceId": f"{entry.ip}#{entry.port}#DEFAULT#DEFAULT_GROUP@@{service}",
            }
            for entry in self._entries(service)
        ]
        return _json(
            {"name": f"DEFAULT_GROUP@@{service}", "groupName": "DEFAULT_GROUP", "cacheMillis": 3000, "hosts": hosts}
        )


def _service(values: dict[str, str]) -> str:
    """The name without its group."""
    return values.get("serviceName", "").rpartition("@@")[2]


def _json(value: Any) -> HttpResponse:
    return HttpResponse(200, json.dumps(value).encode(), {"Content-Type": "application/json;charset=UTF-8"})
