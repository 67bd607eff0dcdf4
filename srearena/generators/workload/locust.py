"""Locust: users in a closed loop, as a Deployment in the application's namespace.

Where the application has a load generator, its Deployment is scaled and configured. Where it has none, Locust is
deployed with a locustfile generated from a mix of users.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from srearena.generators.workload.jobs import LABELS
from srearena.generators.workload.locust_stats import LocustResult, read_statistics, read_table
from srearena.generators.workload.user_mix import UserMix
from srearena.service.errors import ApplicationError, Unreachable
from srearena.service.kubernetes import Kubernetes

Obj = dict[str, Any]
IMAGE = "locustio/locust:2.32.3"
WEB_PORT = 8089
_LOG_LINES = 2000


@dataclass(frozen=True, slots=True)
class Locust:
    """The settings of the generator."""

    deployment: str = "load-generator"
    container: str = ""
    """The name of its container; empty for the first."""
    users: int | None = None
    """The number of users; None leaves it unchanged."""
    spawn_rate: float | None = None
    """Users added per second."""
    users_variable: str = "LOCUST_USERS"
    spawn_variable: str = "LOCUST_SPAWN_RATE"
    web: str = ""
    """The Service of its web interface; empty where it has none."""
    host: str = ""
    """The base URL of the requests, with `mix`."""
    mix: UserMix | None = None

    def __post_init__(self) -> None:
        if (self.users is not None and self.users < 0) or (self.spawn_rate is not None and self.spawn_rate <= 0):
            raise ApplicationError("the number of users cannot be negative, and the spawn rate must be above zero")
        if self.mix is not None and not re.match(r"https?://", self.host):
            raise ApplicationError("a mix of users needs a host, such as http://frontend:8080")

    def start(self, api: Kubernetes, namespace: str) -> None:
        if self.mix is not None:
            for obj in self.objects():
                api.apply(obj, namespace)
            return
        spec = api.get("deployments", self.deployment, namespace)["spec"]
        containers = spec["template"]["spec"]["containers"]
        container = next((c for c in containers if c["name"] == self.container), containers[0])
        change: Obj = {"replicas": max(1, spec.get("replicas", 1))}
        settings = self._settings(container)
        if settings:
            change["template"] = {"spec": {"containers": [{"name": container["name"], **settings}]}}
        api.patch("deployments", self.deployment, {"spec": change}, namespace, manager="kubectl-edit")

    def _settings(self, container: Obj) -> Obj:
        """The change of a container: its arguments where they include the setting, else its environment."""
        arguments, variables = [str(word) for word in container.get("args") or ()], []
        options = (
            ("--users", self.users_variable, self.users),
            ("--spawn-rate", self.spawn_variable, self.spawn_rate),
        )
        for flag, variable, value in options:
            if value is None:
                continue
            if flag in arguments[:-1]:
                arguments[arguments.index(flag) + 1] = f"{value:g}"
            else:
                variables.append({"name": variable, "value": f"{value:g}"})
        changed = {"args": arguments} if arguments != (container.get("args") or []) else {}
        return {**changed, **({"env": variables} if variables else {})}

    def stop(self, api: Kubernetes, namespace: str) -> None:
        if self.mix is not None:
            for obj in self.objects():
                api.delete(obj["kind"], obj["metadata"]["name"], namespace)
        elif api.find("deployments", self.deployment, namespace) is not None:
            api.scale("deployments", self.deployment, 0, namespace)

    def result(self, api: Kubernetes, namespace: str) -> LocustResult | None:
        web = self.web or (self.deployment if self.mix is not None else "")
        if web:
            try:
                reply = api.request_service(web, WEB_PORT, "/stats/requests", namespace)
                return read_statistics(orjson.loads(reply.body)) if reply.ok else None
            except (Unreachable, ValueError):
                return None
        labels = api.get("deployments", self.deployment, namespace)["spec"]["selector"]["matchLabels"]
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        for pod in api.list("pods", namespace, labels=selector):
            if pod.get("status", {}).get("phase") == "Running":
                return read_table(
                    api.logs(pod["metadata"]["name"], namespace, container=self.container, tail=_LOG_LINES)
                )
        return None

    def objects(self) -> list[Obj]:
        """ConfigMap, Service and Deployment for a mix of users."""
        assert self.mix is not None
        name, labels = self.deployment, {"app": self.deployment, **LABELS}
        metadata = {"name": name, "labels": labels}
        container = {
            "name": self.container or "locust",
            "image": IMAGE,
            "args": ["--autostart", "-f", "/mnt/locust/locustfile.py"],
            "env": [
                {"name": "LOCUST_HOST", "value": self.host},
                {"name": self.users_variable, "value": str(self.users if self.users is not None else 10)},
                {"name": self.spawn_variable, "value": f"{self.spawn_rate or 1:g}"},
            ],
            "ports": [{"containerPort": WEB_PORT, "name": "web"}],
            "volumeMounts": [{"name": "locustfile", "mountPath": "/mnt/locust"}],
        }
        pod = {"containers": [container], "volumes": [{"name": "locustfile", "configMap": {"name": name}}]}
        template = {"metadata": {"labels": labels}, "spec": pod}
        selector = {"app": name}
        ports = [{"name": "web", "port": WEB_PORT, "targetPort": WEB_PORT}]
        return [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": metadata,
                "data": {"locustfile.py": self.mix.locustfile()},
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                "spec": {"selector": selector, "ports": ports},
            },
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": metadata,
                "spec": {"replicas": 1, "selector": {"matchLabels": selector}, "template": template},
            },
        ]


def from_settings(folder: Path, settings: Mapping[str, Any]) -> Locust:
    """Create the generator from an application's `workload.yaml`; `mix` is a mapping (see `user_mix`)."""
    options = dict(settings)
    mix = options.pop("mix", None)
    return Locust(mix=None if mix is None else UserMix.parse(mix), **options)
