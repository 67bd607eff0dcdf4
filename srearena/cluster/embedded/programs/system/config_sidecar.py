"""The sidecar of Helm charts that writes labelled ConfigMaps and Secrets into a folder (kiwigrid/k8s-sidecar).

It reads the API as its pod's service account. What it wrote is removed when the object goes.
"""

from __future__ import annotations

import base64
import binascii
import json

from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.objects import Obj, name_of
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import stop_signal
from srearena.cluster.embedded.programs.timestamps import stamp
from srearena.cluster.embedded.programs.toolboxes.cluster_api import ApiFailure, ApiPath, ClusterApi, NotInCluster

_WATCH_SECONDS = 60
"""The program's default of WATCH_SERVER_TIMEOUT."""
_ERROR_SLEEP = 5.0
"""The program's default of ERROR_THROTTLE_SLEEP."""
_RESOURCES = {"configmap": ("configmaps",), "secret": ("secrets",), "both": ("secrets", "configmaps")}


@program("kiwigrid/k8s-sidecar")
class ConfigSidecar(Program):
    threads = 4
    entrypoint = ("python", "-u", "/app/sidecar.py")
    binaries = ("/usr/local/bin/python",)
    base = "alpine"
    follows_tag = False
    working_dir = "/app"
    user = "65534"
    idle_cpu = 0.0005
    idle_memory = 70 * 1024 * 1024

    async def run(self, process: Process) -> int:
        stop = stop_signal(process)
        process.set_memory(self.idle_memory)
        sidecar = _Sidecar(process)
        await sidecar.log("INFO", "Starting collector")
        if not sidecar.label or not sidecar.folder:
            await sidecar.log("CRITICAL", "Should have added LABEL and FOLDER as environment variables! Exit")
            return 1
        try:
            sidecar.api = ClusterApi(process, "OpenAPI-Generator/32.0.1/python")
        except NotInCluster as problem:
            await sidecar.log("CRITICAL", str(problem))
            return 1
        await sidecar.log("INFO", "Loading incluster config ...")
        for resource in sidecar.resources:
            process.spawn_thread(sidecar.follow(resource))
        await stop.wait()
        return 0


class _Sidecar:
    api: ClusterApi

    def __init__(self, process: Process) -> None:
        self.process = process
        env = process.env
        self.label, self.value = env.get("LABEL", ""), env.get("LABEL_VALUE", "")
        self.folder = env.get("FOLDER", "").rstrip("/")
        self.namespace = env.get("NAMESPACE", "")
        self.resources = _RESOURCES.get(env.get("RESOURCE", "configmap").lower(), ("configmaps",))
        self.watches = env.get("METHOD", "WATCH").upper() != "LIST"
        self._written: dict[tuple[str, str], set[str]] = {}

    async def log(self, level: str, text: str) -> None:
        moment = stamp(self.process, "%Y-%m-%dT%H:%M:%S.%f+00:00")
        await self.process.error(json.dumps({"time": moment, "level": level, "msg": text}) + "\n")

    async def follow(self, resource: str) -> None:
        revision = ""
        while True:
            try:
                if not revision:
                    revision = await self._list(resource)
                    if not self.watches:
                        return
                events, revision = await self.api.watch(self._path(resource), revision, _WATCH_SECONDS)
                for event in events:
                    await self._apply(resource, event["object"], event["type"] == "DELETED")
            except ApiFailure as failure:
                await self.log("ERROR", f"ApiException when calling kubernetes: ({failure.status}) {failure.message}")
                revision = ""
                await self.process.sleep(_ERROR_SLEEP)

    def _path(self, resource: str) -> ApiPath:
        namespace = "" if self.namespace == "ALL" else self.namespace or self.api.namespace
        selector = f"{self.label}={self.value}" if self.value else self.label
        return ApiPath("", "v1", resource, namespace, query={"labelSelector": selector})

    async def _list(self, resource: str) -> str:
        found = await self.api.call("GET", self._path(resource))
        for item in found.get("items") or ():
            await self._apply(resource, item, gone=False)
        return str(found["metadata"]["resourceVersion"])

    async def _apply(self, resource: str, obj: Obj, gone: bool) -> None:
        key = (resource, name_of(obj))
        contents = {} if gone else _contents(resource, obj)
        files = self.process.files
        for name in self._written.get(key, set()) - set(contents):
            await self.log("INFO", f"Deleting {self.folder}/{name}")
            if files.is_file(f"{self.folder}/{name}"):
                files.unlink(f"{self.folder}/{name}")
        for name, data in contents.items():
            path = f"{self.folder}/{name}"
            if files.is_file(path) and files.read_bytes(path) == data:
                continue
            await self.log("INFO", f"Writing {path} (ascii)")
            try:
                files.write_bytes(path, data)
            except OSError as error:
                await self.log("ERROR", f"Error: cannot write to {path}: {error.strerror}")
        self._written[key] = set(contents)


def _contents(resource: str, obj: Obj) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name, value in (obj.get("data") or {}).items():
        try:
            found[name] = base64.b64decode(value) if resource == "secrets" else str(value).encode()
        except binascii.Error:
            continue
    return found
