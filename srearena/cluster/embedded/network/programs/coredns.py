"""CoreDNS as a program: configuration, listeners, start, reload and shutdown.

The Corefile is the one in the container's file system: a changed ConfigMap takes effect when the kubelet has projected
it and the reload plugin has checked it. A broken one crashes new pods; running ones keep their configuration.
"""

from __future__ import annotations

import errno
import hashlib
from functools import partial
from signal import Signals

from srearena.cluster.embedded.clock import Signal
from srearena.cluster.embedded.machine.networking.reachability import Outcome
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse, Listener
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.network.dns.backends import Kubernetes
from srearena.cluster.embedded.network.dns.coredns import CoreDns
from srearena.cluster.embedded.network.dns.corefile import Configuration, CorefileError, load, syntax_digest
from srearena.cluster.embedded.network.dns.messages import Question, Reply
from srearena.cluster.embedded.network.network_client import NetworkClient
from srearena.cluster.embedded.network.programs.api_access import identity, through_service
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program

STARTUP_TIMEOUT = 5.0
SYNC_RETRY = 5.0
WATCHED = (("", "services"), ("discovery.k8s.io", "endpointslices"), ("", "namespaces"))
_MEMORY = 18 * 1024 * 1024
_RELEASES = {"1.12.1": ("go1.24.1", "707c7c1"), "1.11.3": ("go1.21.11", "a6338e9"), "1.11.1": ("go1.20.7", "ae2bbc2")}


@program("coredns/coredns", "coredns")
class CoreDnsProgram(Program):
    entrypoint = ("/coredns",)
    user = "nonroot:nonroot"
    base = "scratch"
    follows_tag = False
    binaries = ("/coredns",)
    ports = (53,)
    threads = 10
    idle_cpu = 0.002
    idle_network = (26.0, 9.0)
    idle_memory = _MEMORY
    default_version = "1.12.1"

    async def run(self, process: Process) -> int:
        return await _Run(process, self.version.lstrip("v")).main()


class _Run:
    """One run of the process."""

    def __init__(self, process: Process, version: str) -> None:
        self.process = process
        self.version = version
        self.file = _option(process.argv, "conf") or "Corefile"
        facade = process.container.network
        self.facade = facade if isinstance(facade, NetworkClient) else None
        self.server: CoreDns | None = None
        self.listeners: list[Listener] = []
        self.shutting_down = False

    def log(self, line: str) -> None:
        self.process.container.log.write("stdout", line.encode() + b"\n")

    def read(self, path: str) -> str | None:
        files = self.process.files
        try:
            return files.read_text(path)
        except OSError:
            return None

    async def main(self) -> int:
        process = self.process
        if _option(process.argv, "version") is not None:
            self.log(self.banner())
            return 0
        process.set_memory(_MEMORY)
        text = self.read(self.file)
        if text is None:
            return await self.fatal(f"open {self.file}: no such file or directory")
        try:
            configuration = load(text, self.file, self.read)
        except CorefileError as error:
            return await self.fatal(str(error))
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        process.spawn_thread(self.reloading(configuration))
        if self.facade is not None:
            self.server = self.facade.network.name_server(self.facade.host, configuration, self.log)
            self.server.synced = not configuration.plugins(Kubernetes)
            if not self.server.synced and not await self.sync_cluster(stop):
                process.spawn_thread(self.retry_sync())
        try:
            self.listen(configuration)
        except OSError as error:
            return await self.fatal(_bind_failure(error))
        for server in configuration.servers:
            self.log(f"{server.zone}:{server.port}")
        if configuration.settings("reload"):
            self.log(f"[INFO] plugin/reload: Running configuration SHA512 = {_digest(text)}")
        self.log(self.banner())
        looped = self.server.looped_zone() if self.server is not None else None
        if looped is not None:
            return await self.loop_found(looped)
        await stop.wait()
        return await self.shut_down(Signals(stop.value).name)

    def banner(self) -> str:
        go, commit = _RELEASES.get(self.version, ("go1.24.1", "707c7c1"))
        return f"CoreDNS-{self.version}\nlinux/amd64, {go}, {commit}"

    async def fatal(self, text: str) -> int:
        await self.process.error(f"{text}\n")
        return 1

    # The cluster's Services

    async def sync_cluster(self, stop: Signal[int]) -> bool:
        """List the resources from the API; the server starts without them after a timeout."""
        if self.try_sync():
            return True
        self.log("[INFO] plugin/kubernetes: waiting for Kubernetes API before starting server")
        deadline = self.process.clock.now + STARTUP_TIMEOUT
        while self.process.clock.now < deadline and not await stop.wait(0.5):
            if self.try_sync():
                return True
        self.log("[WARNING] plugin/kubernetes: starting server with unsynced Kubernetes API")
        return False

    def try_sync(self) -> bool:
        assert self.facade is not None and self.server is not None
        network = self.facade.network
        user = identity(self.process.container.host.pod)
        if through_service(network, self.facade.host) is not Outcome.CONNECTED:
            return False
        if not all(network.permits(user, "list", group, resource) for group, resource in WATCHED):
            return False
        self.server.synced = True
        network.fabric.move_epoch()
        return True

    async def retry_sync(self) -> None:
        assert self.facade is not None
        network = self.facade.network
        while not self.try_sync():
            reached = through_service(network, self.facade.host)
            user = identity(self.process.container.host.pod)
            for group, resource in WATCHED:
                if reached is not Outcome.CONNECTED:
                    why = f'Get "https://10.96.0.1:443{_path(group)}/{resource}?limit=500&resourceVersion=0": '
                    why += f"dial tcp 10.96.0.1:443: {_dial_failure(reached)}"
                elif not network.permits(user, "list", group, resource):
                    shown = f"{resource}.{group}" if group else resource
                    why = f'{shown} is forbidden: User "{user.name}" cannot list resource "{resource}" '
                    why += f'in API group "{group}" at the cluster scope'
                else:
                    continue
                kind = {"services": "Service", "endpointslices": "EndpointSlice", "namespaces": "Namespace"}[resource]
                self.log(f"[ERROR] plugin/kubernetes: Failed to watch *v1.{kind}: failed to list *v1.{kind}: {why}")
            await self.process.sleep(SYNC_RETRY)

    # Sockets

    def listen(self, configuration: Configuration) -> None:
        """Bind the ports of a configuration; OSError where one is in use."""
        process, sockets = self.process, self.process.container.namespace
        for port in configuration.ports:
            sockets_of_port = [
                sockets.listen(process, port),
                sockets.listen(process, port, protocol="UDP"),
            ]
            sockets_of_port[1].server = self.server
            self.listeners += sockets_of_port
            if self.facade is not None:
                self.facade.network.name_servers.serve(sockets_of_port[1], partial(self.answer, port))
        for name, handler in (("health", self.health), ("ready", self.ready), ("prometheus", self.metrics)):
            for address in dict.fromkeys(setting.address for setting in configuration.settings(name)):
                host, _, port_text = address.rpartition(":")
                bound = "127.0.0.1" if host == "localhost" else host or "0.0.0.0"
                listener = sockets.listen(process, int(port_text), address=bound, http=handler)
                listener.server = self.server if name == "prometheus" else None
                self.listeners.append(listener)

    def answer(self, port: int, question: Question, client: str) -> Reply | None:
        if self.process.stopped or self.server is None:
            return None
        return self.server.answer(port, question, client)

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()
        self.listeners = []

    async def health(self, request: HttpRequest) -> HttpResponse:
        if request.path != "/health":
            return HttpResponse.text("404 page not found\n", 404)
        return HttpResponse.text("OK", 503 if self.shutting_down else 200)

    async def ready(self, request: HttpRequest) -> HttpResponse:
        if request.path != "/ready":
            return HttpResponse.text("404 page not found\n", 404)
        if self.shutting_down:
            return HttpResponse.text("Shutting down", 503)
        if self.server is not None and not self.server.synced:
            self.log('[INFO] plugin/ready: Still waiting on: "kubernetes"')
            return HttpResponse.text("kubernetes", 503)
        return HttpResponse.text("OK")

    async def metrics(self, request: HttpRequest) -> HttpResponse:
        lines: list[str] = []
        for name, labels, value in self.server.metrics() if self.server is not None else ():
            shown = ",".join(f'{key}="{text}"' for key, text in labels.items())
            lines.append(f"{name}{{{shown}}} {value:g}")
        return HttpResponse.text("\n".join(lines) + "\n", content_type="text/plain; version=0.0.4")

    # Reload

    async def reloading(self, configuration: Configuration) -> None:
        """Check the Corefile periodically, while the active configuration has the reload plugin."""
        seen = configuration.text
        digest = syntax_digest(seen, self.file, self.read)
        while settings := configuration.settings("reload"):
            interval, jitter = settings[0].values["interval"], settings[0].values["jitter"]
            await self.process.sleep(interval + jitter * (self.process.container.random.random() - 0.5))
            text = self.read(self.file)
            if text is None or text == seen:
                continue
            try:
                found = syntax_digest(text, self.file, self.read)
            except CorefileError as error:
                self.log(f"[WARNING] plugin/reload: Corefile parse failed: {error}")
                continue
            seen = text
            if found == digest:
                continue
            digest = found
            configuration = self.reload(text, configuration)

    def reload(self, text: str, old: Configuration) -> Configuration:
        """Load a changed Corefile, or keep the old configuration."""
        self.log("[INFO] Reloading")
        try:
            new = load(text, self.file, self.read)
            self.close()
            if self.server is not None:
                self.server.configuration = new
            self.listen(new)
        except (CorefileError, OSError) as error:
            why = str(error) if isinstance(error, CorefileError) else _bind_failure(error)
            if isinstance(error, OSError):
                self.close()
                if self.server is not None:
                    self.server.configuration = old
                self.listen(old)
            self.log(f"[ERROR] Restart failed: {why}")
            self.log(f"[ERROR] plugin/reload: Corefile changed but reload failed: {why}")
            return old
        if new.settings("reload"):
            self.log(f"[INFO] plugin/reload: Running configuration SHA512 = {_digest(text)}")
        self.log("[INFO] Reloading complete")
        return new

    # Exit

    async def loop_found(self, zone: str) -> int:
        random = self.process.container.random
        port, first, second = 32768 + random.randrange(28232), random.getrandbits(62), random.getrandbits(62)
        where = f'Loop (127.0.0.1:{port} -> :53) detected for zone "{zone}"'
        more = "see https://coredns.io/plugins/loop#troubleshooting"
        self.log(f'[FATAL] plugin/loop: {where}, {more}. Query: "HINFO {first}.{second}."')
        return 1

    async def shut_down(self, signal: str) -> int:
        self.log(f"[INFO] {signal}: Shutting down servers then terminating")
        configuration = self.server.configuration if self.server is not None else None
        waits = [s.values.get("lameduck", 0.0) for s in configuration.settings("health")] if configuration else []
        if any(waits) and signal == "SIGTERM":
            self.log(f"[INFO] plugin/health: Going into lameduck mode for {max(waits):g}s")
            self.shutting_down = True
            await self.process.sleep(max(waits))
        return 0


def _option(argv: list[str], name: str) -> str | None:
    """The value of a Go flag; an empty text for one without value."""
    for number, word in enumerate(argv[1:], 1):
        bare, equals, value = word.lstrip("-").partition("=")
        if word.startswith("-") and bare == name:
            if equals:
                return value
            return argv[number + 1] if number + 1 < len(argv) and name != "version" else ""
    return None


def _bind_failure(error: OSError) -> str:
    why = "address already in use" if error.errno == errno.EADDRINUSE else str(error.strerror).lower()
    return f"listen tcp :53: bind: {why}"


def _dial_failure(outcome: Outcome) -> str:
    if outcome is Outcome.TIMEOUT:
        return "i/o timeout"
    return f"connect: {outcome.value}"


def _path(group: str) -> str:
    return f"/apis/{group}/v1" if group else "/api/v1"


def _digest(text: str) -> str:
    return hashlib.sha512(text.encode()).hexdigest()
