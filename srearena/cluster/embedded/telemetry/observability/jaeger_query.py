"""Jaeger's query service inside the cluster: the API, and the page of the user interface for every other path."""

from __future__ import annotations

from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.machine.processes.process import Process
from srearena.cluster.embedded.telemetry.observability.namespace_spans import NamespaceSpans
from srearena.cluster.embedded.telemetry.observability.telemetry_program import HTML, namespace_of_process
from srearena.cluster.embedded.telemetry.pipeline import Telemetry
from srearena.cluster.embedded.telemetry.traces.jaeger_api import JaegerApi

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<base href="{base}" data-inject-target="BASE_URL">
<title>Jaeger UI</title>
</head>
<body>
<div id="jaeger-ui-root"></div>
<noscript>You need to enable JavaScript to run this app.</noscript>
</body>
</html>
"""


class JaegerQuery:
    def __init__(self, telemetry: Telemetry, process: Process, base_path: str = "/") -> None:
        self._base = base_path.rstrip("/")
        spans = NamespaceSpans(
            telemetry.spans, namespace_of_process(process), process.clock.now, telemetry.receivers.pushed_traces
        )
        self._api = JaegerApi(spans, telemetry.clock)

    def answer(self, request: HttpRequest) -> HttpResponse:
        path = request.path
        if path.startswith(f"{self._base}/api/"):
            status, headers, body = self._api.handle(request.method, path.removeprefix(self._base), request.query)
            if status != 404 or body.startswith(b"{"):
                return HttpResponse(status, body, {name.title(): value for name, value in headers.items()})
        # As in the real program: what no route matches is left to the user interface.
        return HttpResponse(200, _PAGE.format(base=f"{self._base}/").encode(), dict(HTML))
