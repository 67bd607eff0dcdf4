"""Calling webhooks of admission and conversion over the simulated network: by Service or by URL.

No address outside the simulation is ever called: the loopback address of a URL is that of the control plane's own
node, and every other address and name is one of the simulated network.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

import orjson

from srearena.cluster.embedded.clock import Clock, Signal
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import NetworkFacade
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.admission.webhook_rules import Webhook
from srearena.cluster.embedded.registry.admission.webhooks import Answer
from srearena.cluster.embedded.registry.json_reader import JsonSyntaxError, read_json
from srearena.cluster.embedded.service_calls import HTTPS_PORT, NoSuchService, Server, bundle_of, call, server_of
from srearena.cluster.embedded.store import Store

_MOST_SHOWN: Final = 2048
_FAILURES: Final = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


def generic_failure(status: int, text: str) -> str:
    """What client-go makes of a response that is no Status; the text of the server is kept for a few codes only."""
    if status in _FAILURES:
        return _FAILURES[status]
    if status in (403, 406, 415):
        return text
    if status >= 500:
        return f"an error on the server ({quoted(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


class WebhookCalls:
    def __init__(self, clock: Clock, store: Store, network: NetworkFacade) -> None:
        self._clock = clock
        self._store = store
        self._network = network

    def call(self, webhook: Webhook, review: Obj) -> Signal[Answer]:
        answered: Signal[Answer] = Signal(self._clock)
        self._clock.spawn(self._call(webhook, orjson.dumps(review), review["kind"], answered))
        return answered

    async def _call(self, webhook: Webhook, body: bytes, kind: str, answered: Signal[Answer]) -> None:
        try:
            server, path = self._target(webhook)
        except NoSuchService as problem:
            answered.set(Answer(failure=f'Post "{webhook.url}": {problem}'))
            return
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = HttpRequest("POST", path, headers, body)
        bundle = bundle_of((webhook.hook.get("clientConfig") or {}).get("caBundle"))
        timeout = float(webhook.timeout)
        response = await call(self._network, server, request, bundle, self._clock.now, timeout)
        if isinstance(response, str):
            answered.set(Answer(failure=f'Post "{webhook.url}": {response}'))
        else:
            answered.set(_answer(kind, response.status, response.body))

    def _target(self, webhook: Webhook) -> tuple[Server, str]:
        """The server to call, and the path with its query."""
        client = webhook.hook.get("clientConfig") or {}
        service = client.get("service")
        timeout = f"timeout={webhook.timeout}s"
        if service:
            return server_of(self._store, service), f"{service.get('path') or '/'}?{timeout}"
        parts = urlsplit(str(client.get("url", "")))
        host = parts.hostname or ""
        try:
            port = parts.port or HTTPS_PORT
        except ValueError:
            raise NoSuchService(f"dial tcp: address {parts.netloc.rpartition(':')[2]}: invalid port") from None
        query = f"{parts.query}&{timeout}" if parts.query else timeout
        return Server(host, host, port), f"{parts.path or '/'}?{query}"


def _answer(kind: str, status: int, body: bytes) -> Answer:
    if not 200 <= status <= 206:
        return Answer(failure=generic_failure(status, body[:_MOST_SHOWN].decode(errors="replace").strip()))
    try:
        review = read_json(body)
    except JsonSyntaxError as problem:
        return Answer(failure=f"couldn't get version/kind; json parse error: {problem}")
    if not isinstance(review, dict) or review.get("kind") != kind:
        group = "admission.k8s.io" if kind == "AdmissionReview" else "apiextensions.k8s.io"
        return Answer(failure=f"expected webhook response of {group}/v1, Kind={kind}")
    return Answer(review)
