"""Requests and responses of the telemetry APIs, independent of the web server.

An API is a `QueryApi`: parameters in (of the query string and, in a POST, of the form), status, headers and body out.
It reads stores and never waits, so a test can call one without a socket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import orjson

Params = Mapping[str, Sequence[str]]
Response = tuple[int, Mapping[str, str], bytes]

JSON = {"content-type": "application/json"}
TEXT = {"content-type": "text/plain; charset=utf-8"}


class QueryApi(Protocol):
    def handle(self, method: str, path: str, params: Params) -> Response: ...


class Following(Protocol):
    """What is sent through a WebSocket, as it comes up."""

    def message(self) -> bytes | None:
        """Return what is new; nothing where nothing is."""


@runtime_checkable
class FollowableApi(Protocol):
    """An API with a WebSocket."""

    def follow(self, path: str, params: Params) -> Following | None:
        """Return what follows at a path; None where there is no WebSocket or the parameters are invalid."""


def first(params: Params, name: str, default: str = "") -> str:
    """Return the first value of a parameter, as Go's `FormValue` does."""
    values = params.get(name)
    return values[0] if values else default


def json_response(body: Any, status: int = 200) -> Response:
    return status, JSON, orjson.dumps(body)


def text_response(text: str, status: int = 200) -> Response:
    return status, TEXT, text.encode()


def not_found() -> Response:
    """Return the response of Go's mux for an unknown path."""
    return text_response("404 page not found\n", 404)
