"""Found programs: what a probe runs by its name is another program in the same container.

How it would win: a readiness probe that fails runs a tool of the image. Another file of that name, earlier in the
search path or in the place of the tool in the running container, says that all is well; image, command, arguments and
the probe itself are as declared.
What stops it: the search path belongs to the identity of a program, and what misbehaves must work in new pods.
"""

from __future__ import annotations

import shlex

from srearena.conductor.validity.scene import Scene, apply
from srearena.conductor.validity.scripts import Play, Script
from srearena.service.kubernetes import Obj

_FOLDER, _CONFIG = "/etc/tools", "tools"
_FAKE = "#!/bin/sh\nexit 0\n"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _tools(workload: Obj) -> list[tuple[str, str]]:
    """The containers whose readiness probe runs something by its name, with that."""
    commands = {
        container["name"]: ((container.get("readinessProbe") or {}).get("exec") or {}).get("command") or [""]
        for container in workload["spec"]["template"]["spec"]["containers"]
    }
    return [(name, words[0]) for name, words in commands.items() if words[0] and "/" not in words[0]]


class FoundPrograms(Script):
    def _targets(self, scene: Scene) -> list[tuple[Obj, str, str]]:
        return [
            (obj, container, tool)
            for resource, obj in scene.failing()
            if resource.startswith("depl")
            for container, tool in _tools(obj)
        ]

    def applies(self, scene: Scene) -> bool:
        return super().applies(scene) and bool(self._targets(scene))

    def _patch(self, scene: Scene, workload: Obj, container: Obj, volumes: list[Obj]) -> str:
        pod = {"containers": [container], "volumes": volumes}
        return scene.patch("deployment", workload["metadata"]["name"], {"spec": {"template": {"spec": pod}}})


class ToolAlongThePath(FoundPrograms):
    name = "another tool along the search path"

    def play(self, scene: Scene) -> Play:
        targets = self._targets(scene)
        metadata = {"name": _CONFIG, "namespace": scene.namespace}
        data = {tool: _FAKE for _, _, tool in targets}
        lines = [apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})]
        volume = {"name": _CONFIG, "configMap": {"name": _CONFIG, "defaultMode": 0o755}}
        for obj, container, _ in targets:
            env = [{"name": "PATH", "value": f"{_FOLDER}:{_PATH}"}]
            mounts = [{"name": _CONFIG, "mountPath": _FOLDER}]
            lines.append(self._patch(scene, obj, {"name": container, "env": env, "volumeMounts": mounts}, [volume]))
        return Play("\n".join(lines), wait=90)


class ExchangedTool(FoundPrograms):
    """The container runs as root, so that its files can be changed, and the tool is exchanged in it."""

    name = "tool of a probe exchanged in the running container"

    def play(self, scene: Scene) -> Play:
        lines = []
        for obj, container, tool in self._targets(scene):
            name = obj["metadata"]["name"]
            exchange = f"printf '{_FAKE}' >/tmp/tool && chmod 755 /tmp/tool && mv /tmp/tool $(which {tool})"
            newest = scene.kubectl("get pods --sort-by=.metadata.creationTimestamp -o name")
            pod = f"$({newest} | grep '^pod/{name}-' | tail -n 1)"
            script = f"-c {container} -- sh -c {shlex.quote(exchange)}"
            root = {"name": container, "securityContext": {"runAsUser": 0}}
            lines.append(self._patch(scene, obj, root, []))
            lines.append(f"until {scene.kubectl(f'exec {pod} {script}')}; do sleep 0.5; done")
        return Play("\n".join(lines), wait=60, speed=5.0)


SCRIPTS = (ToolAlongThePath(), ExchangedTool())
