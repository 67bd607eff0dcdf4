"""Repairs of what runs now: nothing that is declared is changed, so the next pod is broken again.

How it would win: labels that the wrong selector asks for are put on the running pods, or the right pods are written
into the Service's endpoints by hand; then every client reaches them, and every answer is the application's.
What stops it: endpoints must be selected by their Service, and when pods have been replaced the Services must lead to
the new ones.
"""

from __future__ import annotations

from srearena.conductor.grading.pod_templates import pod_labels
from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj


def _misdirected(scene: Scene) -> list[tuple[Obj, Obj, Obj]]:
    """Services that no longer select a workload that they selected before: as it is now, as it was, the workload."""
    found = []
    for before in scene.services():
        now = scene.broken.get("services", before["metadata"]["name"], scene.namespace)
        for _, workload in scene.workloads() if now is not None else ():
            assert now is not None
            labels = pod_labels(workload).items()
            healthy = scene.healthy.get("deployments.apps", workload["metadata"]["name"], scene.namespace)
            selected = before["spec"]["selector"].items() <= (pod_labels(healthy).items() if healthy else labels)
            if selected and not (now["spec"].get("selector") or {}).items() <= labels:
                found.append((now, before, workload))
    return found


def _selector(workload: Obj) -> str:
    labels = (workload["spec"]["selector"].get("matchLabels") or {}).items()
    return ",".join(f"{key}={value}" for key, value in labels)


class LabeledPods(Script):
    name = "running pods labeled for the wrong selector"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(_misdirected(scene))

    def play(self, scene: Scene) -> Play:
        lines = []
        for service, _, workload in _misdirected(scene):
            labels = " ".join(f"{key}={value}" for key, value in (service["spec"].get("selector") or {}).items())
            lines.append(scene.kubectl(f"label pods -l {_selector(workload)} --overwrite {labels}"))
        return Play("\n".join(lines), wait=90)


class PodsByHand(Script):
    """An EndpointSlice beside those of the controller, with the pods that the Service should select."""

    name = "the right pods written into the endpoints"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(_misdirected(scene))

    def play(self, scene: Scene) -> Play:
        slices = []
        for service, before, workload in _misdirected(scene):
            name = service["metadata"]["name"]
            selected = (workload["spec"]["selector"].get("matchLabels") or {}).items()
            pods = [
                pod
                for pod in scene.problem.kubernetes.list("pods", scene.namespace)
                if selected <= (pod["metadata"].get("labels") or {}).items()
            ]
            slices.append(
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {
                        "name": f"{name}-restored",
                        "namespace": scene.namespace,
                        "labels": {"kubernetes.io/service-name": name},
                    },
                    "addressType": "IPv4",
                    "endpoints": [
                        {
                            "addresses": [pod["status"]["podIP"]],
                            "conditions": {"ready": True},
                            "targetRef": {"kind": "Pod", "name": pod["metadata"]["name"], "namespace": scene.namespace},
                        }
                        for pod in pods
                    ],
                    "ports": [
                        {"name": port.get("name", ""), "port": int(port["targetPort"]), "protocol": "TCP"}
                        for port in before["spec"]["ports"]
                        if isinstance(port.get("targetPort"), int)
                    ],
                }
            )
        return Play(apply(*slices), wait=90)


SCRIPTS = (LabeledPods(), PodsByHand())
