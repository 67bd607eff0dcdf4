"""Containers with a wrong image or command, or that cannot start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from srearena.conductor.problems.injected import CONTAINER, POD, RESTORE, InjectedProblem
from srearena.conductor.problems.registry import problem
from srearena.conductor.problems.targets import components
from srearena.conductor.problems.variation import Choice
from srearena.generators.fault.actors import deployment
from srearena.service.kubernetes import Obj

_EXPORTER_PORT = 9100
_NODE_EXPORTER: tuple[dict[str, Any], ...] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "monitoring"}},
    {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "node-exporter", "namespace": "monitoring", "labels": {"app": "node-exporter"}},
        "spec": {
            "selector": {"matchLabels": {"app": "node-exporter"}},
            "template": {
                "metadata": {"labels": {"app": "node-exporter"}},
                "spec": {
                    "hostNetwork": True,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [
                        {
                            "name": "node-exporter",
                            "image": "prom/node-exporter:v1.8.2",
                            "ports": [{"name": "metrics", "containerPort": _EXPORTER_PORT, "hostPort": _EXPORTER_PORT}],
                        }
                    ],
                },
            },
        },
    },
)


@problem("wrong_bin_usage", app="hotel_reservation", service="profile")
class WrongBinUsage(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {
        # The programs of the other applications are in images of their own.
        "service": lambda arguments: (
            [name for name in components(arguments) if name != "geo"] if arguments["app"] == "hotel_reservation" else ()
        )
    }
    family = "wrong_bin_usage"
    fault = "wrong_bin_usage"
    explanation = "The container of {service} starts the program geo instead of its own."
    remedy = RESTORE
    restores = (f"{CONTAINER}/command",)


@problem("sidecar_port_conflict_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("sidecar_port_conflict_hotel_reservation", app="hotel_reservation", service="frontend")
@problem("sidecar_port_conflict_social_network", app="social_network", service="user-service")
class SidecarPortConflict(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components}
    family = "sidecar_port_conflict"
    fault = "sidecar_port_conflict"
    explanation = "A sidecar in {service} listens on the port that the main container needs."
    remedy = RESTORE
    restores = (f"{POD}/containers",)


@problem("service_port_conflict_astronomy_shop", app="astronomy_shop", service="ad")
@problem("service_port_conflict_hotel_reservation", app="hotel_reservation", service="recommendation")
@problem("service_port_conflict_social_network", app="social_network", service="media-service")
class ServicePortConflict(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {"service": components}
    extra_namespaces = ("monitoring",)
    family = "service_port_conflict"
    fault = "service_port_conflict"
    explanation = "{service} asks for port 9100 of its node, which the node exporter holds on every node."
    remedy = RESTORE
    restores = (f"{CONTAINER}/ports",)

    def set_up(self) -> None:
        """Deploy a node exporter on every node, where the cluster has none."""
        namespace, *exporter = _NODE_EXPORTER
        self.kubernetes.apply(namespace)
        pods = self.kubernetes.list("pods")
        ports = [port for pod in pods for container in pod["spec"]["containers"] for port in container.get("ports", ())]
        if any(port.get("hostPort") == _EXPORTER_PORT for port in ports):
            return
        for obj in exporter:
            self.kubernetes.apply(obj)
        self.cluster.wait(60)


@problem("init_container_dependency_hang_astronomy_shop", app="astronomy_shop", service="frontend")
@problem("init_container_dependency_hang_hotel_reservation", app="hotel_reservation", service="frontend")
@problem("init_container_dependency_hang_social_network", app="social_network", service="user-service")
class InitContainerDependencyHang(InjectedProblem):
    varies: ClassVar[Mapping[str, Choice]] = {
        "service": components,
        "dependency": ("legacy-config-service", "schema-registry", "session-vault"),
    }
    family = "init_container_dependency_hang"
    difficulty = "easy"
    fault = "init_container_dependency_hang"
    fault_type = "Dependency Problem"
    explanation = "An init container of {service} waits for a Service that does not exist."
    remedy = RESTORE
    restores = (f"{POD}/initContainers",)


@problem("dev_shm_exhaustion_hotel_reservation", app="hotel_reservation", service="media-processor")
class SharedMemoryExhaustion(InjectedProblem):
    """Adds a worker that needs more shared memory than the runtime's default of 64 MiB."""

    varies: ClassVar[Mapping[str, Choice]] = {"service": ("media-processor", "thumbnailer", "video-encoder")}
    family = "dev_shm_exhaustion"
    fault = "shared_memory_removed"
    explanation = (
        "{service} writes 128 MiB to /dev/shm, for which it had a volume in memory; without it the container runtime "
        "gives 64 MiB, and the worker ends each time it runs out of space."
    )
    remedy = RESTORE
    restores = (f"{POD}/volumes", f"{CONTAINER}/volumeMounts")

    def declared(self, service: str) -> Obj:
        script = (
            "while true; do dd if=/dev/zero of=/dev/shm/frames bs=1M count=128 || exit 1; "
            "touch /tmp/ready; sleep 15; done"
        )
        container = {
            "name": "worker",
            "image": "busybox:1.36",
            "command": ["sh", "-c", script],
            "readinessProbe": {"exec": {"command": ["test", "-f", "/tmp/ready"]}, "periodSeconds": 5},
            "volumeMounts": [{"name": "frames", "mountPath": "/dev/shm"}],
        }
        volume = {"name": "frames", "emptyDir": {"medium": "Memory", "sizeLimit": "256Mi"}}
        pod = {"containers": [container], "volumes": [volume]}
        return deployment(service, self.namespace, pod)

    def set_up(self) -> None:
        self.kubernetes.apply(self.declared(self.services[0]))
        self.cluster.wait(45)
