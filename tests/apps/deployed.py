"""An application that is up on a cluster whose time passes only when a test lets it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from srearena.cluster import Cluster, start_embedded
from srearena.service.apps.base import Application
from srearena.service.apps.registry import find_application
from srearena.service.kubernetes import Kubernetes

Obj = dict[str, Any]
START = 1_790_000_000.0


class Deployed:
    def __init__(self, cluster: Cluster, api: Kubernetes, application: Application | None) -> None:
        self.cluster = cluster
        self.api = api
        self.application = application

    def wait(self, seconds: float) -> None:
        self.cluster.wait(seconds)

    def pods(self, namespace: str, labels: str = "") -> dict[str, Obj]:
        return {pod["metadata"]["name"]: pod for pod in self.api.list("pods", namespace, labels=labels)}

    def log(self, namespace: str, labels: str, container: str = "") -> str:
        """The log of the newest pod with these labels."""
        pods = sorted(self.pods(namespace, labels).values(), key=lambda pod: pod["metadata"]["creationTimestamp"])
        return self.api.logs(pods[-1]["metadata"]["name"], namespace, container=container)

    def warnings(self, namespace: str, kind: str) -> list[str]:
        events = self.api.list("events", namespace, fields=f"involvedObject.kind={kind},type=Warning")
        return [event["message"] for event in events]


@contextmanager
def empty_cluster(seed: int = 3, **options: Any) -> Iterator[Deployed]:
    settings = {"nodes": 3, "speed": 0, "start": START, **options}
    with start_embedded(seed=seed, in_process=True, **settings) as cluster, Kubernetes.of(cluster) as api:
        yield Deployed(cluster, api, None)


@contextmanager
def deployed(name: str, seed: int = 3, **options: Any) -> Iterator[Deployed]:
    with empty_cluster(seed, **options) as running:
        application = find_application(name)
        application.deploy(running.cluster)
        application.wait_until_ready(running.cluster)
        running.application = application
        yield running


def is_ready(pod: Obj) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions") or ())
