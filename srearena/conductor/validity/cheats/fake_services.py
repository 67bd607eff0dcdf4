"""Fake services: a web server that answers everything with 200 behind the frontend, the failing Services, or both.

How it would win: the Services keep their names and ports and accept connections, and the sample requests succeed.
What stops it: the grader asks for what only the application gives (values it wrote before, the spans and callees of
each operation), and a Service must select the pods of the workloads that it selected before.
"""

from __future__ import annotations

from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

FAKE = "response-cache"
_LABELS = {"app": FAKE}


def fake_server(namespace: str, ports: set[int], body: str, *, labels: dict[str, str] | None = None) -> list[Obj]:
    """A Deployment of nginx that answers everything on these ports with this text."""
    servers = "\n".join(
        f"server {{ listen {port}; location / {{ default_type application/json; return 200 '{body}'; }} }}"
        for port in sorted(ports)
    )
    metadata = {"name": FAKE, "namespace": namespace}
    volume = {"name": "site", "configMap": {"name": FAKE}}
    container = {
        "name": "server",
        "image": "nginx:1.27",
        "volumeMounts": [{"name": "site", "mountPath": "/etc/nginx/conf.d"}],
    }
    template = {
        "metadata": {"labels": {**_LABELS, **(labels or {})}},
        "spec": {"containers": [container], "volumes": [volume]},
    }
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"default.conf": servers}},
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {"selector": {"matchLabels": _LABELS}, "template": template},
        },
    ]


def expected_texts(scene: Scene) -> str:
    """All texts that the sample requests look for, in one response."""
    frontend = scene.problem.app.frontend
    texts = [request.contains for request in frontend.requests] if frontend is not None else []
    return " ".join(dict.fromkeys(["ok", *texts])).replace("'", "")


def pointed(service: Obj, labels: dict[str, str] = _LABELS) -> Obj:
    """The Service with another selector, each port on its own number."""
    ports = [{**port, "targetPort": port["port"]} for port in service["spec"]["ports"]]
    metadata = {key: service["metadata"][key] for key in ("name", "namespace")}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {"selector": labels, "ports": ports, "type": service["spec"].get("type", "ClusterIP")},
    }


def point(service: Obj) -> str:
    """Delete the Service and create it with the fake behind it: an update would keep the old selector's labels."""
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    return f"kubectl -n {namespace} delete service {name} --ignore-not-found --wait=false\n" + apply(pointed(service))


class FakeServices(Script):
    def __init__(self, name: str, *, frontend: bool, culprit: bool, failing: bool, idle: bool = False) -> None:
        self.name = name
        self._frontend, self._culprit, self._failing, self._idle = frontend, culprit, failing, idle

    def _services(self, scene: Scene) -> list[Obj]:
        chosen: dict[str, Obj] = {}
        front = scene.frontend_service() if self._frontend else None
        targets = [*(scene.culprit_workloads() if self._culprit else ()), *(scene.failing() if self._failing else ())]
        behind = [service for _, workload in targets for service in scene.services_of(workload)]
        if self._culprit:
            behind += [service for service in scene.services() if service["metadata"]["name"] in scene.culprits]
        for service in (*((front,) if front else ()), *behind):
            chosen[service["metadata"]["name"]] = service
        return list(chosen.values())

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._services(scene))

    def play(self, scene: Scene) -> Play:
        from srearena.conductor.validity.cheats.idling_programs import replaced_containers

        services = self._services(scene)
        ports = {int(port["port"]) for service in services for port in service["spec"]["ports"]}
        lines = [apply(*fake_server(scene.namespace, ports, expected_texts(scene)))]
        lines += [point(service) for service in services]
        if self._idle:
            lines += [
                scene.patch(
                    resource,
                    obj["metadata"]["name"],
                    replaced_containers(obj, ["sh", "-c", "sleep 86400"]),
                    kind="json",
                )
                for resource, obj in scene.failing()
            ]
        return Play("\n".join(lines), wait=20)


SCRIPTS = (
    FakeServices("fake frontend", frontend=True, culprit=False, failing=False, idle=True),
    FakeServices("fake culprit", frontend=False, culprit=True, failing=False, idle=True),
    FakeServices("fake frontend and culprit", frontend=True, culprit=True, failing=True, idle=True),
)
