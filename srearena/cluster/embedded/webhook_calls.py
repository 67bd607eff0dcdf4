"""Calling webhooks of admission and conversion over the simulated network: by Service or by URL.

No address outside the simulation is ever called: the loopback address of a URL is that of the control plane's own
node, and every other address and name is one of the simulated network.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import orjson

from srearena.cluster.embedded.clock import Clock, Signal
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import NetworkFacade
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.admission.webhook_rules import Webhook
from srearena.cluster.embedded.registry.admission.webhooks import Answer
from srearena.cluster.embedded.service_calls import HTTPS_PORT, NoSuchService, Server, bundle_of, call, server_of
from srearena.cluster.embedded.store import Store


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
    if status != 200:
        text = body[:200].decode(errors="replace").strip()
        return Answer(failure=text or f"the server responded with status {status}")
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        return Answer(failure=f"couldn't get version/kind; json parse error: {problem}")
    if not isinstance(review, dict) or review.get("kind") != kind:
        group = "admission.k8s.io" if kind == "AdmissionReview" else "apiextensions.k8s.io"
        return Answer(failure=f"expected webhook response of {group}/v1, Kind={kind}")
    return Answer(review)
