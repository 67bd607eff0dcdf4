"""Admission webhooks that run in the cluster, over TLS with the files they are given.

`pod-defaults`, a program that platform teams write again and again, fills in the memory that pods leave out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from srearena.cluster.embedded.machine.networking.certificates import BadCertificate, identity_of
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import klog_line

Verdict = dict[str, Any]
Review = Callable[[str, dict[str, Any]], Coroutine[Any, Any, Verdict | None]]
"""The verdict on a request, given the path it came by; None where nothing is served there."""
_MEMORY = 12 * 1024 * 1024


async def serve_reviews(process: Process, flags: Flags, review: Review) -> int:
    """Respond to admission reviews until stopped."""
    try:
        files = [process.files.read_bytes(flags.get(name)) for name in ("tls-cert-file", "tls-private-key-file")]
        identity = identity_of(*files)
    except (OSError, BadCertificate) as problem:
        reason = "no such file or directory" if isinstance(problem, OSError) else f"tls: {problem}"
        await process.error(klog_line(process, "F", "config.go:45", reason))
        return 255
    port = flags.port("port", 443)
    stop = stop_signal(process)
    process.set_memory(_MEMORY)

    async def answer(request: HttpRequest) -> HttpResponse:
        return await _reviewed(process, request, review)

    try:
        listener = process.container.namespace.listen(process, port, http=answer, tls=identity)
    except OSError as error:
        await process.error(f"panic: {go_bind_error(port, error)}\n")
        return 2
    await until_stopped(process, stop, [listener])
    return 0


async def _reviewed(process: Process, request: HttpRequest, decide: Review) -> HttpResponse:
    if request.path == "/readyz":
        return HttpResponse.text("ok")
    try:
        review = json.loads(request.body)
        admission = review["request"]
        uid = admission["uid"]
    except (ValueError, KeyError, TypeError):
        await process.error(klog_line(process, "E", "main.go:90", "couldn't get version/kind; json parse error"))
        return HttpResponse.text("couldn't get version/kind; json parse error\n", 400)
    answer = await decide(request.path, admission)
    if answer is None:
        return HttpResponse.text("404 page not found\n", 404)
    kind = {"kind": "AdmissionReview", "apiVersion": review.get("apiVersion", "admission.k8s.io/v1")}
    body = json.dumps({**kind, "response": {"uid": uid, **answer}}).encode()
    return HttpResponse(200, body, {"Content-Type": "application/json"})


@program("platform/pod-defaults")
class PodDefaults(Program):
    """Gives containers that name no limit of memory the one in DEFAULT_MEMORY_LIMIT."""

    entrypoint: ClassVar[tuple[str, ...]] = ("/pod-defaults",)
    base = "distroless"
    follows_tag = False
    binaries = ("/pod-defaults",)
    idle_memory = _MEMORY
    default_version = "1.4.0"

    async def run(self, process: Process) -> int:
        memory = process.env.get("DEFAULT_MEMORY_LIMIT", "")

        async def complete(path: str, admission: dict[str, Any]) -> Verdict:
            return _completed(admission, memory)

        return await serve_reviews(process, Flags(process.argv[1:]), complete)


def _completed(admission: dict[str, Any], memory: str) -> Verdict:
    """The changes that complete a pod."""
    changes: list[dict[str, Any]] = []
    for number, container in enumerate(((admission.get("object") or {}).get("spec") or {}).get("containers") or ()):
        resources = container.get("resources") or {}
        limits = resources.get("limits") or {}
        if memory and "memory" not in limits:
            value = {**resources, "limits": {**limits, "memory": memory}}
            changes.append({"op": "add", "path": f"/spec/containers/{number}/resources", "value": value})
    if not changes:
        return {"allowed": True}
    return patched(changes)


def patched(changes: list[dict[str, Any]]) -> Verdict:
    """A verdict that allows a request with changes."""
    patch = base64.b64encode(json.dumps(changes).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}
