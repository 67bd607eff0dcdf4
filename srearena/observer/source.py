"""A client of an HTTP API for telemetry, with a plain message for every failure."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from srearena.closeable import Closeable
from srearena.observer.errors import ObserverError

_TIMEOUT = 60.0
_MESSAGE_LIMIT = 200
_REDIRECTIONS = urllib3.Retry(connect=0, read=0, redirect=5, other=0, raise_on_redirect=True)

Params = Mapping[str, str | list[str]]


class Source(Closeable):
    """A connection to Prometheus, Loki or Jaeger; `product` is its name in messages."""

    def __init__(self, product: str, url: str, token: str = "") -> None:
        self.product = product
        self.url = url.rstrip("/")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(headers=headers, timeout=_TIMEOUT)
        # Connections are closed with the object, where the caller does not close it.
        self._finalizer = weakref.finalize(self, self._pool.clear)

    def close(self) -> None:
        self._finalizer()

    def body(self, path: str, params: Params) -> bytes:
        """Send a GET request and return the body of its response; ObserverError with the reason otherwise."""
        if not self.url.startswith(("http://", "https://")):
            raise ObserverError(f"{self.url!r} is no address of {self.product}: it begins with http:// or https://")
        try:
            url = f"{self.url}{path}?{urlencode(params, doseq=True)}"
            response = self._pool.request("GET", url, retries=_REDIRECTIONS)
        except urllib3.exceptions.LocationValueError as problem:
            raise ObserverError(f"{self.url!r} is no address of {self.product}: {problem}") from problem
        except urllib3.exceptions.ReadTimeoutError as problem:
            raise ObserverError(
                f"{self.product} at {self.url} did not answer within {_TIMEOUT:.0f} s: ask for a shorter window"
            ) from problem
        except urllib3.exceptions.HTTPError as problem:
            raise ObserverError(
                f"cannot reach {self.product} at {self.url}: {problem}; is it running, and is the address right?"
            ) from problem
        if response.status in (401, 403):
            raise ObserverError(
                f"{self.product} at {self.url} rejects the token (status {response.status}): use one it accepts"
            )
        if response.status != 200:
            raise ObserverError(
                f"{self.product} at {self.url} refused {path} (status {response.status}): {_error_text(response.data)}"
            )
        return response.data

    def get(self, path: str, params: Params) -> Any:
        """Send a GET request and decode the JSON response."""
        return self.decoded(path, self.body(path, params))

    def decoded(self, path: str, body: bytes) -> Any:
        """The JSON of a response."""
        try:
            return orjson.loads(body)
        except ValueError as problem:
            raise ObserverError(
                f"what answers at {self.url} is not {self.product}: {path} gave no JSON; is the address right?"
            ) from problem

    def data(self, path: str, params: Params) -> Any:
        """Send a GET request and return the `data` of its response."""
        return self.data_of(path, self.body(path, params))

    def data_of(self, path: str, body: bytes) -> Any:
        """The `data` of a response."""
        document = self.decoded(path, body)
        if not isinstance(document, dict):
            raise ObserverError(f"what answers at {self.url} is not {self.product}: {path} gave an unknown answer")
        return document.get("data")


def _error_text(response: bytes) -> str:
    try:
        body = orjson.loads(response)
    except ValueError:
        return response.decode("utf-8", "replace").strip()[:_MESSAGE_LIMIT] or "no reason given"
    if isinstance(body, dict):
        errors = body.get("errors")
        if isinstance(errors, list) and errors and isinstance(errors[0], dict):
            return str(errors[0].get("msg", ""))[:_MESSAGE_LIMIT]
        return str(body.get("error") or body.get("message") or body)[:_MESSAGE_LIMIT]
    return str(body)[:_MESSAGE_LIMIT]
