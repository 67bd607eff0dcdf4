"""A bare world with a scheduler: nodes and pods are made by hand, no kubelet runs."""

from __future__ import annotations

from typing import Any

import pytest

from srearena.cluster.embedded.client import Client
from srearena.cluster.embedded.objects import Obj, condition, dig
from srearena.cluster.embedded.registry.identity import User
from srearena.cluster.embedded.scheduler.scheduler import Scheduler
from srearena.cluster.embedded.world import World


class Bench:
    """Makes nodes and pods in a world of its own, and asks what became of them."""

    def __init__(self) -> None:
        self.world = World(seed=1, start=1_700_000_000.0)
        self.client: Client = self.world.client(User("admin", ("system:masters",)), "test")
        self.namespace("default")
        self.scheduler = Scheduler(self.world)
        self.scheduler.start()

    def namespace(self, name: str, **labels: str) -> None:
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
        self.client.create("namespaces", obj)

    def node(
        self,
        name: str,
        cpu: str = "4",
        memory: str = "8Gi",
        pods: int = 110,
        taints: list[Obj] | None = None,
        **labels: str,
    ) -> None:
        room = {"cpu": cpu, "memory": memory, "pods": str(pods)}
        names = {"kubernetes.io/hostname": name, **{key.replace("__", "/"): value for key, value in labels.items()}}
        node: Obj = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": names}, "spec": {}}
        if taints:
            node["spec"]["taints"] = taints
        self.client.create("nodes", node)
        self.client.set_status("nodes", node, {"capacity": room, "allocatable": room})

    def pod(self, name: str, namespace: str = "default", labels: dict[str, str] | None = None, **spec: Any) -> None:
        requests = {key: spec.pop(key) for key in ("cpu", "memory") if key in spec}
        container = {"name": "c", "image": "busybox", "resources": {"requests": requests}}
        container["ports"] = spec.pop("ports", [])
        pod: Obj = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "labels": labels or {}},
            "spec": {"containers": [container], **spec},
        }
        self.client.create("pods", pod)

    def settle(self, seconds: float = 1.0) -> None:
        self.world.clock.advance(seconds)

    def get(self, name: str, namespace: str = "default") -> Obj:
        pod = self.client.get("pods", namespace, name)
        assert pod is not None
        return pod

    def node_of(self, name: str, namespace: str = "default") -> str | None:
        found: str | None = dig(self.get(name, namespace), "spec", "nodeName")
        return found

    def why_not(self, name: str) -> str:
        """The message of the PodScheduled condition."""
        found = condition(self.get(name), "PodScheduled")
        assert found is not None and found["status"] == "False", found
        return str(found["message"])

    def events(self, reason: str) -> list[Obj]:
        return [event for event in self.client.list("events") if event["reason"] == reason]


@pytest.fixture
def bench() -> Bench:
    return Bench()
