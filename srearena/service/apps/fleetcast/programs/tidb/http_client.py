"""HTTP requests between the components of a TiDB cluster."""

from __future__ import annotations

import json
from typing import Any

from srearena.cluster.program_models import HttpRequest, HttpResponse, Outcome, Process

_REASONS = {
    Outcome.REFUSED: "connect: connection refused",
    Outcome.TIMEOUT: "i/o timeout",
    Outcome.NXDOMAIN: "no such host",
    Outcome.NO_ROUTE: "connect: no route to host",
}


class RequestFailed(Exception):
    """No response, or an error response; the text is that of Go's HTTP client."""


async def request_json(
    process: Process, url: str, *, method: str = "GET", body: Any = None, timeout: float = 5.0
) -> Any:
    """Send a request to a URL (`http://host:port/path`) and decode the JSON response."""
    address, slash, path = url.removeprefix("http://").partition("/")
    host, _, port = address.partition(":")
    data = json.dumps(body).encode() if body is not None else b""
    request = HttpRequest(method, slash + path, {"Host": address, "Content-Type": "application/json"}, data)
    result = await process.container.network.http(host, int(port or 80), request, timeout=timeout)
    if result.response is None:
        reason = _REASONS.get(result.outcome, str(result.outcome))
        raise RequestFailed(f'{method.capitalize()} "{url}": dial tcp {result.address or host}:{port}: {reason}')
    text = result.response.body.decode(errors="replace")
    if result.response.status >= 400:
        raise RequestFailed(f"{url} responded {result.response.status}: {text.strip()}")
    try:
        return json.loads(text) if text else None
    except ValueError:
        raise RequestFailed(f"{url} gave no JSON: {text[:100]}") from None


def json_response(value: Any, status: int = 200) -> HttpResponse:
    return HttpResponse(status, json.dumps(value).encode(), {"Content-Type": "application/json; charset=UTF-8"})
