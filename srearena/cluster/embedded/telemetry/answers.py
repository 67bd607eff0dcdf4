"""What the telemetry APIs are asked and what they answer, whichever web server stands in front of them.

An API is a `QueryApi`: parameters in (of the query string and, in a POST, of the form), status, headers and body out.
It reads stores and never waits, so a test can ask one without a socket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import orjson

Params = Mapping[str, Sequence[str]]
Answer = tuple[int, Mapping[str, str], bytes]

JSON = {"content-type": "application/json"}
TEXT = {"content-type": "text/plain; charset=utf-8"}


class QueryApi(Protocol):
    def handle(self, method: str, path: str, params: Params) -> Answer: ...


def first(params: Params, name: str, default: str = "") -> str:
    """The first value of a parameter, as Go's `FormValue` has it."""
    values = params.get(name)
    return values[0] if values else default


def json_answer(body: Any, status: int = 200) -> Answer:
    return status, JSON, orjson.dumps(body)


def text_answer(text: str, status: int = 200) -> Answer:
    return status, TEXT, text.encode()


def no_such_path() -> Answer:
    """What Go's mux says where nothing is served."""
    return text_answer("404 page not found\n", 404)
