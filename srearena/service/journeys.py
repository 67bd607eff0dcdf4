"""Journeys: what users do with an application from end to end, as requests that only the real application can serve.

A journey writes something with a marker of its own through the frontend, reads it back by another operation, and
expects a refusal where the application must refuse. Applications declare theirs (`Application.journeys`) in a module
beside the application. Requests and answers are those of the real application, so that a journey can be played on any
cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from weakref import WeakKeyDictionary

from srearena.service.errors import Unreachable
from srearena.service.frontend import Frontend
from srearena.service.kubernetes import Kubernetes

_PLAYS: WeakKeyDictionary[Kubernetes, int] = WeakKeyDictionary()
"""How many visits each client has made: a number for plays at one resource version, the same in every replay."""
_UNLIKE = (LookupError, TypeError, ValueError, AttributeError)
"""What reading a document of another form than expected raises."""
_FORM = {"content-type": "application/x-www-form-urlencoded"}
_JSON = {"content-type": "application/json"}


class JourneyFailed(Exception):
    """An answer differs from that of the real, working application."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The response to one request of a journey."""

    request: str
    status: int
    text: str

    @property
    def document(self) -> Any:
        """The response as JSON; JourneyFailed where it is none."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            raise JourneyFailed(f"{self.request} answered no JSON: {self.text[:80]!r}") from None

    def must(self, holds: bool, what: str) -> None:
        """JourneyFailed where the condition does not hold."""
        if not holds:
            raise JourneyFailed(f"{self.request} answered {self.status} {self.text[:120]!r}: {what}")


class Visitor:
    """A user of an application who keeps what identifies this visit: `marker`, a number that no other visit has."""

    def __init__(self, api: Kubernetes, frontend: Frontend, namespace: str) -> None:
        self._api = api
        self._frontend = frontend
        self._namespace = frontend.namespace or namespace
        # The resource version grows with every write to the cluster; plays at the same version differ in the rest.
        listed = api.raw(f"/api/v1/namespaces/{self._namespace}/services", query={"limit": 1})
        _PLAYS[api] = _PLAYS.get(api, 0) + 1
        self.marker = int(listed["metadata"]["resourceVersion"]) * 100 + _PLAYS[api] % 100

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, object] | None = None,
        *,
        form: Mapping[str, object] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request to the frontend: with a form, with a JSON body, or with neither."""
        target = f"{path}?{urlencode(query)}" if query else path
        data = urlencode(form) if form is not None else json.dumps(body) if body is not None else ""
        kind = _FORM if form is not None else _JSON if body is not None else {}
        request = f"{method} {path}"
        try:
            reply = self._api.request_service(
                self._frontend.service,
                self._frontend.port,
                target,
                self._namespace,
                method=method,
                body=data.encode() if data else None,
                headers={**kind, **(headers or {})},
                timeout=15.0,
            )
        except Unreachable as problem:
            raise JourneyFailed(f"{request} was not answered: {problem}") from None
        return Answer(request, reply.status, reply.text)


@dataclass(frozen=True, slots=True)
class Journey:
    """One journey: its name, and the requests with what must hold for their answers."""

    name: str
    steps: Callable[[Visitor], None]

    def play(self, api: Kubernetes, frontend: Frontend, namespace: str) -> list[str]:
        """Play it once; the complaints, none where the application serves it.

        The steps read nothing but answers, so an error in reading them is a difference from the healthy application's.
        """
        try:
            self.steps(Visitor(api, frontend, namespace))
        except JourneyFailed as failure:
            return [f"{self.name}: {failure}"]
        except _UNLIKE as difference:
            return [f"{self.name}: an answer has another form than the application's: {difference!r}"]
        return []
