"""The agent that always says Yes: names the first workload by alphabet and repairs nothing."""

from __future__ import annotations

from clients.trivial import WORKLOADS, TrivialAgent, objects
from srearena.service.kubernetes import Kubernetes


class AlwaysYes(TrivialAgent):
    def guess(self, api: Kubernetes) -> str:
        return min((str(obj["metadata"]["name"]) for _, obj in objects(api, WORKLOADS, [self.namespace])), default="")


AGENT = AlwaysYes
