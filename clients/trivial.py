"""What the trivial agents share: they answer every stage without a diagnosis, from one look at the cluster.

They are baselines. A benchmark whose problems they solve does not measure diagnosis; `docs/validity.md` has the table
of what each of them wins.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path

from clients.rules.system import namespace_in
from srearena.service.errors import ServiceError
from srearena.service.kubernetes import Kubernetes, Obj

WORKLOADS = ("deployments", "statefulsets", "daemonsets")
_REVISION = "deployment.kubernetes.io/revision"


class TrivialAgent(ABC):
    """Says that something is wrong, names one component, and has one trick."""

    def __init__(self) -> None:
        self.namespace = "default"
        self._kubeconfig: Path | None = None
        self._guess: str | None = None

    def connect(self, kubeconfig: Path) -> None:
        self._kubeconfig = kubeconfig

    def init_context(self, description: str, instructions: str, actions: Mapping[str, str]) -> None:
        self.namespace = namespace_in(description)

    @abstractmethod
    def guess(self, api: Kubernetes) -> str:
        """The component to blame."""

    def repair(self, api: Kubernetes) -> None:  # noqa: B027 - optional
        """The trick."""

    async def get_action(self, state: str) -> str:
        assert self._kubeconfig is not None
        with Kubernetes(self._kubeconfig) as api:
            if self._guess is None:
                self._guess = self.guess(api)
            answer = self._answer(state, api)
        return f"```\nsubmit({answer})\n```"

    def _answer(self, state: str, api: Kubernetes) -> str:
        if "Yes or No" in state:
            return '"Yes"'
        if "Which components" in state:
            return json.dumps([self._guess])
        if "What kind of fault" in state:
            return '{"system_level": "Virtualization", "fault_type": "Misconfiguration"}'
        if "What happened" in state:
            name = f"{self.namespace}/Deployment/{self._guess}"
            return repr({"entities": [{"name": name, "contributing_factor": True}]})
        self.repair(api)
        return ""


def objects(api: Kubernetes, resources: Iterable[str], namespaces: Iterable[str]) -> list[tuple[str, Obj]]:
    """The objects of these resources with their resource; those that may not be read are left out."""
    found: list[tuple[str, Obj]] = []
    for namespace in namespaces:
        for resource in resources:
            try:
                found += [(resource, obj) for obj in api.list(resource, namespace or None)]
            except ServiceError:
                continue
    return found


def revisions(api: Kubernetes, deployment: Obj) -> list[Obj]:
    """The ReplicaSets of a Deployment, the newest revision first."""
    metadata = deployment["metadata"]
    owned = [
        one
        for one in api.list("replicasets", metadata["namespace"])
        if any(owner["uid"] == metadata["uid"] for owner in one["metadata"].get("ownerReferences", ()))
    ]
    return sorted(owned, key=lambda one: -int((one["metadata"].get("annotations") or {}).get(_REVISION, 0)))


def undo(api: Kubernetes, deployment: Obj) -> bool:
    """Restore the pod template of the previous revision, as `kubectl rollout undo` does; False where there is none."""
    history = revisions(api, deployment)
    if len(history) < 2:
        return False
    template = history[1]["spec"]["template"]
    template["metadata"].get("labels", {}).pop("pod-template-hash", None)
    patch = [{"op": "replace", "path": "/spec/template", "value": template}]
    try:
        api.patch("deployments", deployment["metadata"]["name"], patch, deployment["metadata"]["namespace"])
    except ServiceError:
        return False
    return True
