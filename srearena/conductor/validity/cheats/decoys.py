"""Decoys: an object that looks like the repaired one, and does not do its work.

How it would win: a claim that is listed and not mounted satisfies a check of the volumes, while data goes to an empty
directory; a revision older than the healthy one avoids the broken object instead of repairing it; a flag service that
answers nothing turns all flags off; a pod with the right label takes the place of the database that is queried.
What stops it: mounts are compared with the healthy workload's, data must survive a restart, the flag service must serve
its flags, and a database is queried at its Service.
"""

from __future__ import annotations

import json

from srearena.conductor.validity.cheats.fake_services import expected_texts, fake_server, point
from srearena.conductor.validity.scene import Scene, apply, as_manifest, template_of
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj


def _claims(workload: Obj) -> list[str]:
    volumes = workload["spec"]["template"]["spec"].get("volumes") or ()
    return [volume["name"] for volume in volumes if volume.get("persistentVolumeClaim")]


class UnmountedClaims(Script):
    """Workloads that the fault changed get their healthy spec, with an empty directory where the claim was mounted."""

    name = "claims listed but not mounted"

    def _targets(self, scene: Scene) -> list[Obj]:
        changed = {change.key[2] for change in scene.changes} | set(scene.culprits)
        return [
            obj
            for obj in scene.healthy.of("deployments.apps", namespace=scene.namespace)
            if _claims(obj) and (obj["metadata"]["name"] in changed or changed & set(_claim_names(obj)))
        ]

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._targets(scene))

    def play(self, scene: Scene) -> Play:
        lines = []
        for obj in self._targets(scene):
            manifest = as_manifest(obj)
            pod = manifest["spec"]["template"]["spec"]
            mounted = set(_claims(obj))
            for container in pod["containers"]:
                for mount in container.get("volumeMounts") or ():
                    if mount["name"] in mounted:
                        mount["name"] = "scratch"
            pod["volumes"] = [*(pod.get("volumes") or ()), {"name": "scratch", "emptyDir": {}}]
            name = obj["metadata"]["name"]
            lines.append(scene.kubectl(f"delete deployment {name} --ignore-not-found --wait=false"))
            lines.append(apply(manifest))
        claims = [as_manifest(c) for c in scene.healthy.of("persistentvolumeclaims", namespace=scene.namespace)]
        for claim in claims:
            (claim["spec"] or {}).pop("volumeName", None)
            claim["metadata"]["annotations"] = {}
        create = [f"({apply(claim, verb='create')}\n) || true" for claim in claims]
        return Play("\n".join([*create, *lines]), wait=60)


def _claim_names(workload: Obj) -> list[str]:
    volumes = workload["spec"]["template"]["spec"].get("volumes") or ()
    return [volume["persistentVolumeClaim"]["claimName"] for volume in volumes if volume.get("persistentVolumeClaim")]


class OlderRevision(Script):
    """A revision from before the healthy one, which does not use the object at fault."""

    name = "rollout undo beyond the healthy revision"

    def _targets(self, scene: Scene) -> list[tuple[str, int]]:
        found = []
        for obj in scene.healthy.of("deployments.apps", namespace=scene.namespace):
            name = obj["metadata"]["name"]
            revisions = scene.revisions(name)
            numbers = [number for number, template in revisions if template == template_of(obj)]
            older = [number for number, template in revisions if numbers and number < min(numbers)]
            if older:
                found.append((name, max(older)))
        return found

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._targets(scene))

    def play(self, scene: Scene) -> Play:
        lines = [scene.undo(name, number) for name, number in self._targets(scene)]
        return Play("\n".join(lines), wait=90)


class FlagStub(Script):
    """The flag service is replaced by a stub: every flag has its default in the programs."""

    name = "flag service pointed at a stub"

    def _service(self, scene: Scene) -> Obj | None:
        return next((s for s in scene.services() if s["metadata"]["name"] in ("flagd", "flag-service")), None)

    def applies(self, scene: Scene) -> bool:
        flags = any("flag" in change.key[2] for change in scene.changes)
        return super().applies(scene) and flags and self._service(scene) is not None

    def play(self, scene: Scene) -> Play:
        service = self._service(scene)
        assert service is not None
        ports = {int(port["port"]) for port in service["spec"]["ports"]}
        fake = apply(*fake_server(scene.namespace, ports, expected_texts(scene)))
        return Play(f"{fake}\n{point(service)}", wait=90)


class FlagHostGone(FlagStub):
    """The programs ask a flag service that does not exist."""

    name = "flag service out of reach"

    def play(self, scene: Scene) -> Play:
        names = " ".join(f"deployment/{obj['metadata']['name']}" for _, obj in scene.culprit_workloads())
        everyone = names or "deployment --all"
        return Play(scene.kubectl(f"set env {everyone} FLAGD_HOST=localhost FLAGD_PORT=1"), wait=90)


class OldPasswordBack(Script):
    """The rotation of a password is reverted in the database, and an unready pod takes the database's label."""

    name = "old password put back"

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and "old" in getattr(scene.problem, "options", {})

    def play(self, scene: Scene) -> Play:
        options = scene.problem.options  # type: ignore[attr-defined]
        store, old = options["store"], options["old"]
        labels = json.dumps({"opentelemetry.io/name": store})
        pod: Obj = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "a-first-pod", "namespace": scene.namespace, "labels": json.loads(labels)},
            "spec": {
                "containers": [
                    {
                        "name": "idle",
                        "image": "busybox:1.36",
                        "command": ["sleep", "86400"],
                        "readinessProbe": {"exec": {"command": ["false"]}},
                    }
                ]
            },
        }
        sql = f"alter user otelu with password '{old}'"
        change = scene.kubectl(f'exec deploy/{store} -- psql -U root otel -c "{sql}"')
        return Play(f"{apply(pod)}\n{change}", wait=60)


SCRIPTS = (UnmountedClaims(), OlderRevision(), FlagStub(), FlagHostGone(), OldPasswordBack())
