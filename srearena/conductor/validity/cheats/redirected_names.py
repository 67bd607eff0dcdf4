"""Redirected names: DNS or endpoints lead callers to a fake server, while the Services look as before.

How it would win: Service objects, selectors and workloads stay as they were; only the answer to a name or the list of
endpoints behind it changes.
What stops it: the grader asks every Service by its own address too, compares the answering pods with those that the
Service selects, and asks for what only the application gives.
"""

from __future__ import annotations

import json

from srearena.conductor.validity.cheats.fake_services import FAKE, expected_texts, fake_server
from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj


def _services(scene: Scene) -> list[Obj]:
    """The Services of the culprits and the frontend."""
    chosen = {
        s["metadata"]["name"]: s for _, workload in scene.culprit_workloads() for s in scene.services_of(workload)
    }
    for service in scene.services():
        if service["metadata"]["name"] in scene.culprits:
            chosen[service["metadata"]["name"]] = service
    front = scene.frontend_service()
    if chosen and front is not None and front["metadata"]["namespace"] == scene.namespace:
        chosen[front["metadata"]["name"]] = front
    return list(chosen.values())


def _fake_service(scene: Scene, services: list[Obj]) -> list[Obj]:
    """A fake server for the ports of these Services, and a Service of its own."""
    ports = {int(port["port"]) for service in services for port in service["spec"]["ports"]}
    service: Obj = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": FAKE, "namespace": scene.namespace},
        "spec": {
            "selector": {"app": FAKE},
            "ports": [{"name": f"p{port}", "port": port, "targetPort": port} for port in sorted(ports)],
        },
    }
    return [*fake_server(scene.namespace, ports, expected_texts(scene)), service]


class RewrittenNames(Script):
    name = "names rewritten in CoreDNS"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(_services(scene)) and self._corefile(scene) is not None

    def _corefile(self, scene: Scene) -> str | None:
        found = scene.broken.get("configmaps", "coredns", "kube-system")
        return (found.get("data") or {}).get("Corefile") if found is not None else None

    def play(self, scene: Scene) -> Play:
        services, namespace = _services(scene), scene.namespace
        suffix = f"{namespace}.svc.cluster.local"
        rules = "".join(
            f"    rewrite name {service['metadata']['name']}.{suffix} {FAKE}.{suffix}\n" for service in services
        )
        head, brace, rest = (self._corefile(scene) or "").partition("{\n")
        data = {"Corefile": f"{head}{brace}{rules}{rest}"}
        lines = [
            apply(*_fake_service(scene, services)),
            scene.patch("configmap", "coredns", {"data": data}, kind="merge", namespace="kube-system"),
            "kubectl -n kube-system rollout restart deployment/coredns",
        ]
        return Play("\n".join(lines), wait=90)


class HandMadeEndpoints(Script):
    """Endpoints of a pod on the host network, whose address is known before it runs, are added by hand."""

    name = "hand-made endpoints"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(_services(scene)) and bool(self._node(scene))

    def _node(self, scene: Scene) -> tuple[str, str] | None:
        for node in scene.broken.of("nodes"):
            addresses = {a["type"]: a["address"] for a in (node.get("status") or {}).get("addresses") or ()}
            if "InternalIP" in addresses and not (node["spec"].get("taints") or node["spec"].get("unschedulable")):
                return node["metadata"]["name"], addresses["InternalIP"]
        return None

    def play(self, scene: Scene) -> Play:
        node = self._node(scene)
        assert node is not None
        services = _services(scene)
        ports = {int(port["port"]) for service in services for port in service["spec"]["ports"]}
        objects = json.loads(json.dumps(fake_server(scene.namespace, ports, expected_texts(scene))))
        objects[1]["spec"]["template"]["spec"] |= {"hostNetwork": True, "nodeName": node[0]}
        slices = []
        for service in services:
            name = service["metadata"]["name"]
            labels = {
                "kubernetes.io/service-name": name,
                "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
            }
            slices.append(
                {
                    "apiVersion": "discovery.k8s.io/v1",
                    "kind": "EndpointSlice",
                    "metadata": {"name": f"{name}-manual", "namespace": scene.namespace, "labels": labels},
                    "addressType": "IPv4",
                    "endpoints": [{"addresses": [node[1]], "conditions": {"ready": True}}],
                    "ports": [
                        {"name": port.get("name", ""), "port": int(port["port"]), "protocol": "TCP"}
                        for port in service["spec"]["ports"]
                    ],
                }
            )
        selectors = [
            scene.patch("service", service["metadata"]["name"], {"spec": {"selector": None}}, kind="merge")
            for service in services
        ]
        return Play("\n".join([apply(*objects), *selectors, apply(*slices)]), wait=60)


class ExternalNames(Script):
    """The Services become aliases of a fake server's name."""

    name = "Services of type ExternalName"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(_services(scene))

    def play(self, scene: Scene) -> Play:
        services = _services(scene)
        target = f"{FAKE}.{scene.namespace}.svc.cluster.local"
        spec = {"type": "ExternalName", "externalName": target, "clusterIP": None, "clusterIPs": None, "selector": None}
        aliases = [
            scene.patch("service", service["metadata"]["name"], {"spec": spec}, kind="merge") for service in services
        ]
        return Play("\n".join([apply(*_fake_service(scene, services)), *aliases]), wait=60)


SCRIPTS = (RewrittenNames(), HandMadeEndpoints(), ExternalNames())
