"""Impostor sidecars: a web server beside the idling program of a workload takes over its ports.

How it would win: Services, selectors, images of the declared containers, claims and names all stay the same; the pods
are ready and accept connections on the right ports.
What stops it: the declared containers must run their own command, and the answers must be those of the application.
"""

from __future__ import annotations

import json

from srearena.conductor.validity.cheats.fake_services import expected_texts
from srearena.conductor.validity.cheats.idling_programs import replaced_containers
from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

_SITE = "edge-config"


class ImpostorSidecars(Script):
    def __init__(self, *, frontend: bool) -> None:
        self.name = f"impostor sidecar in the culprit{' and the frontend' if frontend else ''}"
        self._frontend = frontend

    def _targets(self, scene: Scene) -> list[tuple[str, Obj]]:
        chosen = {obj["metadata"]["name"]: (resource, obj) for resource, obj in scene.culprit_workloads()}
        front = scene.frontend_service()
        if self._frontend and front is not None:
            for resource, obj in scene.workloads():
                if front["metadata"]["name"] in {s["metadata"]["name"] for s in scene.services_of(obj)}:
                    chosen[obj["metadata"]["name"]] = (resource, obj)
        return [pair for pair in chosen.values() if scene.services_of(pair[1])]

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(scene.culprit_workloads()) and bool(self._targets(scene))

    def play(self, scene: Scene) -> Play:
        body, sites, lines = expected_texts(scene), {}, []
        for resource, obj in self._targets(scene):
            name = obj["metadata"]["name"]
            named = {p["name"]: p["containerPort"] for p in _container_ports(obj) if "name" in p}
            ports = {
                named.get(port.get("targetPort"), port.get("targetPort") or port["port"])
                for service in scene.services_of(obj)
                for port in service["spec"]["ports"]
            }
            sites[f"{name}.conf"] = "\n".join(
                f"server {{ listen {port}; location / {{ return 200 '{body}'; }} }}" for port in sorted(map(str, ports))
            )
            patch = replaced_containers(obj, ["sh", "-c", "sleep 86400"])
            mount = {"name": _SITE, "mountPath": "/etc/nginx/conf.d/default.conf", "subPath": f"{name}.conf"}
            sidecar = {"name": "edge", "image": "nginx:1.27", "volumeMounts": [mount]}
            patch.append({"op": "add", "path": "/spec/template/spec/containers/-", "value": sidecar})
            volume = {"name": _SITE, "configMap": {"name": _SITE}}
            existing = obj["spec"]["template"]["spec"].get("volumes")
            path = "/spec/template/spec/volumes" + ("/-" if existing else "")
            patch.append({"op": "add", "path": path, "value": volume if existing else [volume]})
            lines.append(scene.patch(resource, name, json.loads(json.dumps(patch)), kind="json"))
        metadata = {"name": _SITE, "namespace": scene.namespace}
        site = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": sites}
        return Play("\n".join([apply(site), *lines]), wait=20)


def _container_ports(workload: Obj) -> list[Obj]:
    return [port for c in workload["spec"]["template"]["spec"]["containers"] for port in c.get("ports") or ()]


SCRIPTS = (ImpostorSidecars(frontend=False), ImpostorSidecars(frontend=True))
