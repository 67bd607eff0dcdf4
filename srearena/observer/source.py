"""An HTTP API that telemetry is read from, and plain words for everything that can be wrong with it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
import urllib3

from srearena.closing import Closing
from srearena.observer.errors import ObserverError

_TIMEOUT = 60.0
_SHOWN = 200
_REDIRECTIONS = urllib3.Retry(connect=0, read=0, redirect=5, other=0, raise_on_redirect=True)

Params = Mapping[str, str | list[str]]


class Source(Closing):
    """`what` is the program that should answer there: Prometheus, Loki or Jaeger."""

    def __init__(self, what: str, url: str, token: str = "") -> None:
        self.what = what
        self.url = url.rstrip("/")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(headers=headers, timeout=_TIMEOUT)
        # Nobody need close a source: connections end with it at the latest.
        self._closing = weakref.finalize(self, self._pool.clear)

    def close(self) -> None:
        self._closing()

    def get(self, path: str, params: Params) -> Any:
        """The JSON that is answered; ObserverError with what was said otherwise."""
        if not self.url.startswith(("http://", "https://")):
            raise ObserverError(f"{self.url!r} is no address of {self.what}: it begins with http:// or https://")
        try:
            url = f"{self.url}{path}?{urlencode(params, doseq=True)}"
            answer = self._pool.request("GET", url, retries=_REDIRECTIONS)
        except urllib3.exceptions.LocationValueError as problem:
            raise ObserverError(f"{self.url!r} is no address of {self.what}: {problem}") from problem
        except urllib3.exceptions.ReadTimeoutError as problem:
            raise ObserverError(
                f"{self.what} at {self.url} did not answer within {_TIMEOUT:.0f} s: ask for a shorter window"
            ) from problem
        except urllib3.exceptions.HTTPError as problem:
            raise ObserverError(
                f"cannot reach {self.what} at {self.url}: {problem}; is it running, and is the address right?"
            ) from problem
        if answer.status in (401, 403):
            raise ObserverError(
                f"{self.what} at {self.url} refuses the token (status {answer.status}): give the one that belongs to it"
            )
        if answer.status != 200:
            raise ObserverError(
                f"{self.what} at {self.url} refused {path} (status {answer.status}): {_said(answer.data)}"
            )
        try:
            return orjson.loads(answer.data)
        except ValueError as problem:
            raise ObserverError(
                f"what answers at {self.url} is not {self.what}: {path} gave no JSON; is the address right?"
            ) from problem

    def data(self, path: str, params: Params) -> Any:
        """The `data` of an answer, where the API wraps it so."""
        answer = self.get(path, params)
        if not isinstance(answer, dict):
            raise ObserverError(f"what answers at {self.url} is not {self.what}: {path} gave an unknown answer")
        return answer.get("data")


def _said(answer: bytes) -> str:
    try:
        body = orjson.loads(answer)
    except ValueError:
        return answer.decode("utf-8", "replace").strip()[:_SHOWN] or "no reason given"
    if isinstance(body, dict):
        errors = body.get("errors")
        if isinstance(errors, list) and errors and isinstance(errors[0], dict):
            return str(errors[0].get("msg", ""))[:_SHOWN]
        return str(body.get("error") or body.get("message") or body)[:_SHOWN]
    return str(body)[:_SHOWN]
