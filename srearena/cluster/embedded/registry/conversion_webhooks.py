"""Conversion webhooks of CRDs: objects of a custom resource in another version than the one they are stored in.

A call takes time, so what needs an answer is put off (`ConversionPending`) and done again when the answer is there.
Answers belong to one request (see `with_answers`): the next one asks again, and fails where the webhook has failed
since. Outside of requests versions differ in name only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from srearena.cluster.embedded.clock import Clock, Signal
from srearena.cluster.embedded.objects import Obj, copy_of, meta
from srearena.cluster.embedded.randomness import Randomness
from srearena.cluster.embedded.registry.admission.chain import AdmissionPending
from srearena.cluster.embedded.registry.admission.webhook_rules import Webhook
from srearena.cluster.embedded.registry.admission.webhooks import Answer, Caller
from srearena.cluster.embedded.registry.errors import ApiError

_TIMEOUT_SECONDS: Final = 30
"""How long the API server waits for a conversion."""
_CONVERTED_METADATA: Final = ("labels", "annotations")
"""What a webhook may change of the metadata."""

Answers = dict[str, tuple[str, int, Signal[Answer]]]
"""By object and version: the UID of the call, the object's place in it, and what will be the answer."""
_ANSWERS: ContextVar[Answers | None] = ContextVar("conversion_answers", default=None)


@contextmanager
def with_answers(answers: Answers) -> Iterator[None]:
    """Let conversions use the answers of a request, for an attempt that does not wait."""
    mark = _ANSWERS.set(answers)
    try:
        yield
    finally:
        _ANSWERS.reset(mark)


class ConversionPending(AdmissionPending):
    """An object is being converted: wait for `ready`, then do the same again."""


@dataclass(slots=True)
class ConversionCalls:
    """What conversions need of the cluster; the caller is set when it is assembled."""

    clock: Clock
    randomness: Randomness
    caller: Caller | None = None


@dataclass(frozen=True, slots=True)
class ConversionWebhook:
    """The webhook of one definition; equal where the definition says the same."""

    client: bytes
    """The clientConfig, as JSON."""
    kind: str
    calls: ConversionCalls = field(compare=False)

    def convert(self, obj: Obj, api_version: str) -> Obj:
        return self.convert_all([obj], api_version)[0]

    def convert_all(self, objects: list[Obj], api_version: str) -> list[Obj]:
        """The objects in another version; those that are in it already stay as they are."""
        answers = _ANSWERS.get()
        if answers is None:
            return [{**obj, "apiVersion": api_version} for obj in objects]
        foreign = {_key(obj, api_version): obj for obj in objects if obj.get("apiVersion") != api_version}
        missing = {key: obj for key, obj in foreign.items() if key not in answers}
        if missing:
            uid = self.calls.randomness.uid()
            signal = self._call(uid, list(missing.values()), api_version)
            answers.update({key: (uid, place, signal) for place, key in enumerate(missing)})
        for key in foreign:
            if not answers[key][2].is_set:
                raise ConversionPending(answers[key][2])
        converted: list[Obj] = []
        for obj in objects:
            answered = answers.get(_key(obj, api_version))
            converted.append(obj if answered is None else self._result(obj, answered, api_version))
        return converted

    def _call(self, uid: str, objects: list[Obj], api_version: str) -> Signal[Answer]:
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": copy_of({"items": objects})["items"]}
        review = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}
        hook = {"clientConfig": orjson.loads(self.client), "timeoutSeconds": _TIMEOUT_SECONDS}
        webhook = Webhook("", hook)
        if self.calls.caller is None:
            unreachable: Signal[Answer] = Signal(self.calls.clock)
            unreachable.set(Answer(failure=f'Post "{webhook.url}": no route to the webhook'))
            return unreachable
        return self.calls.caller.call(webhook, review)

    def _result(self, obj: Obj, answered: tuple[str, int, Signal[Answer]], api_version: str) -> Obj:
        uid, place, signal = answered
        answer = signal.value
        if answer.failure:
            raise self._failed(obj, answer.failure)
        response = (answer.review or {}).get("response")
        if not isinstance(response, dict) or response.get("uid") != uid:
            raise self._failed(obj, "invalid response: response.uid does not match the request's")
        result = response.get("result") or {}
        if result.get("status") != "Success":
            raise self._failed(obj, result.get("message") or "invalid response.result.status")
        converted = response.get("convertedObjects") or []
        if place >= len(converted) or not isinstance(converted[place], dict):
            raise self._failed(obj, f"webhook returned {len(converted)} objects, expected more than {place}")
        if converted[place].get("apiVersion") != api_version:
            found = converted[place].get("apiVersion", "")
            why = f"webhook returned object at index {place} with version {found}, expected {api_version}"
            raise self._failed(obj, why)
        return _with_metadata(copy_of(converted[place]), obj)

    def _failed(self, obj: Obj, why: str) -> ApiError:
        return ApiError(f"conversion webhook for {obj.get('apiVersion')}, Kind={self.kind} failed: {why}", code=500)


def _with_metadata(converted: Obj, obj: Obj) -> Obj:
    """A converted object with the metadata that a webhook cannot change."""
    metadata: dict[str, Any] = {**meta(obj)}
    for key in _CONVERTED_METADATA:
        metadata.pop(key, None)
        if meta(converted).get(key):
            metadata[key] = meta(converted)[key]
    return {**converted, "metadata": metadata}


def _key(obj: Obj, api_version: str) -> str:
    """The identity of an object for a conversion: the server's own metadata differ between two attempts at a write."""
    metadata = {key: value for key, value in meta(obj).items() if key in ("name", "namespace", *_CONVERTED_METADATA)}
    text = orjson.dumps([{**obj, "metadata": metadata}, api_version], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()
