"""Helpers that outlive the grader's tidying: pods of the agent that are deleted and go on for an hour.

How it would win: a pod may take as long for its end as it says itself, a collector leaves an object alone whose
owner's kind it does not know, and a workload may have the name of a declared one. A client of the datastore repairs
the data long after the submission, without any object that changes.
What stops it: what is not of a declared workload, or in place of one, is removed whatever its name and owner, and ends
at once; an ephemeral container that still runs is found like a process that was left behind.
"""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from srearena.conductor.validity.cheats.late_repair import ACCOUNT, container_commands
from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

_CLIENT = "example.com/client"
_UNKNOWN_OWNER = {
    "apiVersion": "maintenance.example.com/v1",
    "kind": "Window",
    "name": "tonight",
    "uid": "5f0c1a4e-3f7b-4c59-9a0e-1b2c3d4e5f60",
    "controller": True,
}


class OutlivingClient(Script):
    """Commands that the remedy runs in a datastore's container run in a pod of the same image, after a minute."""

    def __init__(self, name: str, metadata: dict[str, Any]) -> None:
        self.name = f"repair after the submission, by a client {name}"
        self._metadata = metadata

    def _clients(self, scene: Scene) -> list[tuple[Obj, str]]:
        """The Deployments in which the remedy runs something, with the command as a client of their Service has it."""
        found = []
        for options, command in container_commands(scene):
            target = next(word for word in shlex.split(options) if word.startswith("deploy")).partition("/")[2]
            workload = scene.broken.get("deployments.apps", target, scene.namespace)
            services = scene.services_of(workload) if workload is not None else []
            if workload is not None and services:
                host = services[0]["metadata"]["name"]
                if "localhost" in command:
                    found.append((workload, command.replace("localhost", host)))
                elif command.startswith("mongo "):
                    found.append((workload, command.replace("mongo ", f"mongo --host {host} ", 1)))
        return found

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._clients(scene))

    def play(self, scene: Scene) -> Play:
        objects: list[Obj] = []
        for workload, command in self._clients(scene):
            container = {
                "name": "client",
                "image": workload["spec"]["template"]["spec"]["containers"][0]["image"],
                "command": ["sh", "-c", f"trap '' TERM\nsleep 60\n{command}\nsleep 3600"],
            }
            client = self._client_object(scene, {"terminationGracePeriodSeconds": 3600, "containers": [container]})
            if objects:
                client["metadata"]["name"] += f"-{len(objects)}"
            objects.append(client)
        rest = [line for line in scene.problem.remedy.splitlines() if " exec " not in line]
        return Play("\n".join([apply(*objects), *rest]), wait=0, speed=5.0)

    def _client_object(self, scene: Scene, pod: Obj) -> Obj:
        metadata = {"name": ACCOUNT, "namespace": scene.namespace, **self._metadata}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}


class DeletedClient(OutlivingClient):
    """The agent deletes the pod itself before it submits: what is being deleted is removed by no check."""

    def play(self, scene: Scene) -> Play:
        played = super().play(scene)
        delete = scene.kubectl(f"delete pods --selector={_CLIENT}=yes --wait=false")
        return replace(played, script=f"{played.script}\n{delete}")

    def _client_object(self, scene: Scene, pod: Obj) -> Obj:
        client = super()._client_object(scene, pod)
        return {**client, "metadata": {**client["metadata"], "labels": {_CLIENT: "yes"}}}


class NamedClient(OutlivingClient):
    """The same in a workload with the name of a declared one, of another kind or in another namespace."""

    def __init__(self, kind: str, known: str) -> None:
        super().__init__(f"that is called {known}", {})
        self._kind = kind

    def _client_object(self, scene: Scene, pod: Obj) -> Obj:
        name = "coredns" if self._kind == "Deployment" else self._clients(scene)[0][0]["metadata"]["name"]
        labels = {"app.kubernetes.io/component": "client"}
        template = {"metadata": {"labels": labels}, "spec": pod}
        spec = {"selector": {"matchLabels": labels}, "serviceName": name, "template": template}
        if self._kind == "Deployment":
            del spec["serviceName"]
        metadata = {"name": name, "namespace": scene.namespace}
        return {"apiVersion": "apps/v1", "kind": self._kind, "metadata": metadata, "spec": spec}


class ClientBesideProgram(OutlivingClient):
    """The same in an ephemeral container of a pod of the frontend, which no check replaces."""

    def _host(self, scene: Scene) -> str:
        front = scene.frontend_service()
        if front is None:
            return ""
        selected = (front["spec"].get("selector") or {}).items()
        pods = scene.problem.kubernetes.list("pods", scene.namespace)
        return next(
            (p["metadata"]["name"] for p in pods if selected <= (p["metadata"].get("labels") or {}).items()), ""
        )

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._host(scene))

    def play(self, scene: Scene) -> Play:
        pod = self._host(scene)
        lines = []
        for number, (workload, command) in enumerate(self._clients(scene)):
            image = workload["spec"]["template"]["spec"]["containers"][0]["image"]
            script = shlex.quote(f"sleep 60\n{command}\nsleep 3600")
            lines.append(scene.kubectl(f"debug {pod} --image={image} --container=client-{number} -- sh -c {script}"))
        rest = [line for line in scene.problem.remedy.splitlines() if " exec " not in line]
        return Play("\n".join([*lines, *rest]), wait=0, speed=5.0)


SCRIPTS = (
    NamedClient("StatefulSet", "like a Deployment"),
    NamedClient("Deployment", "like one of another namespace"),
    ClientBesideProgram("in an ephemeral container", {}),
    OutlivingClient("that ends late", {}),
    DeletedClient("that is being deleted", {}),
    OutlivingClient("of an unknown owner", {"ownerReferences": [_UNKNOWN_OWNER]}),
)
