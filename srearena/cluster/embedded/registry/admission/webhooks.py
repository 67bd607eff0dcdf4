"""Mutating and validating admission webhooks.

The call itself is made elsewhere (`Caller`): over the simulated network to a Service, or over real HTTPS to a URL.
It takes time, so a write that needs an answer is put off (`AdmissionPending`) and made again when the answer is
there. Answers are kept for exactly that: they belong to one write, recognised by its content, and are dropped when
it went through or after a moment of disuse.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import orjson

from srearena.cluster.embedded.cel.errors import EvaluationError
from srearena.cluster.embedded.clock import Clock, Signal
from srearena.cluster.embedded.component_logs import API_SERVER, ComponentLogs
from srearena.cluster.embedded.go_text import quoted
from srearena.cluster.embedded.objects import Obj, copy_of
from srearena.cluster.embedded.randomness import Randomness
from srearena.cluster.embedded.registry.admission.chain import AdmissionPending, Attributes, Plugin
from srearena.cluster.embedded.registry.admission.conditions import Conditions
from srearena.cluster.embedded.registry.admission.webhook_rules import MUTATING, VALIDATING, Webhook, matching
from srearena.cluster.embedded.registry.errors import ApiError, InternalError
from srearena.cluster.embedded.registry.patch.json_patch import apply_json_patch
from srearena.cluster.embedded.store import Store

_KEPT_SECONDS = 60.0
_REQUEST_SECONDS = 34.0
"""How long the API server works on one write, whatever the webhooks' own timeouts add up to."""
_TOO_LATE = "Timeout: request did not complete within requested timeout - context deadline exceeded"
# Drawn anew each time a write is made, so it must not tell two attempts apart.
_RANDOM_TOKEN_VOLUME = re.compile(rb"kube-api-access-[a-z0-9]{5}")


@dataclass(slots=True, frozen=True)
class Answer:
    """What came back: the body of an AdmissionReview, or why there is none."""

    review: Obj | None = None
    failure: str = ""


class Caller(Protocol):
    """Calls a webhook and sets the signal when an answer, or none, is certain."""

    def call(self, webhook: Webhook, review: Obj) -> Signal[Answer]: ...


@dataclass(slots=True)
class _Conversation:
    """The answers one write has got so far."""

    used_at: float
    began_at: float
    answers: dict[tuple[str, str], tuple[str, Signal[Answer]]] = field(default_factory=dict)
    """By webhook: the UID of the request and what will be the answer."""
    failed: set[tuple[str, str]] = field(default_factory=set)
    """Webhooks whose failure was logged."""


class Webhooks(Plugin):
    name = "MutatingAdmissionWebhook"

    def __init__(self, store: Store, clock: Clock, randomness: Randomness, logs: ComponentLogs) -> None:
        self.conditions = Conditions()
        self._store = store
        self._logs = logs
        self._clock = clock
        self._randomness = randomness
        self._conversations: dict[str, _Conversation] = {}
        self.caller: Caller | None = None

    def admit(self, attributes: Attributes) -> None:
        if not self._store.count(MUTATING) and not self._store.count(VALIDATING):
            return
        attributes.memo["webhooks"] = _fingerprint(attributes)
        for webhook in self._concerned(MUTATING, attributes):
            review = self._ask(webhook, attributes, mutating=True)
            if review is not None:
                self._change(webhook, attributes, review)

    def validate(self, attributes: Attributes) -> None:
        if "webhooks" not in attributes.memo:
            return
        for webhook in self._concerned(VALIDATING, attributes):
            self._ask(webhook, attributes, mutating=False)
        self._conversations.pop(attributes.memo["webhooks"], None)

    def _concerned(self, resource: str, attributes: Attributes) -> Iterator[Webhook]:
        """The webhooks to call: those whose rules and match conditions the write meets."""
        for webhook in matching(self._store, resource, attributes):
            try:
                if self.conditions.match(webhook.hook.get("matchConditions") or [], attributes):
                    yield webhook
            except EvaluationError as problem:
                if not webhook.ignores_failure:
                    raise attributes.refusal(str(problem)) from None

    def _ask(self, webhook: Webhook, attributes: Attributes, *, mutating: bool) -> Obj | None:
        """The webhook's response once it is there and allows the write; None where its failure is ignored."""
        if attributes.dry_run and webhook.hook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            text = f"admission webhook {quoted(webhook.name)} does not support dry run"
            raise ApiError(text, code=400, reason="BadRequest")
        conversation = self._conversation(attributes)
        key = (webhook.configuration, webhook.name)
        if key not in conversation.answers:
            review = self._review(attributes)
            conversation.answers[key] = (review["request"]["uid"], self._call(webhook, review))
        uid, signal = conversation.answers[key]
        left = conversation.began_at + _REQUEST_SECONDS - self._clock.now
        if left <= 0:
            del self._conversations[attributes.memo["webhooks"]]
            raise ApiError(_TOO_LATE, code=504, reason="Timeout")
        if not signal.is_set:
            raise AdmissionPending(self._within(signal, left))
        complaint = _complaint(signal.value, uid, mutating=mutating)
        if complaint and key not in conversation.failed:
            conversation.failed.add(key)
            self._log_failure(webhook, complaint, mutating=mutating)
        try:
            return self._verdict(webhook, attributes, signal.value, complaint)
        except ApiError:
            # The write ends here; the same write made again is another one, and is asked about anew.
            del self._conversations[attributes.memo["webhooks"]]
            raise

    def _log_failure(self, webhook: Webhook, complaint: str, *, mutating: bool) -> None:
        text = f"failed calling webhook {quoted(webhook.name)}: {complaint}"
        closed, opened, handled = ("225", "210", "214") if mutating else ("217", "205", "213")
        way, line = ("open", opened) if webhook.ignores_failure else ("closed", closed)
        message = f"Failed calling webhook, failing {way} {webhook.name}: {text}"
        self._logs.write(API_SERVER, "W", f"dispatcher.go:{line}", message)
        if webhook.ignores_failure:
            error = f'"Unhandled Error" err={quoted(text)} logger="UnhandledError"'
            self._logs.write(API_SERVER, "E", f"dispatcher.go:{handled}", error)

    def _conversation(self, attributes: Attributes) -> _Conversation:
        now = self._clock.now
        for key, conversation in list(self._conversations.items()):
            if now - conversation.used_at > _KEPT_SECONDS:
                del self._conversations[key]
        found = self._conversations.setdefault(attributes.memo["webhooks"], _Conversation(now, now))
        found.used_at = now
        return found

    def _within(self, signal: Signal[Answer], seconds: float) -> Signal[None]:
        """Set when the other one is, and after so long at the latest."""
        either: Signal[None] = Signal(self._clock)
        late = self._clock.after(seconds, either.set, None)

        def in_time() -> None:
            late.cancel()
            either.set(None)

        signal.then(in_time)
        return either

    def _call(self, webhook: Webhook, review: Obj) -> Signal[Answer]:
        if self.caller is None:
            unreachable: Signal[Answer] = Signal(self._clock)
            unreachable.set(Answer(failure=f'Post "{webhook.url}": no route to the webhook'))
            return unreachable
        return self.caller.call(webhook, review)

    def _review(self, attributes: Attributes) -> Obj:
        row = attributes.row
        gvk = {"group": row.group, "version": row.version, "kind": row.kind}
        if attributes.operation == "CONNECT" and attributes.obj is not None:
            gvk = {"group": "", "version": "v1", "kind": attributes.obj["kind"]}
        gvr = {"group": row.group, "version": row.version, "resource": row.plural}
        request: Obj = {
            "uid": self._randomness.uid(),
            "kind": gvk,
            "resource": gvr,
            "requestKind": gvk,
            "requestResource": gvr,
            "operation": attributes.operation,
            "userInfo": attributes.user.info(),
            "object": copy_of(attributes.obj) if attributes.obj is not None else None,
            "oldObject": attributes.old,
            "dryRun": attributes.dry_run,
            "options": {**attributes.options, **_OPTIONS_KIND.get(attributes.operation, {})} or None,
        }
        if attributes.name:
            request["name"] = attributes.name
        if attributes.namespace:
            request["namespace"] = attributes.namespace
        if attributes.subresource:
            request["subResource"] = request["requestSubResource"] = attributes.subresource
        return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}

    def _verdict(self, webhook: Webhook, attributes: Attributes, answer: Answer, complaint: str) -> Obj | None:
        if complaint:
            if webhook.ignores_failure:
                return None
            raise InternalError(f"failed calling webhook {quoted(webhook.name)}: {complaint}")
        assert answer.review is not None
        response: Obj = answer.review["response"]
        attributes.warnings.extend(str(text) for text in response.get("warnings") or ())
        if not response.get("allowed"):
            raise _refusal(webhook.name, response.get("status") or {})
        return response

    def _change(self, webhook: Webhook, attributes: Attributes, response: Obj) -> None:
        patch = response.get("patch")
        if not patch or attributes.obj is None:
            return
        try:
            operations = orjson.loads(base64.b64decode(patch, validate=True))
            attributes.obj = apply_json_patch(attributes.obj, operations)
        except (binascii.Error, orjson.JSONDecodeError, ApiError) as problem:
            if webhook.ignores_failure:
                return
            raise InternalError(
                f"failed calling webhook {quoted(webhook.name)}: "
                f"received undecodable patch in webhook response: {problem}"
            ) from problem


_OPTIONS_KIND: dict[str, Obj] = {
    operation: {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    for operation, kind in (
        ("CREATE", "CreateOptions"),
        ("UPDATE", "UpdateOptions"),
        ("DELETE", "DeleteOptions"),
        ("CONNECT", "PodExecOptions"),
    )
}


def _complaint(answer: Answer, uid: str, *, mutating: bool) -> str:
    """What is wrong with an answer: there is none, or it is not one to the question."""
    if answer.failure:
        return f"failed to call webhook: {answer.failure}"
    review = answer.review or {}
    response = review.get("response")
    problem = ""
    if not isinstance(response, dict):
        problem = "webhook response was absent"
    elif review.get("apiVersion") == "admission.k8s.io/v1":
        patch, kind = response.get("patch"), response.get("patchType")
        if response.get("uid", "") != uid:
            problem = f"expected response.uid={quoted(uid)}, got {quoted(str(response.get('uid', '')))}"
        elif not mutating and patch:
            problem = "validating webhook may not return response.patch"
        elif not mutating and kind is not None:
            problem = "validating webhook may not return response.patchType"
        elif patch and kind is None:
            problem = "webhook returned response.patch but not response.patchType"
        elif not patch and kind is not None:
            problem = "webhook returned response.patchType but not response.patch"
    return f"received invalid webhook response: {problem}" if problem else ""


def _fingerprint(attributes: Attributes) -> str:
    # The times in managedFields are those of an attempt, not of the write.
    obj = attributes.obj
    if obj is not None and "managedFields" in (obj.get("metadata") or {}):
        obj = {**obj, "metadata": {key: value for key, value in obj["metadata"].items() if key != "managedFields"}}
    what: list[Any] = [
        attributes.operation,
        attributes.row.group_resource,
        attributes.namespace,
        attributes.name,
        attributes.subresource,
        attributes.user.name,
        attributes.dry_run,
        obj,
        attributes.old,
    ]
    text = _RANDOM_TOKEN_VOLUME.sub(b"", orjson.dumps(what, option=orjson.OPT_SORT_KEYS))
    return hashlib.sha256(text).hexdigest()


def _refusal(name: str, status: Obj) -> ApiError:
    denied = f"admission webhook {quoted(name)} denied the request"
    explanation = status.get("message") or status.get("reason")
    message = f"{denied}: {explanation}" if explanation else f"{denied} without explanation"
    code = status.get("code")
    return ApiError(
        message,
        details=status.get("details") if isinstance(status.get("details"), dict) else None,
        code=code if isinstance(code, int) and code >= 400 else 400,
        reason=str(status.get("reason") or ""),
    )
