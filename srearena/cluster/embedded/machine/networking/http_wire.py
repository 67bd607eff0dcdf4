"""HTTP over a raw connection, from either side."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from srearena.cluster.embedded.clock import Clock
from srearena.cluster.embedded.machine.networking.connections import Connection
from srearena.cluster.embedded.machine.networking.http_message import (
    HttpRequest,
    HttpResponse,
    HttpSyntaxError,
    body_length,
    parse_request_line,
    parse_status_line,
    split_head,
)
from srearena.cluster.embedded.machine.networking.reachability import HttpResult, Outcome

HttpHandler = Callable[[HttpRequest], Coroutine[Any, Any, HttpResponse]]


BAD_REQUEST = HttpResponse(400, b"400 Bad Request", {"Content-Type": "text/plain; charset=utf-8"})
"""What servers in Go answer to what is no request."""


async def serve_http(connection: Connection, handler: HttpHandler, bad_request: HttpResponse = BAD_REQUEST) -> None:
    """Serve HTTP/1.1 with keep-alive on a raw connection."""
    buffer = b""
    while True:
        try:
            while (head := split_head(buffer)) is None:
                data = await connection.read()
                if not data:
                    return
                buffer += data
                if b"\n" in data:
                    # A server refuses a request line that is none without waiting for the headers.
                    parse_request_line(buffer.partition(b"\n")[0].decode("latin-1"))
            line, headers, start = head
            method, target, version = parse_request_line(line)
            length = body_length(headers)
        except HttpSyntaxError:
            refusal = replace(bad_request, headers={**bad_request.headers, "Connection": "close"})
            await connection.write(refusal.encode())
            return
        while len(buffer) < start + length:
            data = await connection.read()
            if not data:
                return
            buffer += data
        body, buffer = buffer[start : start + length], buffer[start + length :]
        request = HttpRequest(method, target, headers, body, connection.peer[0], version=version)
        response = await handler(request)
        await connection.write(response.encode(head_only=method == "HEAD"))
        if version == "HTTP/1.0" or request.header("Connection").lower() == "close":
            return


async def http_over(connection: Connection, request: HttpRequest) -> HttpResult:
    """Send a request as bytes and parse the response."""
    try:
        await connection.write(request.encode())
        buffer = b""
        while (head := split_head(buffer)) is None:
            data = await connection.read()
            if not data:
                return HttpResult(Outcome.PROTOCOL_ERROR if buffer else Outcome.EMPTY, connected=True)
            buffer += data
            if not b"HTTP/".startswith(buffer[:5]):
                return HttpResult(Outcome.PROTOCOL_ERROR, connected=True)
        line, headers, start = head
        status, reason = parse_status_line(line)
        length = body_length(headers) if request.method != "HEAD" and status not in (204, 304) else 0
        while len(buffer) < start + length:
            data = await connection.read()
            if not data:
                break
            buffer += data
    except HttpSyntaxError:
        return HttpResult(Outcome.PROTOCOL_ERROR, connected=True)
    except OSError:
        return HttpResult(Outcome.RESET, connected=True)
    finally:
        connection.close()
    response = HttpResponse(status, buffer[start : start + length], headers, reason)
    return HttpResult(Outcome.CONNECTED, response, connected=True)


async def within(clock: Clock, timeout: float | None, work: Coroutine[Any, Any, HttpResult]) -> HttpResult | None:
    """The result of `work`, or None after the timeout (the work is then cancelled)."""
    if timeout is None:
        return await work
    task = clock.spawn(work)
    try:
        await task.done.wait(timeout)
    finally:
        task.cancel()
    return task.done.value if task.done.is_set else None
