"""Calling admission webhooks: a Service over the simulated network, a URL over real HTTPS.

A Service is dialled from the control plane as any program would, so a webhook without endpoints, behind a policy or
with a certificate from the wrong authority fails as in a real cluster, after the same virtual time. A URL is for a
webhook server outside the simulation, on this machine: only loopback addresses are called, all others are
unreachable.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ipaddress
import ssl
from concurrent.futures import Executor
from http.client import HTTPException, HTTPSConnection
from urllib.parse import urlsplit

import orjson

from srearena.cluster.embedded.clock import Clock, Signal
from srearena.cluster.embedded.machine.networking.http_message import HttpRequest
from srearena.cluster.embedded.machine.networking.reachability import HttpResult, NetworkFacade, Outcome
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.registry.admission.webhook_rules import Webhook
from srearena.cluster.embedded.registry.admission.webhooks import Answer
from srearena.cluster.embedded.store import Store

_ANSWER_LIMIT = 16 * 1024 * 1024
_FAILURES = {
    Outcome.REFUSED: "dial tcp {address}: connect: connection refused",
    Outcome.TIMEOUT: "context deadline exceeded",
    Outcome.RESET: "read tcp {address}: read: connection reset by peer",
    Outcome.NO_ROUTE: "dial tcp {address}: connect: no route to host",
    Outcome.TLS_ERROR: "http: server gave HTTP response to HTTPS client",
}


class WebhookCalls:
    def __init__(self, clock: Clock, store: Store, network: NetworkFacade, executor: Executor | None = None) -> None:
        self._clock = clock
        self._store = store
        self._network = network
        self._executor = executor

    def call(self, webhook: Webhook, review: Obj) -> Signal[Answer]:
        answered: Signal[Answer] = Signal(self._clock)
        body = orjson.dumps(review)
        if (webhook.hook.get("clientConfig") or {}).get("service"):
            self._clock.spawn(self._call_service(webhook, body, answered))
        else:
            self._call_url(webhook, body, answered)
        return answered

    # A Service, inside the simulation

    async def _call_service(self, webhook: Webhook, body: bytes, answered: Signal[Answer]) -> None:
        service = webhook.hook["clientConfig"]["service"]
        target = f"{service.get('path') or '/'}?timeout={webhook.timeout}s"
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        request = HttpRequest("POST", target, headers, body, tls=True)
        found = self._store.get("services", service["namespace"], service["name"])
        if found is None:
            answered.set(Answer(failure=f'Post "{webhook.url}": service "{service["name"]}" not found'))
            return
        # The API server uses no DNS: it takes the Service's address from the object.
        host = f"{service['name']}.{service['namespace']}.svc"
        address = dig(found, "spec", "clusterIP", default=host)
        result = await self._network.http(address, service.get("port") or 443, request, timeout=float(webhook.timeout))
        failure = self._failure(webhook, host, result)
        if failure:
            answered.set(Answer(failure=f'Post "{webhook.url}": {failure}'))
        else:
            assert result.response is not None
            answered.set(_answer(webhook, result.response.status, result.response.body))

    def _failure(self, webhook: Webhook, host: str, result: HttpResult) -> str:
        if result.response is None:
            text = _FAILURES.get(result.outcome, "{outcome}")
            port = webhook.hook["clientConfig"]["service"].get("port") or 443
            return text.format(address=f"{result.address or host}:{port}", outcome=result.outcome)
        identity = result.identity
        if identity is None:
            return "http: server gave HTTP response to HTTPS client"
        if identity.expires_at <= self._clock.now:
            return "tls: failed to verify certificate: x509: certificate has expired or is not yet valid"
        if not identity.covers(host):
            names = ", ".join(identity.names)
            return f"tls: failed to verify certificate: x509: certificate is valid for {names}, not {host}"
        if not identity.trusted_by(_bundle(webhook)):
            return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        return ""

    # A URL, outside of it

    def _call_url(self, webhook: Webhook, body: bytes, answered: Signal[Answer]) -> None:
        def settle(done: asyncio.Future[Answer]) -> None:
            self._clock.awaited -= 1
            answered.set(done.result())

        self._clock.awaited += 1
        asyncio.get_running_loop().run_in_executor(self._executor, _post, webhook, body).add_done_callback(settle)


def _post(webhook: Webhook, body: bytes) -> Answer:
    parts = urlsplit(webhook.url)
    host = parts.hostname or ""
    if parts.scheme != "https" or not _is_loopback(host):
        return Answer(failure=f'Post "{webhook.url}": dial tcp: lookup {host}: no such host')
    try:
        context = ssl.create_default_context()
        bundle = _bundle(webhook)
        if bundle:
            context = ssl.create_default_context(cadata=bundle.decode("ascii", "replace"))
        connection = HTTPSConnection(host, parts.port or 443, timeout=webhook.timeout, context=context)
        try:
            connection.request("POST", f"{parts.path or '/'}?{parts.query}", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return _answer(webhook, response.status, response.read(_ANSWER_LIMIT))
        finally:
            connection.close()
    except ssl.SSLCertVerificationError:
        cause = "tls: failed to verify certificate: x509: certificate signed by unknown authority"
        return Answer(failure=f'Post "{webhook.url}": {cause}')
    except TimeoutError:
        return Answer(failure=f'Post "{webhook.url}": context deadline exceeded')
    except ConnectionRefusedError:
        address = f"{host}:{parts.port or 443}"
        return Answer(failure=f'Post "{webhook.url}": dial tcp {address}: connect: connection refused')
    except (OSError, HTTPException, ValueError) as problem:
        return Answer(failure=f'Post "{webhook.url}": {problem or type(problem).__name__}')


def _answer(webhook: Webhook, status: int, body: bytes) -> Answer:
    if status != 200:
        text = body[:200].decode(errors="replace").strip()
        return Answer(failure=text or f"the server responded with status {status}")
    try:
        review = orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        return Answer(failure=f"couldn't get version/kind; json parse error: {problem}")
    if not isinstance(review, dict) or review.get("kind") != "AdmissionReview":
        return Answer(failure="expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview")
    return Answer(review)


def _bundle(webhook: Webhook) -> bytes:
    try:
        return base64.b64decode((webhook.hook.get("clientConfig") or {}).get("caBundle") or "", validate=True)
    except binascii.Error:
        return b""


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
