"""A cluster with its collectors, and short questions to what they gathered."""

from __future__ import annotations

from typing import Any

import yaml

from srearena.cluster.embedded.assembly import assemble
from srearena.cluster.embedded.machine.containers.container import Container
from srearena.cluster.embedded.objects import Obj, labels_of, name_of
from srearena.cluster.embedded.options import ClusterOptions
from srearena.cluster.embedded.telemetry.collectors.collector import SLOW_INTERVAL
from srearena.cluster.embedded.telemetry.metrics.matchers import Matcher

SCRAPE = 15.0
SLOW = {("job", name) for name in ("apiserver", "etcd", "kube-scheduler", "kube-controller-manager", "kube-proxy")}
"""Jobs with the longer interval, beside the kubelet's own metrics."""
START = 1_700_000_100.0
"""A multiple of both scrape intervals, so that a scrape has just happened at the start."""


class Observed:
    def __init__(self, *, seed: int = 1, workers: int = 2) -> None:
        self.assembly = assemble(ClusterOptions(seed=seed, workers=workers, start=START))
        self.world = self.assembly.world
        self.nodes = self.assembly.nodes
        self.store = self.assembly.telemetry.metrics
        self._client = self.world.component_client("kube-apiserver")

    def pass_time(self, seconds: float = SCRAPE) -> None:
        self.world.clock.advance(seconds)

    # Objects

    def apply(self, text: str, namespace: str = "default") -> None:
        for obj in yaml.safe_load_all(text):
            resource = _RESOURCES[obj["kind"]]
            if obj["kind"] not in ("Namespace", "IngressClass"):
                obj["metadata"].setdefault("namespace", namespace)
            self._client.create(resource, obj)

    def change(self, resource: str, namespace: str, name: str, **spec: Any) -> None:
        obj = self.world.store.get(resource, namespace, name)
        assert obj is not None
        self._client.update(resource, {**obj, "spec": {**obj["spec"], **spec}})

    def delete(self, resource: str, namespace: str, name: str) -> None:
        obj = self.world.store.get(resource, namespace, name)
        assert obj is not None
        self._client.delete(resource, obj)

    def pods(self, app: str, namespace: str = "default") -> list[Obj]:
        return [pod for pod in self.world.store.objects("pods", namespace) if labels_of(pod).get("app") == app]

    def container(self, pod: Obj, name: str = "main") -> Container:
        sandbox = self.nodes.sandbox(pod["metadata"]["namespace"], name_of(pod))
        assert sandbox is not None
        record = sandbox.latest(name)
        assert record is not None and record.container is not None
        return record.container

    # Metrics

    def series(self, name: str, ago: float = 0.0, /, **labels: str) -> dict[tuple[tuple[str, str], ...], float]:
        """What the scrape before a moment gave, by labels; series that ended before are not there."""
        now = self.world.clock.now - ago
        matchers = [Matcher("__name__", "=", name), *(Matcher(key, "=", value) for key, value in labels.items())]
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for interval in (SLOW_INTERVAL, SCRAPE):
            at = now // interval * interval
            for row, _, values in self.store.select(matchers, at, at):
                slow = ("metrics_path", "/metrics") in row or any(pair in SLOW for pair in row)
                if slow == (interval == SLOW_INTERVAL):
                    found[row] = float(values[-1])
        return found

    def value(self, name: str, ago: float = 0.0, /, **labels: str) -> float:
        found = self.series(name, ago, **labels)
        assert len(found) == 1, found
        return next(iter(found.values()))

    def rate(self, name: str, /, **labels: str) -> float:
        """By how much a counter grew a second, between the last two scrapes."""
        interval = SLOW_INTERVAL
        return (self.value(name, **labels) - self.value(name, interval, **labels)) / interval


_RESOURCES = {
    "Namespace": "namespaces",
    "Deployment": "deployments.apps",
    "Service": "services",
    "Pod": "pods",
    "ConfigMap": "configmaps",
    "Secret": "secrets",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Ingress": "ingresses.networking.k8s.io",
    "IngressClass": "ingressclasses.networking.k8s.io",
    "NetworkPolicy": "networkpolicies.networking.k8s.io",
}


def deployment(name: str, image: str = "nginx:1.27", command: str = "", replicas: int = 1, container: str = "") -> str:
    """A deployment of one container called `main`; `container` is further YAML for it, in braces."""
    further = {"name": "main", "image": image, **(yaml.safe_load(container) if container else {})}
    if command:
        further["command"] = ["sh", "-c", command]
    labels = {"app": name}
    spec = {
        "replicas": replicas,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [further]}},
    }
    return yaml.safe_dump({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


def service(name: str, target: int = 80, port: int = 80) -> str:
    spec = {"selector": {"app": name}, "ports": [{"port": port, "targetPort": target}]}
    return yaml.safe_dump({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
