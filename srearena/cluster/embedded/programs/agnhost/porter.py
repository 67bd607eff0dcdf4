"""agnhost porter: answers on each port that a variable SERVE_PORT_<number> or SERVE_TLS_PORT_<number> names."""

from __future__ import annotations

import json

from srearena.cluster.embedded.machine.networking.certificates import BadCertificate, TlsIdentity
from srearena.cluster.embedded.machine.networking.sockets import HttpRequest, HttpResponse, Listener
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.programs.agnhost.commands import (
    IMAGE_FILES,
    MEMORY,
    Answer,
    certificate_at,
    command,
    log_time,
)
from srearena.cluster.embedded.programs.serving import Flags, go_bind_error, stop_signal, until_stopped

_PLAIN, _TLS = "SERVE_PORT_", "SERVE_TLS_PORT_"


@command("porter")
async def porter(process: Process, flags: Flags) -> int:
    stop = stop_signal(process)
    process.set_memory(MEMORY)
    in_json = flags.get("json-response") == "true"
    listeners: list[Listener] = []
    for name, value in process.env.items():
        prefix = next((prefix for prefix in (_PLAIN, _TLS) if name.startswith(prefix)), "")
        port = name.removeprefix(prefix)
        if not prefix or not port.isdigit():
            continue
        try:
            tls = _certificate(process) if prefix == _TLS else None
            answer = _answering(value, in_json=in_json)
            listeners.append(process.container.namespace.listen(process, int(port), http=answer, tls=tls))
        except BadCertificate as problem:
            await process.error(f'{log_time(process)} tls server on port "{port}" failed: tls: {problem}\n')
        except OSError as error:
            reason = go_bind_error(int(port), error) if prefix == _PLAIN else str(error.strerror).lower()
            await process.error(f'{log_time(process)} server on port "{port}" failed: {reason}\n')
    await until_stopped(process, stop, listeners)
    return 0


def _answering(value: str, *, in_json: bool) -> Answer:
    async def answer(request: HttpRequest) -> HttpResponse:
        if in_json:
            body = json.dumps({"Method": request.method, "Body": value}, separators=(",", ":")).encode()
            return HttpResponse(200, body, {"Content-Type": "application/json"})
        # Go tells a text from a page by its first bytes.
        kind = "text/html" if value.lstrip().startswith("<") else "text/plain"
        return HttpResponse.text(value, content_type=f"{kind}; charset=utf-8")

    return answer


def _certificate(process: Process) -> TlsIdentity:
    certificate, key = IMAGE_FILES
    return certificate_at(process, process.env.get("CERT_FILE", certificate), process.env.get("KEY_FILE", key))
