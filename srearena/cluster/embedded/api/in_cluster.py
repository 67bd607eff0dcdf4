"""The API as pods reach it: requests that come over the simulated network, answered in virtual time.

A program in a pod dials the `kubernetes` Service, presents the token of its service account, and lands here, behind
the API server's own pod. From here on everything is as for a client from outside: the same authentication, RBAC,
admission and handlers. What differs is only the clock: who must wait (for an admission webhook, for a change) waits
on the cluster's own, so a controller that lives in a pod is as deterministic as any other part of the cluster.

There are no endless streams in here: a watch ends with the first changes it can tell of, a log ends where it is.
"""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any
from urllib.parse import urlsplit

import orjson

from srearena.cluster.embedded.api.application import Application
from srearena.cluster.embedded.api.authorization import Attributes
from srearena.cluster.embedded.api.backend import Backend
from srearena.cluster.embedded.api.requests import Message
from srearena.cluster.embedded.api.waiting import IN_WORLD
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest, HttpResponse
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.telemetry.component_metrics import CONTENT_TYPE

_HEALTH = ("/healthz", "/livez", "/readyz", "/health")


class InClusterApi:
    """Answers what arrives at the API server's port inside the simulation."""

    def __init__(self, application: Application) -> None:
        self._application = application

    async def answer(self, request: HttpRequest) -> HttpResponse:
        response = HttpResponse(500)
        body: list[bytes] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": request.body, "more_body": False}

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                response.status = message["status"]
                response.headers = {name.decode("latin-1"): text.decode("latin-1") for name, text in message["headers"]}
            elif message["type"] == "http.response.body":
                body.append(message.get("body", b""))

        parts = urlsplit(request.target)
        scope = {
            "type": "http",
            "method": request.method,
            "path": request.path,
            "query_string": parts.query.encode("ascii", "replace"),
            "headers": [
                (name.lower().encode("latin-1", "replace"), value.encode("latin-1", "replace"))
                for name, value in request.headers.items()
            ],
        }
        await _InWorld(self._application(scope, receive, send))
        response.body = b"".join(body)
        return response


class MetricsPage:
    """`/metrics` of a program of the control plane, at its own port: for users who may read that path."""

    def __init__(self, backend: Backend, job: str, *, anonymous: bool = False) -> None:
        self._backend = backend
        self._job = job
        self._anonymous = anonymous

    async def answer(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(_HEALTH):
            return HttpResponse.text("ok")
        pages = self._backend.component_metrics
        try:
            if not self._anonymous:
                token = request.header("Authorization").partition(" ")[2].strip()
                user = self._backend.authenticator.user_of_token(token)
                self._backend.authorizer.check(user, Attributes(request.method.lower(), path=request.path))
        except ApiError as error:
            return HttpResponse(error.code, orjson.dumps(error.status()) + b"\n", {"Content-Type": "application/json"})
        if request.path != "/metrics" or pages is None:
            return HttpResponse.text("404 page not found\n", 404)
        return HttpResponse(200, pages.of_component(self._job), {"Content-Type": CONTENT_TYPE})


class _InWorld:
    """Drives a handler on the cluster's clock, and lets it know that it is driven so."""

    def __init__(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, None]:
        thrown: BaseException | None = None
        while True:
            mark = IN_WORLD.set(True)
            try:
                suspension = self._coroutine.send(None) if thrown is None else self._coroutine.throw(thrown)
            except StopIteration:
                return
            finally:
                IN_WORLD.reset(mark)
            thrown = None
            try:
                yield suspension
            except GeneratorExit:
                self._coroutine.close()
                raise
            except BaseException as problem:
                thrown = problem
