"""Small applications for tests: a model written as a dictionary, its programs as pods on a cluster of one process.

Everything runs on the virtual clock without an API server: pods are created through the world's own client.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from srearena.cluster.embedded.assembly import Assembly, assemble
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.embedded.traffic.fluid_model import FluidModel
from srearena.cluster.embedded.traffic.graph import Call, Node

START = 1_800_000_000.0


class Lab:
    """A cluster with one small application in the namespace `lab`."""

    def __init__(self, folder: Path, programs: list[dict[str, Any]], *, seed: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for one in programs:
            one.setdefault("images", [f"lab/{one['name']}"])
        (folder / "model.yaml").write_text(yaml.safe_dump({"application": "lab", "programs": programs}))
        options = ClusterOptions(models=(str(folder),), start=START, seed=seed, secret="lab", workers=2)
        self.assembly: Assembly = assemble(options)
        self.world = self.assembly.world
        self.traffic = self.assembly.traffic
        self.client = self.world.component_client("kube-apiserver")
        self.client.create("namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})
        self.wait(1)

    def run(self, name: str, *, port: int = 0, replicas: int = 1, image: str = "", **container: Any) -> None:
        """A Deployment, and a Service of the same name where it has a port."""
        labels = {"app": name}
        spec = {"name": "main", "image": image or f"lab/{name}:latest", **container}
        self.client.create(
            "deployments.apps",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": name, "namespace": "lab"},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": {"containers": [spec]}},
                },
            },
        )
        if port:
            self.client.create(
                "services",
                {
                    "apiVersion": "v1",
                    "kind": "Service",
                    "metadata": {"name": name, "namespace": "lab"},
                    "spec": {"selector": labels, "ports": [{"port": port}]},
                },
            )

    def delete(self, resource: str, name: str) -> None:
        found = self.client.get(resource, "lab", name)
        assert found is not None, name
        self.client.delete(resource, found)

    def wait(self, seconds: float) -> None:
        self.world.clock.advance(seconds)

    @property
    def fluid(self) -> FluidModel:
        assert self.traffic.fluid is not None
        return self.traffic.fluid

    def node(self, service: str, operation: str) -> Node:
        return next(n for n in self.fluid.graph.nodes if n.server.name == service and n.name == operation)

    def call(self, service: str, operation: str) -> Call:
        return next(c for c in self.fluid.graph.calls if c.caller.server.name == service and c.operation == operation)

    def rate(self, service: str, operation: str) -> float:
        return float(self.fluid.completed[self.node(service, operation).index])

    def response(self, service: str, operation: str) -> float:
        return float(self.fluid.response[self.node(service, operation).index])

    def failing(self, service: str, operation: str) -> float:
        return float(self.fluid.fails[self.node(service, operation).index])

    def mean_response(self, service: str, operation: str, seconds: int) -> float:
        """Averaged over a while, weighted by what was served."""
        total = served = 0.0
        for _ in range(seconds):
            self.wait(1)
            rate = self.rate(service, operation)
            total += rate * self.response(service, operation)
            served += rate
        return total / served

    def restarts(self, name: str) -> int:
        pods = list(self.client.list("pods", "lab"))
        return sum(
            status.get("restartCount", 0)
            for pod in pods
            if pod["metadata"]["labels"].get("app") == name
            for status in pod.get("status", {}).get("containerStatuses", ())
        )

    def logs(self, name: str) -> str:
        texts = []
        for kubelet in self.assembly.nodes.kubelets.values():
            for sandbox in kubelet.machine.sandboxes.values():
                if sandbox.pod["metadata"].get("labels", {}).get("app") == name:
                    texts += [record.log.text() for records in sandbox.records.values() for record in records]
        return "\n".join(texts)


def server(name: str, *, cpu: str = "1ms", port: int = 8080, **more: Any) -> dict[str, Any]:
    """A program with one operation, `work`, that costs `cpu`."""
    operation = {"cpu": cpu, **more.pop("operation", {})}
    return {
        "name": name,
        "runtime": "go",
        "listen": [{"port": port, "protocol": "grpc"}],
        "operations": {"work": operation},
        **more,
    }


def load(target: str, rate: float, *, port: int = 8080, **dependency: Any) -> dict[str, Any]:
    """A program that sends `work` to a service at a rate."""
    return {
        "name": "load",
        "runtime": "go",
        "settings": {"rate": {"env": "RATE", "default": rate}},
        "dependencies": {"target": {"address": f"{target}:{port}", "protocol": "grpc", **dependency}},
        "drives": {"rate": "${rate}", "tasks": [{"name": "work", "requests": [{"call": "target work"}]}]},
    }
