"""The agent that restarts everything; blames the first workload that is not ready."""

from __future__ import annotations

from clients.trivial import WORKLOADS, TrivialAgent, objects
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes
from srearena.service.readiness import missing_replicas


class RestartEverything(TrivialAgent):
    def guess(self, api: Kubernetes) -> str:
        workloads = sorted(objects(api, WORKLOADS, [self.namespace]), key=lambda one: str(one[1]["metadata"]["name"]))
        not_ready = [obj for _, obj in workloads if missing_replicas(obj) is not None]
        chosen = not_ready or [obj for _, obj in workloads]
        return str(chosen[0]["metadata"]["name"]) if chosen else ""

    def repair(self, api: Kubernetes) -> None:
        for resource, obj in objects(api, WORKLOADS, [self.namespace]):
            try:
                api.restart(resource, obj["metadata"]["name"], self.namespace)
            except ServiceError:
                continue


AGENT = RestartEverything
