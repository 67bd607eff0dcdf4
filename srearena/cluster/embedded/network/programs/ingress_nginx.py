"""The ingress-nginx controller: an HTTP proxy to the endpoints of the Services of Ingresses."""

from __future__ import annotations

from dataclasses import replace
from signal import Signals

from srearena.cluster.embedded.machine.files.streams import Change as Changed
from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.network.host_certificates import DEFAULT_CERTIFICATE, SECRETS, certificate_of, warnings
from srearena.cluster.embedded.network.ingress import (
    CLASSES,
    INGRESSES,
    Destination,
    IngressTable,
    Routed,
    ingresses_of_class,
)
from srearena.cluster.embedded.network.network_client import NetworkClient
from srearena.cluster.embedded.objects import dig, name_of, namespace_of
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.timestamps import klog_line
from srearena.cluster.embedded.store import Change, Store

CONTROLLER = "k8s.io/ingress-nginx"
CONNECT_TIMEOUT, READ_TIMEOUT = 5.0, 60.0
TRIES = 3
"""How many endpoints are tried for a request that could not be sent."""
SYNC_SECONDS = 1.0
"""Seconds for which changes are collected before they are applied."""
HEALTH_PORT = 10254
_MEMORY = 90 * 1024 * 1024
_PAGES = {
    404: "404 Not Found",
    502: "502 Bad Gateway",
    503: "503 Service Temporarily Unavailable",
    504: "504 Gateway Time-out",
    308: "308 Permanent Redirect",
}


@program("ingress-nginx/controller")
class IngressNginx(Program):
    entrypoint = ("/usr/bin/dumb-init", "--")
    cmd = ("/nginx-ingress-controller",)
    base = "alpine"
    follows_tag = False
    binaries = ("/nginx-ingress-controller", "/usr/bin/dumb-init")
    idle_cpu = 0.003
    idle_network = (48.0, 14.0)
    idle_memory = _MEMORY
    default_version = "1.13.0"

    async def run(self, process: Process) -> int:
        if process.binary == "dumb-init":
            process.execute([word for word in process.argv[1:] if word != "--"], process.env)
        return await _Run(process).main()


class _Run:
    def __init__(self, process: Process) -> None:
        self.process = process
        facade = process.container.network
        self.facade = facade if isinstance(facade, NetworkClient) else None
        self.table = IngressTable(())
        self.stale = True
        self.changes = Changed(process.clock)
        self.turn = 0
        self.controller = next((w.partition("=")[2] for w in process.argv if w.startswith("--controller-class=")), "")
        self.classless = "--watch-ingress-without-class=true" in process.argv

    async def main(self) -> int:
        process = self.process
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        process.set_memory(_MEMORY)
        sockets = process.container.namespace
        sockets.listen(process, 80, http=self.plain)
        sockets.listen(process, 443, http=self.secure, tls=DEFAULT_CERTIFICATE, identify=self.identity)
        sockets.listen(process, HEALTH_PORT, http=self.health)
        await process.error("NGINX Ingress controller\n")
        if self.facade is None:
            await stop.wait()
            return 0
        store = self.facade.network.world.store
        unsubscribe = [store.subscribe(self.changed, resource) for resource in (INGRESSES, CLASSES, SECRETS)]
        process.spawn_thread(self.log_warnings(store))
        try:
            await stop.wait()
        finally:
            for forget in unsubscribe:
                forget()
        return 0

    def changed(self, change: Change) -> None:
        if change.new["kind"] == "Secret":
            key = f"{namespace_of(change.new)}/{name_of(change.new)}"
            if all(key != secret for secret, _ in self.rules().certificates.values()):
                return
        self.stale = True
        self.changes.notify()

    async def log_warnings(self, store: Store) -> None:
        """Log problems of the hosts' certificates after every sync."""
        while True:
            for text in warnings(self.rules(), store, self.process.clock.now):
                await self.process.error(klog_line(self.process, "W", "controller.go:1407", text))
            await self.changes.wait()
            await self.process.sleep(SYNC_SECONDS)

    def identity(self, server_name: str) -> TlsIdentity:
        if self.facade is None:
            return DEFAULT_CERTIFICATE
        return certificate_of(self.rules(), self.facade.network.world.store, server_name)

    def rules(self) -> IngressTable:
        if self.stale and self.facade is not None:
            store = self.facade.network.world.store
            ingresses = ingresses_of_class(store, self.controller or CONTROLLER, classless=self.classless)
            self.table, self.stale = IngressTable(ingresses), False
        return self.table

    async def health(self, request: HttpRequest) -> HttpResponse:
        return HttpResponse.text("ok") if request.path == "/healthz" else _page(404)

    async def plain(self, request: HttpRequest) -> HttpResponse:
        return await self.serve(request, tls=False)

    async def secure(self, request: HttpRequest) -> HttpResponse:
        return await self.serve(request, tls=True)

    async def serve(self, request: HttpRequest, *, tls: bool) -> HttpResponse:
        host = request.header("Host")
        routed = self.rules().route(host, request.path, tls=tls)
        if routed.redirect_to_tls:
            response = _page(308)
            response.headers["Location"] = f"https://{host.partition(':')[0]}{request.target}"
        else:
            response = await self.proxied(request, routed, tls)
        await self.write_access_log(request, response, routed)
        return response

    async def proxied(self, request: HttpRequest, routed: Routed, tls: bool) -> HttpResponse:
        rule = routed.rule
        if rule is None or self.facade is None:
            return _page(404)
        endpoints = self.endpoints(rule.destination)
        if not endpoints:
            return _page(503)
        path, question, query = request.target.partition("?")
        headers = {
            **request.headers,
            "X-Real-IP": request.peer,
            "X-Forwarded-For": request.peer,
            "X-Forwarded-Host": request.header("Host"),
            "X-Forwarded-Proto": "https" if tls else "http",
        }
        target = f"{rule.backend_path(path)}{question}{query}"
        onward = replace(request, target=target, headers=headers, tls=False)
        status = 502
        for number in range(min(TRIES, len(endpoints))):
            address, port = endpoints[(self.turn + number) % len(endpoints)]
            result = await self.facade.http(
                address, port, onward, connect_timeout=CONNECT_TIMEOUT, timeout=CONNECT_TIMEOUT + READ_TIMEOUT
            )
            if result.response is not None:
                self.turn += 1
                return result.response
            status = 504 if result.outcome is Outcome.TIMEOUT else 502
            if result.connected:
                break
        self.turn += 1
        return _page(status)

    def endpoints(self, destination: Destination) -> list[tuple[str, int]]:
        """The ready endpoints of a Service's port; the controller does not use the Service's address."""
        assert self.facade is not None
        network = self.facade.network
        service = network.world.store.get("services", destination.namespace, destination.service)
        port = next(
            (
                port
                for port in dig(service, "spec", "ports", default=())
                if destination.port in (port.get("port"), port.get("name"))
            ),
            None,
        )
        if service is None or port is None:
            return []
        name = port.get("name") or ""
        endpoints = network.records.endpoints(destination.namespace, destination.service)
        return [(endpoint.address, endpoint.port) for endpoint in endpoints if endpoint.port_name == name]

    async def write_access_log(self, request: HttpRequest, response: HttpResponse, routed: Routed) -> None:
        backend = "-"
        if routed.rule is not None:
            to = routed.rule.destination
            backend = f"{to.namespace}-{to.service}-{to.port}"
        stamp = self.process.clock.timestamp()
        await self.process.write(
            f'{request.peer} - - [{stamp}] "{request.method} {request.target} {request.version}" {response.status} '
            f'{len(response.body)} "-" "{request.header("User-Agent", "-")}" [{backend}]\n'
        )


def _page(status: int) -> HttpResponse:
    title = _PAGES[status]
    body = (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n"
        "<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n"
    )
    return HttpResponse.text(body, status, "text/html")
