"""An HTTP API that telemetry is read from, and plain words for everything that can be wrong with it."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import httpx

from srearena.observer.errors import ObserverError

_TIMEOUT = 60.0
_SHOWN = 200

Params = Mapping[str, str | list[str]]


class Source:
    """`what` is the program that should answer there: Prometheus, Loki or Jaeger."""

    def __init__(self, what: str, url: str, token: str = "") -> None:
        self.what = what
        self.url = url.rstrip("/")
        headers = {"authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(headers=headers, timeout=_TIMEOUT, trust_env=False, follow_redirects=True)
        # Nobody need close a source: connections end with it at the latest.
        self._closing = weakref.finalize(self, self._client.close)

    def close(self) -> None:
        self._closing()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def get(self, path: str, params: Params) -> Any:
        """The JSON that is answered; ObserverError with what was said otherwise."""
        try:
            answer = self._client.get(f"{self.url}{path}", params=dict(params))
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as problem:
            raise ObserverError(f"{self.url!r} is no address of {self.what}: {problem}") from problem
        except httpx.TimeoutException as problem:
            raise ObserverError(
                f"{self.what} at {self.url} did not answer within {_TIMEOUT:.0f} s: ask for a shorter window"
            ) from problem
        except httpx.HTTPError as problem:
            raise ObserverError(
                f"cannot reach {self.what} at {self.url}: {problem}; is it running, and is the address right?"
            ) from problem
        if answer.status_code in (401, 403):
            raise ObserverError(
                f"{self.what} at {self.url} refuses the token (status {answer.status_code}): "
                "give the one that belongs to it"
            )
        if answer.status_code != 200:
            raise ObserverError(
                f"{self.what} at {self.url} refused {path} (status {answer.status_code}): {_said(answer)}"
            )
        try:
            return answer.json()
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


def _said(answer: httpx.Response) -> str:
    try:
        body = answer.json()
    except ValueError:
        return answer.text.strip()[:_SHOWN] or "no reason given"
    if isinstance(body, dict):
        errors = body.get("errors")
        if isinstance(errors, list) and errors and isinstance(errors[0], dict):
            return str(errors[0].get("msg", ""))[:_SHOWN]
        return str(body.get("error") or body.get("message") or body)[:_SHOWN]
    return str(body)[:_SHOWN]
