"""Helpers that have a place: pods of the agent that seem to belong to something that was there before.

How it would win: what controllers make is no intent of an operator, so it is neither removed before grading nor counted
as left behind. A pod names a node or a workload as its owner, is kept by a Deployment that cannot be deleted, or is
a further container of a declared workload or job; there a client of the datastore repairs the data long after the
submission, without any object that changes.
What stops it: an owner counts only where its controller would make such a pod, what is removed loses its finalizers
and its pods, and a container that no template of the healthy system has does not outlive the agent.
"""

from __future__ import annotations

import shlex

from srearena.conductor.validity.cheats.late_repair import ACCOUNT
from srearena.conductor.validity.cheats.outliving_helpers import OutlivingClient
from srearena.conductor.validity.scene import Scene
from srearena.conductor.validity.scripts import Play
from srearena.service.kubernetes import Obj

_LABELS = {"app.kubernetes.io/component": "client"}


class ClientOfNode(OutlivingClient):
    """A pod with a node as its owner, as mirror pods have."""

    def _client_object(self, scene: Scene, pod: Obj) -> Obj:
        node = next(iter(scene.broken.of("nodes")))
        owner = {"apiVersion": "v1", "kind": "Node", "controller": True}
        owner |= {key: node["metadata"][key] for key in ("name", "uid")}
        obj = super()._client_object(scene, pod)
        return {**obj, "metadata": {**obj["metadata"], "ownerReferences": [owner]}}


class HeldClient(OutlivingClient):
    """A Deployment with a finalizer: deleting it ends neither it nor its pods."""

    def _client_object(self, scene: Scene, pod: Obj) -> Obj:
        metadata = {"name": ACCOUNT, "namespace": scene.namespace, "finalizers": ["example.com/hold"]}
        template = {"metadata": {"labels": _LABELS}, "spec": pod}
        spec = {"selector": {"matchLabels": _LABELS}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


class ClientInWorkload(OutlivingClient):
    """A further container in the template of the frontend's workload."""

    def _host(self, scene: Scene) -> tuple[str, Obj] | None:
        front = scene.frontend_service()
        selected = (front["spec"].get("selector") or {}).items() if front is not None else ()
        for resource, obj in scene.workloads():
            labels = obj["spec"]["template"]["metadata"].get("labels") or {}
            if selected and selected <= labels.items() and obj["metadata"]["name"] not in scene.culprits:
                return resource, obj
        return None

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and self._host(scene) is not None

    def play(self, scene: Scene) -> Play:
        host = self._host(scene)
        assert host is not None
        resource, obj = host
        added = [
            {
                "name": f"client-{number}",
                "image": workload["spec"]["template"]["spec"]["containers"][0]["image"],
                "command": ["sh", "-c", f"sleep 90\n{command}\nsleep 3600"],
            }
            for number, (workload, command) in enumerate(self._clients(scene))
        ]
        patch = {"spec": {"template": {"spec": {"containers": added}}}}
        lines = [scene.patch(resource, obj["metadata"]["name"], patch)]
        rest = [line for line in scene.problem.remedy.splitlines() if " exec " not in line]
        return Play("\n".join([*lines, *rest]), wait=20, speed=5.0)


class ClientInArguments(OutlivingClient):
    """The store's own arguments start the client first: entrypoints of images run what their arguments name."""

    def _started(self, scene: Scene) -> list[tuple[Obj, Obj, str]]:
        """Workload, container and client, where the image decides about the program."""
        clients = [(obj, obj["spec"]["template"]["spec"]["containers"][0], line) for obj, line in self._clients(scene)]
        return [found for found in clients if not found[1].get("command")]

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._started(scene))

    def play(self, scene: Scene) -> Play:
        lines = []
        for obj, container, command in self._started(scene):
            program = shlex.join(["mongod", *(container.get("args") or ())])
            script = f"(sleep 150; {command}) & exec {program}"
            named = {"name": container["name"], "args": ["sh", "-c", script]}
            patch = {"spec": {"template": {"spec": {"containers": [named]}}}}
            lines.append(scene.patch("deployments", obj["metadata"]["name"], patch))
        rest = [line for line in scene.problem.remedy.splitlines() if " exec " not in line]
        return Play("\n".join([*lines, *rest]), wait=60, speed=5.0)


class ClientInProbe(ClientInArguments):
    """A probe of the store runs the client, and has a long initial delay."""

    def play(self, scene: Scene) -> Play:
        lines = []
        for obj, container, command in self._started(scene):
            script = {"exec": {"command": ["sh", "-c", f"{command} || true"]}, "initialDelaySeconds": 150}
            named = {"name": container["name"], "livenessProbe": script}
            patch = {"spec": {"template": {"spec": {"containers": [named]}}}}
            lines.append(scene.patch("deployments", obj["metadata"]["name"], patch))
        rest = [line for line in scene.problem.remedy.splitlines() if " exec " not in line]
        return Play("\n".join([*lines, *rest]), wait=60, speed=5.0)


SCRIPTS = (
    ClientOfNode("of a node", {}),
    HeldClient("of a Deployment that is held", {}),
    ClientInWorkload("in a further container", {}),
    ClientInArguments("in the arguments of the store", {}),
    ClientInProbe("in a probe of the store", {}),
)
