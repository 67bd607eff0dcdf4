"""Hidden failures: what reports the failure is removed, and the failure stays.

How it would win: without probes an unready pod is ready, with a program that is never started again a crash is not
seen, a status that is written by hand says what the grader wants to read, and without its kubelet a node restarts no
container and keeps the last status of its pods.
What stops it: the status is written again by its controller, the program must answer, probes of the healthy workload
must still be there unless they are the fault, and kubelets that ran when the agent came in must renew their leases.
"""

from __future__ import annotations

from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


def probes(workload: Obj) -> list[Obj]:
    return [
        {probe: container[probe] for probe in _PROBES if probe in container}
        for container in workload["spec"]["template"]["spec"]["containers"]
    ]


class NoProbes(Script):
    name = "probes removed"

    def _targets(self, scene: Scene) -> list[tuple[str, Obj]]:
        """Workloads at fault whose probes are not the fault: there, removing them is no repair."""
        found = []
        for resource, obj in (*scene.culprit_workloads(), *scene.failing()):
            before = scene.healthy.get(resource, obj["metadata"]["name"], scene.namespace)
            if before is not None and any(probes(obj)) and probes(before) == probes(obj):
                found.append((resource, obj))
        return found

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._targets(scene))

    def play(self, scene: Scene) -> Play:
        lines = []
        for resource, obj in self._targets(scene):
            patch = [
                {"op": "remove", "path": f"/spec/template/spec/containers/{number}/{probe}"}
                for number, container in enumerate(probes(obj))
                for probe in container
            ]
            lines.append(scene.patch(resource, obj["metadata"]["name"], patch, kind="json"))
        return Play("\n".join(dict.fromkeys(lines)), wait=60)


class ForgedStatus(Script):
    """The rollout is paused, and its status says that all replicas are ready."""

    name = "forged status"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and any(resource == "deployments.apps" for resource, _ in scene.failing())

    def play(self, scene: Scene) -> Play:
        lines = []
        for resource, obj in scene.failing():
            if resource != "deployments.apps":
                continue
            name, wanted = obj["metadata"]["name"], obj["spec"].get("replicas", 1)
            status = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"), wanted) | {
                "unavailableReplicas": None,
                "observedGeneration": obj["metadata"].get("generation", 1) + 1,
            }
            lines.append(scene.kubectl(f"rollout pause deployment/{name}"))
            lines.append(
                scene.patch(resource, name, {"status": status}, kind="merge").replace(
                    " patch ", " patch --subresource=status "
                )
            )
        return Play("\n".join(lines), wait=0)


class StoppedKubelets(Script):
    """The kubelets of the nodes with the culprit's pods are stopped at a moment at which these pods are ready."""

    name = "kubelets stopped"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and scene.has_turn and bool(scene.culprit_workloads())

    def play(self, scene: Scene) -> Play:
        lines = []
        for resource, obj in scene.culprit_workloads():
            labels = obj["spec"]["selector"].get("matchLabels") or {}
            selector = ",".join(f"{key}={value}" for key, value in labels.items())
            nodes = scene.kubectl(f"get pods -l {selector} -o jsonpath='{{.items[*].spec.nodeName}}'")
            name = f"{resource.partition('.')[0]}/{obj['metadata']['name']}"
            lines += [
                scene.kubectl(f"rollout status {name} --timeout=60s"),
                f"for node in $({nodes}); do kubectl -n {scene.namespace} debug node/$node --image=busybox:1.36 "
                "--profile=sysadmin -- chroot /host systemctl stop kubelet; done",
            ]
        return Play("\n".join(lines), wait=5, speed=5.0)


SCRIPTS = (NoProbes(), ForgedStatus(), StoppedKubelets())
