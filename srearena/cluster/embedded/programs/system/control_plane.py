"""The control plane's own programs: API server, controller manager and scheduler; etcd is in a module of its own.

They do what can be seen of them from a node: they listen, answer health checks and log. Their real work is done by the
simulator's own components, which also say what is logged about it (`component_logs`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from signal import Signals

from srearena.cluster.embedded.machine.containers.runtime import Sandbox
from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program

VERSION = "v1.34.0"
API_PORT = 6443

_HEALTH = ("/healthz", "/livez", "/readyz", "/health")
_UNAUTHORIZED = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized",'
    '"reason":"Unauthorized","code":401}\n'
)


class ControlPlaneProgram(Program):
    threads = 12
    base = "distroless"
    follows_tag = False
    port = 0
    tls = True
    names: tuple[str, ...] = ()
    """What its certificate is valid for, besides the machine itself."""
    greeting: tuple[str, ...] = ()

    def stamp(self, now: float, severity: str = "I") -> str:
        """The head of a log line, as klog writes it."""
        return datetime.fromtimestamp(now, UTC).strftime(f"{severity}%m%d %H:%M:%S.%f       1 ")

    def line(self, now: float, severity: str, text: str) -> str:
        """A line about the work of the simulator's component; `text` begins with its place in the source."""
        return f"{self.stamp(now, severity)}{text}"

    async def run(self, process: Process) -> int:
        stop = process.catch(Signals.SIGTERM, Signals.SIGINT)
        process.set_memory(self.idle_memory)
        host = process.container.host
        served = host.machine.handlers if isinstance(host, Sandbox) else {}
        authority = host.machine.root_certificate if isinstance(host, Sandbox) else b""
        names = ("localhost", host.hostname, *self.names)
        identity = TlsIdentity(names, "kubernetes", authority) if self.tls else None

        async def answer(request: HttpRequest) -> HttpResponse:
            handler = served.get(self.port)
            # Clients without credentials (the kubelet's probes) may only access health checks.
            if handler is None or (self.tls and not request.header("Authorization")):
                return await self.answer(request)
            return await handler(request)

        try:
            process.container.namespace.listen(process, self.port, http=answer, tls=identity)
        except OSError as error:
            await process.error(f"failed to listen on 0.0.0.0:{self.port}: {str(error.strerror).lower()}\n")
            return 1
        for line in self.greeting:
            await process.error(f"{self.stamp(process.clock.now)}{line}\n")
        if not isinstance(host, Sandbox):
            await stop.wait()
            return 0
        logs, log = host.machine.component_logs, process.container.log

        def write(severity: str, text: str) -> None:
            log.write("stderr", f"{self.line(process.clock.now, severity, text)}\n".encode())

        logs.open(self.entrypoint[0], write)
        try:
            await stop.wait()
        finally:
            logs.close(self.entrypoint[0], write)
        return 0

    async def answer(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(_HEALTH):
            response = HttpResponse.text("ok")
            response.again = _is_healthy
            return response
        return HttpResponse(401, _UNAUTHORIZED.encode(), {"Content-Type": "application/json"})


def _is_healthy() -> bool:
    return True


@program("kube-apiserver")
class ApiServerProgram(ControlPlaneProgram):
    entrypoint = ("kube-apiserver",)
    binaries = ("/usr/local/bin/kube-apiserver",)
    port = API_PORT
    names = (
        *("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
        "10.96.0.1",
    )
    idle_cpu = 0.05
    idle_memory = 260 * 1024**2
    greeting = (
        "options.go:263] external host was not specified, using the advertised address",
        f"server.go:150] Version: {VERSION}",
        "secure_serving.go:211] Serving securely on [::]:6443",
        "controller.go:90] Starting OpenAPI V3 controller",
        "cache.go:39] Caches are synced for APIServiceRegistrationController controller",
    )


@program("kube-controller-manager")
class ControllerManagerProgram(ControlPlaneProgram):
    entrypoint = ("kube-controller-manager",)
    binaries = ("/usr/local/bin/kube-controller-manager",)
    port = 10257
    idle_cpu = 0.02
    idle_memory = 55 * 1024**2
    greeting = (
        f'controllermanager.go:189] "Starting" version="{VERSION}"',
        "secure_serving.go:211] Serving securely on 127.0.0.1:10257",
        "leaderelection.go:257] attempting to acquire leader lease kube-system/kube-controller-manager...",
        "leaderelection.go:271] successfully acquired lease kube-system/kube-controller-manager",
    )


@program("kube-scheduler")
class SchedulerProgram(ControlPlaneProgram):
    entrypoint = ("kube-scheduler",)
    binaries = ("/usr/local/bin/kube-scheduler",)
    port = 10259
    idle_cpu = 0.005
    idle_memory = 26 * 1024**2
    greeting = (
        f'server.go:175] "Starting Kubernetes Scheduler" version="{VERSION}"',
        "secure_serving.go:211] Serving securely on 127.0.0.1:10259",
        "leaderelection.go:257] attempting to acquire leader lease kube-system/kube-scheduler...",
        "leaderelection.go:271] successfully acquired lease kube-system/kube-scheduler",
    )
