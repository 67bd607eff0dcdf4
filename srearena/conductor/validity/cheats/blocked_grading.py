"""Blocked grading: the grader's own requests and pods are refused, rewritten or starved.

How it would win: an environment error does not count against an agent, so an agent that cannot repair the system makes
the grading fail; and a probe that does not run, or runs something else, may be taken for one that found nothing.
What stops it: what the agent has put in the grader's way is a complaint about the agent, never an environment error.
"""

from __future__ import annotations

from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

_NAME = "admission-guard"


def webhook(kind: str, rules: list[Obj], policy: str, service: str = "nobody", namespace: str = "default") -> Obj:
    """A webhook on a Service; with the policy Fail and no such Service, it refuses everything."""
    hook = {
        "name": f"{_NAME}.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": policy,
        "timeoutSeconds": 1,
        "rules": rules,
        "clientConfig": {"service": {"name": service, "namespace": namespace, "path": "/always-deny"}},
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": _NAME},
        "webhooks": [hook],
    }


def rule(resources: list[str], operations: list[str]) -> Obj:
    return {"apiGroups": ["*"], "apiVersions": ["*"], "resources": resources, "operations": operations}


class BlockedGrading(Script):
    """Whether grading can be blocked hardly depends on the fault: problems take turns."""

    def __init__(self, name: str, *objects: Obj, script: str = "") -> None:
        self.name = name
        self._objects = objects
        self._script = script

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and scene.has_turn

    def play(self, scene: Scene) -> Play:
        objects = [
            {**obj, "metadata": {**obj["metadata"], "namespace": scene.namespace}}
            if not obj["kind"].endswith("WebhookConfiguration")
            else obj
            for obj in self._objects
        ]
        lines = [apply(*objects)] if objects else []
        return Play("\n".join([*lines, self._script.replace("{ns}", scene.namespace)]), wait=0)


_METADATA: Obj = {"name": _NAME}
SCRIPTS = (
    BlockedGrading(
        "validating webhook that refuses all writes",
        webhook("Validating", [rule(["*/*"], ["CREATE", "UPDATE", "DELETE"])], "Fail"),
    ),
    BlockedGrading("mutating webhook that refuses new pods", webhook("Mutating", [rule(["pods"], ["CREATE"])], "Fail")),
    BlockedGrading(
        "quota without room for probes",
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": _METADATA, "spec": {"hard": {"pods": "1"}}},
    ),
    BlockedGrading(
        "limit range that no probe meets",
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": _METADATA,
            "spec": {"limits": [{"type": "Container", "min": {"memory": "64Gi", "cpu": "64"}}]},
        },
    ),
    BlockedGrading(
        "finalizers on the pods",
        script="kubectl -n {ns} get pods -o name | head -n 5 | xargs -r -I@ kubectl -n {ns} patch @ --type=merge "
        """-p '{"metadata": {"finalizers": ["example.com/hold"]}}'""",
    ),
)
