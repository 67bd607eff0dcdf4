"""Admission webhooks that run in the cluster, over TLS with the files they are given.

`agnhost webhook` allows or denies what it is asked about. `pod-defaults`, a program that platform teams write again and
again, fills in the memory that pods leave out.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, ClassVar

from srearena.cluster.embedded.machine.networking.certificates import BadCertificate, identity_of
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.base import Program
from srearena.cluster.embedded.programs.registry import program
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.programs.timestamps import klog_line

Verdict = dict[str, Any]
_VERDICTS = {"/always-deny": (False, 0.0), "/always-allow-delay-5s": (True, 5.0), "/pods": (True, 0.0)}
"""By path: what is said, and after how long."""
_MEMORY = 12 * 1024 * 1024


async def serve_reviews(
    process: Process, flags: Flags, review: Callable[[dict[str, Any]], Verdict] | None = None
) -> int:
    """Respond to admission reviews until stopped: with `review`, or by the request's path."""
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


async def _reviewed(
    process: Process, request: HttpRequest, decide: Callable[[dict[str, Any]], Verdict] | None
) -> HttpResponse:
    if request.path == "/readyz":
        return HttpResponse.text("ok")
    known = _VERDICTS.get(request.path)
    if known is None and decide is None:
        return HttpResponse.text("404 page not found\n", 404)
    try:
        review = json.loads(request.body)
        admission = review["request"]
        uid = admission["uid"]
    except (ValueError, KeyError, TypeError):
        await process.error(klog_line(process, "E", "main.go:90", "couldn't get version/kind; json parse error"))
        return HttpResponse.text("couldn't get version/kind; json parse error\n", 400)
    if decide is not None:
        answer = decide(admission)
    else:
        assert known is not None
        answer = {"allowed": known[0]}
        if not known[0]:
            answer["status"] = {"message": "this webhook denies all requests"}
        await process.sleep(known[1])
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
        return await serve_reviews(process, Flags(process.argv[1:]), lambda admission: _completed(admission, memory))


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
    patch = base64.b64encode(json.dumps(changes).encode()).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}
