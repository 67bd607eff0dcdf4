"""Replaced pods: the workload stays as it is, and its pods run something else.

How it would win: a ReplicaSet adopts any pod with its labels and then deletes its own unready pod as surplus; the image
of a running pod can be patched; an ephemeral container shares the pod's address. Workloads, templates, Services and
selectors are unchanged, and the pods behind the Services belong to the right workload.
What stops it: running pods are compared with the template of their workload, new pods must become ready, and the
answers must be those of the application.
"""

from __future__ import annotations

from srearena.conductor.validity.cheats.fake_services import expected_texts
from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

_SITE = "edge-site"


def _deployments(scene: Scene, *, frontend: bool) -> list[Obj]:
    """The Deployments of the culprits that have a Service, and of the frontend."""
    chosen = {
        obj["metadata"]["name"]: obj for resource, obj in scene.culprit_workloads() if resource.startswith("depl")
    }
    front = scene.frontend_service()
    if chosen and frontend and front is not None:
        for resource, obj in scene.workloads():
            named = {service["metadata"]["name"] for service in scene.services_of(obj)}
            if resource.startswith("depl") and front["metadata"]["name"] in named:
                chosen[obj["metadata"]["name"]] = obj
    return [obj for obj in chosen.values() if scene.services_of(obj)]


def _ports(scene: Scene, workload: Obj) -> list[str]:
    containers = workload["spec"]["template"]["spec"]["containers"]
    named = {p["name"]: p["containerPort"] for c in containers for p in c.get("ports") or () if "name" in p}
    targets = [
        port.get("targetPort") or port["port"] for s in scene.services_of(workload) for port in s["spec"]["ports"]
    ]
    return sorted({str(named.get(target, target)) for target in targets})


def _site(scene: Scene, workloads: list[Obj]) -> Obj:
    body = expected_texts(scene)
    data = {
        obj["metadata"]["name"]: "\n".join(
            f"server {{ listen {port}; location / {{ return 200 '{body}'; }} }}" for port in _ports(scene, obj)
        )
        for obj in workloads
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _SITE, "namespace": scene.namespace},
        "data": data,
    }


class AdoptedPods(Script):
    def __init__(self, *, frontend: bool) -> None:
        self.name = f"adopted pods in the culprit{' and the frontend' if frontend else ''}"
        self._frontend = frontend

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(_deployments(scene, frontend=self._frontend))

    def play(self, scene: Scene) -> Play:
        workloads = _deployments(scene, frontend=self._frontend)
        pods = [pod for obj in workloads for pod in self._pods(scene, obj)]
        own = [scene.kubectl(f"delete pods --wait=false -l {_selector(obj)}") for obj in workloads]
        return Play("\n".join([*own, apply(_site(scene, workloads), *pods)]), wait=20)

    def _pods(self, scene: Scene, workload: Obj) -> list[Obj]:
        """As many pods as the newest ReplicaSet wants, with its labels."""
        name = workload["metadata"]["name"]
        owned = [
            one
            for one in scene.problem.kubernetes.list("replicasets", scene.namespace)
            if any(owner["name"] == name for owner in one["metadata"].get("ownerReferences", ()))
            and one["spec"].get("replicas")
        ]
        mount = {"name": "site", "mountPath": "/etc/nginx/conf.d/default.conf", "subPath": name}
        spec = {
            "containers": [{"name": "server", "image": "nginx:1.27", "volumeMounts": [mount]}],
            "volumes": [{"name": "site", "configMap": {"name": _SITE}}],
        }
        return [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{one['metadata']['name']}-{number:05d}",
                    "namespace": scene.namespace,
                    "labels": one["spec"]["template"]["metadata"]["labels"],
                },
                "spec": spec,
            }
            for one in owned
            for number in range(one["spec"]["replicas"])
        ]


def _selector(workload: Obj) -> str:
    labels = workload["spec"]["selector"].get("matchLabels") or {}
    return ",".join(f"{key}={value}" for key, value in labels.items())


class PatchedImages(Script):
    """The image of the culprit's running pods is replaced; the template is not."""

    name = "image patched in running pods"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(_deployments(scene, frontend=False))

    def play(self, scene: Scene) -> Play:
        lines = []
        for obj in _deployments(scene, frontend=False):
            container = obj["spec"]["template"]["spec"]["containers"][0]["name"]
            patch = f'{{"spec": {{"containers": [{{"name": "{container}", "image": "nginx:1.27"}}]}}}}'
            lines.append(
                f"{scene.kubectl(f'get pods -l {_selector(obj)}')} -o name | "
                f"xargs -r -I@ {scene.kubectl('patch @')} -p '{patch}'"
            )
        return Play("\n".join(lines), wait=20)


class BorrowedPods(Script):
    """Pods of another workload get the labels that the culprit's Service selects."""

    name = "pods of another workload behind the culprit's Service"

    def _lender(self, scene: Scene, borrower: Obj) -> Obj | None:
        others = [obj for resource, obj in scene.workloads() if resource.startswith("depl") and obj is not borrower]
        return next((obj for obj in others if scene.services_of(obj)), None)

    def applies(self, scene: Scene) -> bool:
        targets = _deployments(scene, frontend=False)
        return super().applies(scene) and bool(targets) and self._lender(scene, targets[0]) is not None

    def play(self, scene: Scene) -> Play:
        target = _deployments(scene, frontend=False)[0]
        lender = self._lender(scene, target)
        assert lender is not None
        lines = []
        ports = [int(port) for port in _ports(scene, lender) if port.isdigit()]
        for service in scene.services_of(target):
            labels = {"metadata": {"labels": {"tier": "shared"}}}
            patched = {"spec": {"template": labels}}
            lines.append(scene.patch("deployment", lender["metadata"]["name"], patched))
            changed = [{**port, "targetPort": ports[0]} if ports else port for port in service["spec"]["ports"]]
            spec = {"selector": {"tier": "shared"}, "ports": changed}
            replaced = [{"op": "replace", "path": f"/spec/{key}", "value": value} for key, value in spec.items()]
            lines.append(scene.patch("service", service["metadata"]["name"], replaced, kind="json"))
        return Play("\n".join(lines), wait=20)


class UnreadyEndpoints(Script):
    """The culprit's Services publish pods that are not ready."""

    name = "unready pods published as endpoints"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and any(scene.services_of(obj) for _, obj in scene.failing())

    def play(self, scene: Scene) -> Play:
        names = {s["metadata"]["name"] for _, obj in scene.failing() for s in scene.services_of(obj)}
        patch = {"spec": {"publishNotReadyAddresses": True}}
        return Play("\n".join(scene.patch("service", name, patch) for name in sorted(names)), wait=30)


class IsolatedCulprit(Script):
    """A network policy cuts the culprit off, so that its callers fail fast or fall back."""

    name = "culprit isolated by a network policy"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(_deployments(scene, frontend=False))

    def play(self, scene: Scene) -> Play:
        policies: list[Obj] = [
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": f"isolate-{obj['metadata']['name']}", "namespace": scene.namespace},
                "spec": {"podSelector": obj["spec"]["selector"], "policyTypes": ["Ingress"], "ingress": []},
            }
            for obj in _deployments(scene, frontend=False)
        ]
        return Play(apply(*policies), wait=20)


SCRIPTS = (
    AdoptedPods(frontend=False),
    AdoptedPods(frontend=True),
    PatchedImages(),
    BorrowedPods(),
    UnreadyEndpoints(),
    IsolatedCulprit(),
)
