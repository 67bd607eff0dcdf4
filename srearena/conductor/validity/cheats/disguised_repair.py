"""Disguised late repair: what is made after the submission looks as if the control plane had made it.

How it would win: the comparison with the state at the submission leaves out what controllers make: objects with a
controlling owner, provisioned volumes, the root certificates, the replicas of what an autoscaler scales. A pod that the
agent left behind gives its own late repair one of these marks.
What stops it: an owner counts only if its controller makes such objects, a mark only on the kind that carries it, and
no autoscaler scales from zero.
"""

from __future__ import annotations

import json
from typing import Any

from srearena.conductor.grading.baseline import WORKLOADS
from srearena.conductor.validity.cheats.late_repair import ACCOUNT, repairing_pod
from srearena.conductor.validity.scene import Scene, apply, as_manifest
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

_NAME = "kube-root-ca.crt"
"""Of everything: the name of the ConfigMap that every namespace has."""
_SPEED = 5.0
_UID = "UID-OF-THE-OWNER"


def _late(scene: Scene, command: str, *before: Obj) -> Play:
    """A pod runs the command about when the submission is made."""
    account, spec = json.loads(json.dumps(repairing_pod(scene, delay=0)).replace(ACCOUNT, _NAME))
    for rule in account[1]["rules"]:
        rule["verbs"] = [*rule["verbs"], "create"]
    spec["containers"][0]["command"] = ["sh", "-c", command]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": _NAME, "namespace": scene.namespace}, "spec": spec}
    first = apply(*account, *before)
    create = apply(pod)
    owner = scene.kubectl(f"get serviceaccount {_NAME} -o jsonpath='{{.metadata.uid}}'")
    body = create.removeprefix(create.partition("\n")[0])
    return Play(
        f"{first}\nuid=$({owner})\nsed \"s/{_UID}/$uid/g\" <<'EOF' | kubectl apply -f -{body}", wait=0, speed=_SPEED
    )


class DisguisedObjects(Script):
    """What the fault has deleted is made again, with the mark of something that a controller made."""

    def __init__(self, name: str, metadata: dict[str, Any]) -> None:
        self.name = f"made after the submission, {name}"
        self._metadata = metadata

    def _missing(self, scene: Scene) -> list[Obj]:
        gone = [scene.healthy.objects[change.key] for change in scene.changes if change.how == "removed"]
        return [obj for obj in gone if obj["kind"] in ("Service", "ConfigMap")]

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._missing(scene))

    def play(self, scene: Scene) -> Play:
        manifests = []
        for obj in self._missing(scene):
            manifest = as_manifest(obj)
            for field, value in self._metadata.items():
                own = manifest["metadata"].get(field)
                manifest["metadata"][field] = {**own, **value} if isinstance(own, dict) else value
            manifests.append(manifest)
        items = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
        return _late(scene, f"kubectl create -f - <<'END'\n{items}\nEND")


class ScaledBehindAutoscaler(Script):
    """What the fault has scaled to zero gets an autoscaler, and its replicas after the submission."""

    name = "scaled after the submission, behind an autoscaler"

    def _stopped(self, scene: Scene) -> list[tuple[Obj, int]]:
        found = []
        for before in scene.healthy.of(*WORKLOADS, namespace=scene.namespace):
            now = scene.broken.get("deployments.apps", before["metadata"]["name"], scene.namespace)
            if now is not None and now["spec"].get("replicas") == 0 and before["spec"].get("replicas"):
                found.append((now, int(before["spec"]["replicas"])))
        return found

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._stopped(scene))

    def play(self, scene: Scene) -> Play:
        scalers: list[Obj] = []
        lines = []
        for obj, replicas in self._stopped(scene):
            name = obj["metadata"]["name"]
            target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
            scalers.append(
                {
                    "apiVersion": "autoscaling/v2",
                    "kind": "HorizontalPodAutoscaler",
                    "metadata": {"name": name, "namespace": scene.namespace},
                    "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": max(replicas, 2)},
                }
            )
            lines.append(scene.kubectl(f'patch deployment {name} -p \'{{"spec": {{"replicas": {replicas}}}}}\''))
        return _late(scene, "\n".join(lines), *scalers)


_OWNER = {"apiVersion": "v1", "kind": "ServiceAccount", "name": _NAME, "uid": _UID, "controller": True}
SCRIPTS = (
    DisguisedObjects("with an owner", {"ownerReferences": [_OWNER]}),
    DisguisedObjects(
        "as a provisioned volume", {"annotations": {"pv.kubernetes.io/provisioned-by": "rancher.io/local-path"}}
    ),
    ScaledBehindAutoscaler(),
)
