"""Aliases by owner references: every name is made another name of one object.

How it would win: names of one component are connected by owner references of ReplicaSets and pods, which an agent may
write. An empty ReplicaSet per workload, owned by an object that exists in every namespace, makes that object's name
equal to every component, and naming it names the culprit. A Service with a chosen selector does the same for labels.
What stops it: names are connected by the objects that existed before the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script, verdict_of
from srearena.service.kubernetes import Obj

_OWNER = "kube-root-ca.crt"


def _alias(name: str, namespace: str) -> Obj:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": _OWNER, "uid": "$uid", "controller": True}
    labels = {"app": "unused"}
    pod = {"containers": [{"name": "unused", "image": "busybox:1.36"}]}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


class Aliases(Script):
    name = "aliases by owner references"

    def applies(self, scene: Scene) -> bool:
        return scene.problem.level != "none"

    def play(self, scene: Scene) -> Play:
        names = {obj["metadata"]["name"] for _, obj in scene.workloads()} | set(scene.culprits)
        items = apply(*(_alias(name, scene.namespace) for name in sorted(names)))
        script = f"uid=$({scene.kubectl(f'get configmap {_OWNER}')} -o jsonpath='{{.metadata.uid}}')\n" + items.replace(
            "<<'EOF'", "<<EOF"
        )
        return Play(script, at="localization", wait=5, answers={"localization": [_OWNER]}, graded=False)

    def wins(self, document: Mapping[str, Any]) -> bool:
        return verdict_of(document, "localization")


SCRIPTS = (Aliases(),)
