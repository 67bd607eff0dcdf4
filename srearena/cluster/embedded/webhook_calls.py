"""Calling webhooks of admission and conversion over the simulated network: by Service or by URL.

A server is dialled from the control plane as any program would, so a webhook without endpoints, behind a policy or
with a certificate from the wrong authority fails as in a real cluster, after the same virtual time. No address outside
the simulation is ever called: the loopback address of a URL is that of the control plane's own node, and every other
address and name is one of the simulated network.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from urllib.parse import urlsplit

import orjson

from srearena.cluster.embedded.clock import Clock, Signal
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import HttpResult, NetworkFacade, Outcome
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry.admission.webhook_rules import Webhook
from srearena.cluster.embedded.registry.admission.webhooks import Answer
from srearena.cluster.embedded.store import Store

_FAILURES = {
    Outcome.REFUSED: "dial tcp {address}: connect: connection refused",
    Outcome.TIMEOUT: "context deadline exceeded",
    Outcome.RESET: "read tcp {address}: read: connection reset by peer",
    Outcome.NO_ROUTE: "dial tcp {address}: connect: no route to host",
    Outcome.TLS_ERROR: "http: server gave HTTP response to HTTPS client",
    Outcome.NXDOMAIN: "dial tcp: lookup {host}: no such host",
    Outcome.DNS_FAILURE: "dial tcp: lookup {host}: server misbehaving",
}


@dataclass(frozen=True, slots=True)
class _Target:
    """The server of a webhook."""

    address: str
    """What is dialled: an address, or a name that the control plane's node resolves."""
    host: str
    """The name that the server's certificate must cover."""
    port: int
    path: str


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
        target = self._target(webhook)
        if isinstance(target, str):
            answered.set(Answer(failure=f'Post "{webhook.url}": {target}'))
            return
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = HttpRequest("POST", target.path, headers, body, tls=True)
        result = await self._network.http(target.address, target.port, request, timeout=float(webhook.timeout))
        failure = self._failure(webhook, target, result)
        if failure:
            answered.set(Answer(failure=f'Post "{webhook.url}": {failure}'))
        else:
            assert result.response is not None
            answered.set(_answer(kind, result.response.status, result.response.body))

    def _target(self, webhook: Webhook) -> _Target | str:
        """The server to call, or why there is none."""
        client = webhook.hook.get("clientConfig") or {}
        service = client.get("service")
        timeout = f"timeout={webhook.timeout}s"
        if not service:
            parts = urlsplit(str(client.get("url", "")))
            host = parts.hostname or ""
            try:
                port = parts.port or 443
            except ValueError:
                return f"dial tcp: address {parts.netloc.rpartition(':')[2]}: invalid port"
            query = f"{parts.query}&{timeout}" if parts.query else timeout
            return _Target(host, host, port, f"{parts.path or '/'}?{query}")
        found = self._store.get("services", service["namespace"], service["name"])
        if found is None:
            return f'service "{service["name"]}" not found'
        # The API server uses no DNS for a Service: it takes the address from the object.
        host = f"{service['name']}.{service['namespace']}.svc"
        address = dig(found, "spec", "clusterIP", default=host)
        return _Target(address, host, service.get("port") or 443, f"{service.get('path') or '/'}?{timeout}")

    def _failure(self, webhook: Webhook, target: _Target, result: HttpResult) -> str:
        if result.response is None:
            text = _FAILURES.get(result.outcome, "{outcome}")
            address = f"{result.address or target.host}:{target.port}"
            return text.format(address=address, host=target.host, outcome=result.outcome)
        identity = result.identity
        if identity is None:
            return "http: server gave HTTP response to HTTPS client"
        if identity.expires_at <= self._clock.now:
            return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
        if not identity.covers(target.host):
            names = ", ".join(identity.names)
            return f"tls: failed to verify certificate: x509: certificate is valid for {names}, not {target.host}"
        if not identity.trusted_by(_bundle(webhook)):
            return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        return ""


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


def _bundle(webhook: Webhook) -> bytes:
    try:
        return base64.b64decode((webhook.hook.get("clientConfig") or {}).get("caBundle") or "", validate=True)
    except binascii.Error:
        return b""
