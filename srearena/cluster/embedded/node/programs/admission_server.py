"""`agnhost webhook`: an admission webhook that allows what it is asked about, over TLS with the files it is given."""

from __future__ import annotations

import json

from srearena.cluster.embedded.node.certificates import BadCertificate, identity_of
from srearena.cluster.embedded.node.process import Process
from srearena.cluster.embedded.node.programs.serving import Flags, go_bind_error, stop_signal, until_stopped
from srearena.cluster.embedded.node.programs.timestamps import klog_line
from srearena.cluster.embedded.node.sockets import HttpRequest, HttpResponse

_VERDICTS = {"/always-deny": (False, 0.0), "/always-allow-delay-5s": (True, 5.0), "/pods": (True, 0.0)}
"""By path: what is said, and after how long."""
_MEMORY = 12 * 1024 * 1024


async def serve_reviews(process: Process, flags: Flags) -> int:
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
        return await _reviewed(process, request)

    try:
        listener = process.container.namespace.listen(process, port, http=answer, tls=identity)
    except OSError as error:
        await process.error(f"panic: {go_bind_error(port, error)}\n")
        return 2
    await until_stopped(process, stop, [listener])
    return 0


async def _reviewed(process: Process, request: HttpRequest) -> HttpResponse:
    if request.path == "/readyz":
        return HttpResponse.text("ok")
    verdict = _VERDICTS.get(request.path)
    if verdict is None:
        return HttpResponse.text("404 page not found\n", 404)
    try:
        review = json.loads(request.body)
        uid = review["request"]["uid"]
    except (ValueError, KeyError, TypeError):
        await process.error(klog_line(process, "E", "main.go:90", "couldn't get version/kind; json parse error"))
        return HttpResponse.text("couldn't get version/kind; json parse error\n", 400)
    allowed, seconds = verdict
    await process.sleep(seconds)
    answer = {"uid": uid, "allowed": allowed}
    if not allowed:
        answer["status"] = {"message": "this webhook denies all requests"}
    kind = {"kind": "AdmissionReview", "apiVersion": review.get("apiVersion", "admission.k8s.io/v1")}
    return HttpResponse(200, json.dumps({**kind, "response": answer}).encode(), {"Content-Type": "application/json"})
