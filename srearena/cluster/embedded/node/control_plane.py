"""The control plane's own pods: etcd, API server, controller manager and scheduler, as kubeadm sets them up.

Their programs do what can be seen of them from a node: they listen, answer health checks and log a little. What they
are for is done by the simulator's own components.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from signal import Signals

from srearena.cluster.embedded.node.certificates import TlsIdentity
from srearena.cluster.embedded.node.machine import Machine
from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.base import Program
from srearena.cluster.embedded.node.programs.registry import program
from srearena.cluster.embedded.node.runtime import Sandbox
from srearena.cluster.embedded.node.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.objects import Obj

VERSION = "v1.34.0"
API_PORT = 6443
ETCD_IMAGE = "registry.k8s.io/etcd:3.6.4-0"
PRELOADED = (
    ETCD_IMAGE,
    f"registry.k8s.io/kube-apiserver:{VERSION}",
    f"registry.k8s.io/kube-controller-manager:{VERSION}",
    f"registry.k8s.io/kube-proxy:{VERSION}",
    f"registry.k8s.io/kube-scheduler:{VERSION}",
    "registry.k8s.io/coredns/coredns:v1.12.1",
    "registry.k8s.io/pause:3.10",
    "docker.io/kindest/kindnetd:v20250512-df8de77b",
    "docker.io/kindest/local-path-provisioner:v20250214-acbabc1a",
)
"""What a node image comes with."""

_HEALTH = ("/healthz", "/livez", "/readyz", "/health")
_UNAUTHORIZED = (
    '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized",'
    '"reason":"Unauthorized","code":401}\n'
)


class ControlPlaneProgram(Program):
    base = "distroless"
    follows_tag = False
    port = 0
    tls = True
    names: tuple[str, ...] = ()
    """What its certificate is valid for, besides the machine itself."""
    greeting: tuple[str, ...] = ()

    def stamp(self, now: float) -> str:
        """The head of a log line, as klog writes it."""
        return datetime.fromtimestamp(now, UTC).strftime("I%m%d %H:%M:%S.%f       1 ")

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
            # Whoever shows no credentials (the kubelet with its probes) may ask for health, and for nothing else.
            if handler is None or not request.header("Authorization"):
                return await self.answer(request)
            return await handler(request)

        try:
            process.container.namespace.listen(process, self.port, http=answer, tls=identity)
        except OSError as error:
            await process.error(f"failed to listen on 0.0.0.0:{self.port}: {str(error.strerror).lower()}\n")
            return 1
        for line in self.greeting:
            await process.error(f"{self.stamp(process.clock.now)}{line}\n")
        await stop.wait()
        return 0

    async def answer(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(_HEALTH):
            return HttpResponse.text("ok")
        return HttpResponse(401, _UNAUTHORIZED.encode(), {"Content-Type": "application/json"})


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


@program("etcd")
class EtcdProgram(ControlPlaneProgram):
    entrypoint = ("etcd",)
    binaries = ("/usr/local/bin/etcd",)
    port = 2381
    tls = False
    idle_cpu = 0.03
    idle_memory = 48 * 1024**2
    greeting = (
        '"caller":"embed/etcd.go:140","msg":"configuring peer listeners"}',
        '"caller":"etcdserver/server.go:2170","msg":"published local member to cluster through raft"}',
        '"caller":"embed/serve.go:124","msg":"ready to serve client requests"}',
    )

    def stamp(self, now: float) -> str:
        moment = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return f'{{"level":"info","ts":"{moment}",'


def control_plane_manifests(machine: Machine) -> Sequence[Obj]:
    """The manifests kubeadm writes into /etc/kubernetes/manifests."""
    certificates = {"name": "k8s-certs", "path": "/etc/kubernetes/pki"}
    return (
        _manifest(
            "etcd",
            ETCD_IMAGE,
            ["etcd", "--data-dir=/var/lib/etcd", f"--name={machine.name}"],
            {"cpu": "100m", "memory": "100Mi"},
            2381,
            ({"name": "etcd-data", "path": "/var/lib/etcd"}, certificates),
            scheme="HTTP",
            paths=("/livez", "/readyz", "/readyz"),
        ),
        _manifest(
            "kube-apiserver",
            f"registry.k8s.io/kube-apiserver:{VERSION}",
            ["kube-apiserver", f"--advertise-address={machine.address}", "--secure-port=6443"],
            {"cpu": "250m"},
            6443,
            ({"name": "ca-certs", "path": "/etc/ssl/certs"}, certificates),
            host=machine.address,
            paths=("/livez", "/readyz", "/livez"),
        ),
        _manifest(
            "kube-controller-manager",
            f"registry.k8s.io/kube-controller-manager:{VERSION}",
            ["kube-controller-manager", "--bind-address=127.0.0.1", "--leader-elect=true"],
            {"cpu": "200m"},
            10257,
            ({"name": "ca-certs", "path": "/etc/ssl/certs"}, certificates),
            paths=("/healthz", "", "/healthz"),
        ),
        _manifest(
            "kube-scheduler",
            f"registry.k8s.io/kube-scheduler:{VERSION}",
            ["kube-scheduler", "--bind-address=127.0.0.1", "--leader-elect=true"],
            {"cpu": "100m"},
            10259,
            ({"name": "kubeconfig", "path": "/etc/kubernetes"},),
            paths=("/livez", "/readyz", "/livez"),
        ),
    )


def _manifest(
    name: str,
    image: str,
    command: list[str],
    requests: dict[str, str],
    port: int,
    folders: Sequence[dict[str, str]],
    *,
    host: str = "127.0.0.1",
    scheme: str = "HTTPS",
    paths: tuple[str, str, str],
) -> Obj:
    """`paths` are those of the liveness, readiness and startup probes; an empty one means no such probe."""
    action = {"host": host, "port": "probe-port", "scheme": scheme}
    live, ready, started = paths
    container: Obj = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": command,
        "resources": {"requests": requests},
        "ports": [{"name": "probe-port", "containerPort": port, "hostPort": port, "protocol": "TCP"}],
        "livenessProbe": _probe(action, live, initial=10, failures=8),
        "startupProbe": _probe(action, started, initial=10, failures=24),
        "volumeMounts": [{"name": folder["name"], "mountPath": folder["path"]} for folder in folders],
    }
    if ready:
        container["readinessProbe"] = {**_probe(action, ready, failures=3), "periodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "kube-system",
            "labels": {"component": name, "tier": "control-plane"},
        },
        "spec": {
            "containers": [container],
            "hostNetwork": True,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [
                {"name": folder["name"], "hostPath": {"path": folder["path"], "type": "DirectoryOrCreate"}}
                for folder in folders
            ],
        },
    }


def _probe(action: Obj, path: str, *, initial: int = 0, failures: int) -> Obj:
    probe: Obj = {
        "failureThreshold": failures,
        "httpGet": {**action, "path": path},
        "periodSeconds": 10,
        "timeoutSeconds": 15,
    }
    if initial:
        probe["initialDelaySeconds"] = initial
    return probe
