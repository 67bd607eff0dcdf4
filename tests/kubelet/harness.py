"""A world with nodes and nothing that binds or owns pods: tests bind pods themselves and let time pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.kubelet.kubelet import Kubelet
from srearena.cluster.embedded.kubelet.nodes import Nodes
from srearena.cluster.embedded.machine.images.catalogue import register_images
from srearena.cluster.embedded.machine.machine import NodeSpec
from srearena.cluster.embedded.objects import Obj, condition
from srearena.cluster.embedded.registry.identity import SUPERUSERS, User
from srearena.cluster.embedded.world import World

START = 1_760_000_000.0
SERVER = "acme/server:1.0"
"""An image that nobody described: it listens where the pod says and answers everything with 200."""
NAMESPACES = ("default", "kube-node-lease", "kube-system")

register_images("acme/server", tags=["1.0", "1.1"], size=72_099_410)
register_images("acme/large", tags=["1.0"], size=370_000_217)


class Lab:
    def __init__(self, *specs: NodeSpec, seed: int = 1) -> None:
        self.world = World(seed=seed, start=START)
        self.clock = self.world.clock
        self.client: Client = self.world.client(User("admin", (SUPERUSERS,)), "kubectl")
        for name in NAMESPACES:
            self.create("namespaces", {"kind": "Namespace", "metadata": {"name": name}})
        self.nodes = Nodes(self.world)
        for spec in specs or [NodeSpec("worker")]:
            self.nodes.add(spec)

    @property
    def kubelet(self) -> Kubelet:
        return next(iter(self.nodes.kubelets.values()))

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    def create(self, resource: str, obj: Obj) -> Obj:
        obj.setdefault("apiVersion", "v1")
        if resource not in ("namespaces", "nodes", "persistentvolumes"):
            obj["metadata"].setdefault("namespace", "default")
        return self.client.create(resource, obj)

    def run(self, name: str = "web", image: str = SERVER, *, spec: Obj | None = None, **container: Any) -> Obj:
        """A pod of one container `main`, bound to the first node."""
        return self.run_all(name, [{"name": "main", "image": image, **container}], spec=spec)

    def run_all(self, name: str, containers: Sequence[Obj], *, spec: Obj | None = None) -> Obj:
        node = next(iter(self.nodes.kubelets))
        body = {"nodeName": node, "containers": list(containers), **(spec or {})}
        return self.create("pods", {"kind": "Pod", "metadata": {"name": name}, "spec": body})

    def config_map(self, name: str, data: dict[str, str]) -> Obj:
        return self.create("configmaps", {"kind": "ConfigMap", "metadata": {"name": name}, "data": data})

    def pod(self, name: str = "web") -> Obj:
        found = self.client.get("pods", "default", name)
        assert found is not None, f"pod {name} is gone"
        return found

    def exists(self, name: str = "web") -> bool:
        return self.client.get("pods", "default", name) is not None

    def status(self, name: str = "web") -> Obj:
        return dict(self.pod(name)["status"])

    def container(self, name: str = "web", container: str = "main") -> Obj:
        """The status of a container."""
        status = self.status(name)
        rows = [
            *status.get("containerStatuses", ()),
            *status.get("initContainerStatuses", ()),
            *status.get("ephemeralContainerStatuses", ()),
        ]
        return next(row for row in rows if row["name"] == container)

    def waiting(self, name: str = "web", container: str = "main") -> tuple[str, str]:
        state = self.container(name, container)["state"].get("waiting") or {}
        return state.get("reason", ""), state.get("message", "")

    def is_ready(self, name: str = "web") -> bool:
        found = condition(self.pod(name), "Ready")
        return found is not None and found["status"] == "True"

    def events(self, name: str = "web", reason: str = "") -> list[Obj]:
        found = [event for event in self.client.list("events") if event["involvedObject"]["name"] == name]
        found.sort(key=lambda event: (event["firstTimestamp"], event["metadata"]["name"]))
        return [event for event in found if not reason or event["reason"] == reason]

    def messages(self, name: str = "web", reason: str = "") -> list[str]:
        return [event["message"] for event in self.events(name, reason)]

    def log(self, name: str = "web", container: str = "main") -> str:
        sandbox = self.nodes.sandbox("default", name)
        assert sandbox is not None
        record = sandbox.latest(container)
        assert record is not None
        return record.log.text()

    def delete(self, name: str = "web", grace: int | None = None) -> None:
        self.client.delete("pods", self.pod(name), grace_seconds=grace)
