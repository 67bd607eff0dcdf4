"""A whole cluster, with kubelets, controllers and system workloads, driven by its own clock."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.assembly import Assembly, assemble
from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.machine.files.streams import Capture
from srearena.cluster.embedded.objects import Obj, condition_is, is_terminating, name_of
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.embedded.registry.identity import User

ADMIN = User("kubernetes-admin", ("system:masters", "system:authenticated"))


class WholeCluster:
    def __init__(self, workers: int = 2) -> None:
        self.assembly: Assembly = assemble(ClusterOptions(workers=workers, start=1_700_000_000.0, secret="s"))
        self.world = self.assembly.world
        self.network = self.assembly.network
        self.client: Client = self.world.client(ADMIN, "kubectl")

    def pass_time(self, seconds: float) -> None:
        self.world.clock.advance(seconds)

    def deploy(self, name: str, image: str, *, replicas: int = 1, command: list[str] | None = None, **pod: Any) -> None:
        container: Obj = {"name": "main", "image": image}
        if command:
            container["command"] = command
        labels = {"app": name}
        self.client.create(
            "deployments.apps",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [container], **pod}},
                },
            },
        )
        self.pass_time(30)

    def expose(self, name: str, port: int, target: int | str) -> None:
        self.client.create(
            "services",
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target}]},
            },
        )
        self.pass_time(2)

    def change(self, resource: str, namespace: str, name: str, change: Any) -> None:
        assert self.client.modify(resource, namespace, name, change) is not None

    def scale(self, namespace: str, name: str, replicas: int) -> None:
        self.change("deployments.apps", namespace, name, lambda obj: obj["spec"].update(replicas=replicas))
        self.pass_time(30)

    def pods(self, namespace: str, **labels: str) -> list[Obj]:
        return [
            pod
            for pod in self.client.list("pods", namespace)
            if labels.items() <= (pod["metadata"].get("labels") or {}).items() and not is_terminating(pod)
        ]

    def ready(self, namespace: str, **labels: str) -> int:
        return sum(condition_is(pod, "Ready") for pod in self.pods(namespace, **labels))

    def container(self, pod: Obj, name: str = "") -> Container:
        sandbox = self.assembly.nodes.sandbox(pod["metadata"]["namespace"], name_of(pod))
        assert sandbox is not None
        record = sandbox.latest(name or pod["spec"]["containers"][0]["name"])
        assert record is not None and record.container is not None
        return record.container

    def log(self, pod: Obj, *, previous: bool = False) -> str:
        sandbox = self.assembly.nodes.sandbox(pod["metadata"]["namespace"], name_of(pod))
        assert sandbox is not None
        name = pod["spec"]["containers"][0]["name"]
        record = sandbox.previous(name) if previous else sandbox.latest(name)
        return record.log.text() if record is not None else ""

    def sh(self, pod: Obj, line: str, limit: float = 120.0) -> tuple[int, str]:
        """Run a command line in a pod; its status, and what it printed."""
        printed = Capture()
        process = self.container(pod).exec(["sh", "-c", line], stdout=printed, stderr=printed.retain())
        end = self.world.clock.now + limit
        while not process.done.is_set and self.world.clock.now < end:
            self.pass_time(0.5)
        assert process.done.is_set, f"{line!r} did not end"
        return process.done.value, printed.text
