"""kube-proxy as a program: while it runs and reaches the API server, its node's rules follow the cluster."""

from __future__ import annotations

import errno
from signal import Signals
from typing import Any

import yaml

from srearena.cluster.embedded.durations import format_micro_time
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.network.network_client import NetworkClient
from srearena.cluster.embedded.network.programs.api_access import directly
from srearena.cluster.embedded.objects import dig
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program

FIRST_SYNC = 0.3
CHECK_INTERVAL = 10.0
"""Seconds between checks of the connection to the API server."""
HEALTH_PORT, METRICS_PORT = 10256, 10249
MODES = {"": "iptables", "iptables": "iptables", "ipvs": "ipvs", "nftables": "nftables"}
_MEMORY = 24 * 1024 * 1024


@program("kube-proxy")
class KubeProxy(Program):
    entrypoint = ("/usr/local/bin/kube-proxy",)
    base = "debian"
    follows_tag = False
    binaries = ("/usr/local/bin/kube-proxy",)
    threads = 9
    idle_cpu = 0.001
    idle_memory = _MEMORY
    default_version = "1.34.0"

    async def run(self, process: Process) -> int:
        return await _Run(process, self.version).main()


class _Run:
    def __init__(self, process: Process, version: str) -> None:
        self.process = process
        self.version = version if version.startswith("v") else f"v{version}"
        facade = process.container.network
        self.facade = facade if isinstance(facade, NetworkClient) else None
        self.live = False

    def log(self, level: str, place: str, text: str) -> None:
        """A line as klog writes it."""
        moment = format_micro_time(self.process.clock.now)
        stamp = f"{level}{moment[5:7]}{moment[8:10]} {moment[11:26]}"
        self.process.container.log.write("stderr", f"{stamp} {self.process.pid:7d} {place}] {text}\n".encode())

    async def main(self) -> int:
        process = self.process
        process.set_memory(_MEMORY)
        settings = self.settings()
        if settings is None:
            return 1
        mode = MODES.get(str(settings.get("mode") or ""))
        if mode is None:
            what = f'mode: Invalid value: "{settings.get("mode")}": must be iptables, ipvs, nftables or blank'
            self.log("E", "run.go:72", f'"command failed" err="{what}"')
            return 1
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        self.log("I", "server_linux.go:53", f'"Using {mode} proxy"')
        try:
            sockets = process.container.namespace
            sockets.listen(process, HEALTH_PORT, http=self.health)
            sockets.listen(process, METRICS_PORT, address="127.0.0.1", http=self.health)
        except OSError as error:
            why = "address already in use" if error.errno == errno.EADDRINUSE else str(error.strerror).lower()
            self.log(
                "E", "server.go:511", f'"Error starting healthz server" err="listen tcp :{HEALTH_PORT}: bind: {why}"'
            )
        self.log("I", "server.go:715", f'"Version info" version="{self.version}"')
        if self.facade is None:
            await stop.wait()
            return 0
        node = process.container.host.node_name
        self.limit_tracking(settings, node)
        await process.sleep(FIRST_SYNC)
        try:
            while True:
                self.follow(node)
                if await stop.wait(CHECK_INTERVAL):
                    return 0
        finally:
            if self.live:
                self.facade.network.fabric.proxies.stopped(node)

    def settings(self) -> dict[str, Any] | None:
        """Read the configuration file; None, with an error logged, where it is not usable."""
        path = next((word.partition("=")[2] for word in self.process.argv if word.startswith("--config=")), "")
        if not path:
            return {}
        try:
            text = self.process.files.read_text(path)
            found = yaml.safe_load(text)
        except OSError:
            why = f"failed complete: open {path}: no such file or directory"
            self.log("E", "run.go:72", f'"command failed" err="{why}"')
            return None
        except yaml.YAMLError:
            found = None
        if not isinstance(found, dict) or found.get("kind") != "KubeProxyConfiguration":
            kind = found.get("kind") if isinstance(found, dict) else None
            why = f'no kind \\"{kind}\\" is registered' if kind else "couldn't get version/kind; json parse error"
            self.log("E", "run.go:72", f'"command failed" err="failed complete: {why}"')
            return None
        return found

    def limit_tracking(self, settings: dict[str, Any], node: str) -> None:
        """Set the size of the connection tracking table, as kube-proxy does."""
        assert self.facade is not None
        per_core = dig(settings, "conntrack", "maxPerCore", default=32768)
        least = dig(settings, "conntrack", "min", default=131072)
        if isinstance(per_core, int) and isinstance(least, int) and per_core > 0:
            limit = max(least, per_core * self.process.container.host.kernel.cpus)
            self.facade.network.fabric.flows.set_limit(node, limit)

    def follow(self, node: str) -> None:
        """Follow the cluster while the API server is reachable; keep the last rules while it is not."""
        assert self.facade is not None
        network = self.facade.network
        outcome = directly(network, self.facade.host)
        reachable = outcome is Outcome.CONNECTED and not self.process.stopped
        if reachable and not self.live:
            for name in ("service config", "endpoint slice config", "node config"):
                self.log("I", "shared_informer.go:356", f'"Caches are synced" controller="{name}"')
            network.fabric.proxies.started(node)
        elif not reachable and self.live:
            why = f"dial tcp: {'i/o timeout' if outcome is Outcome.TIMEOUT else f'connect: {outcome.value}'}"
            for kind in ("Service", "EndpointSlice"):
                text = f'"Failed to watch" err="failed to list *v1.{kind}: {why}" type="*v1.{kind}"'
                self.log("E", "reflector.go:200", text)
            network.fabric.proxies.stopped(node)
        self.live = reachable

    async def health(self, request: HttpRequest) -> HttpResponse:
        if request.path not in ("/healthz", "/livez", "/metrics"):
            return HttpResponse.text("404 page not found\n", 404)
        now = format_micro_time(self.process.clock.now)
        return HttpResponse.text(f'{{"lastUpdated": "{now}","currentTime": "{now}", "nodeEligible": true}}')
