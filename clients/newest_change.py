"""The agent that blames the newest change: the latest write by a person or a pipeline, which it undoes.

A write is an entry of `managedFields` that is not a controller's; an object without a second write is as new as its
creation. A new object is deleted, a Deployment gets its previous revision back.
"""

from __future__ import annotations

from clients.trivial import WORKLOADS, TrivialAgent, objects, undo
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj

_RESOURCES = (
    *WORKLOADS,
    "services",
    "configmaps",
    "networkpolicies",
    "resourcequotas",
    "limitranges",
    "cronjobs",
    "roles",
    "ingresses",
    "horizontalpodautoscalers",
    "tidbclusters",
)
_CLUSTER_SCOPED = ("priorityclasses", "validatingwebhookconfigurations", "mutatingwebhookconfigurations", "nodes")
_CONTROLLERS = ("kube-", "kubelet", "kubectl-rollout", "tidb-controller", "coredns", "cloud-")
_SYSTEM = "kube-system"


def last_write(obj: Obj) -> str:
    """The time of the latest write that is not a controller's."""
    times = [
        str(entry.get("time", ""))
        for entry in obj["metadata"].get("managedFields") or ()
        if entry.get("subresource") != "status" and not entry.get("manager", "").startswith(_CONTROLLERS)
    ]
    return max(times, default="")


class NewestChange(TrivialAgent):
    def __init__(self) -> None:
        super().__init__()
        self._newest: tuple[str, Obj] | None = None

    def guess(self, api: Kubernetes) -> str:
        found = objects(api, _RESOURCES, [self.namespace, _SYSTEM]) + objects(api, _CLUSTER_SCOPED, [""])
        authored = [(resource, obj) for resource, obj in found if not obj["metadata"].get("ownerReferences")]
        self._newest = max(authored, key=lambda one: last_write(one[1]), default=None)
        return str(self._newest[1]["metadata"]["name"]) if self._newest else ""

    def repair(self, api: Kubernetes) -> None:
        if self._newest is None:
            return
        resource, obj = self._newest
        metadata = obj["metadata"]
        if resource == "deployments" and undo(api, obj):
            return
        if metadata["creationTimestamp"] >= last_write(obj):
            try:
                api.delete(resource, metadata["name"], metadata.get("namespace"))
            except ServiceError:
                return


AGENT = NewestChange
