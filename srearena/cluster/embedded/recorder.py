"""Core events as components write them: repeated events are counted, similar ones aggregated, and bursts limited.

The rules are client-go's correlator: the same event again raises `count` and moves `lastTimestamp`; more than ten
different messages for one reason within ten minutes are aggregated into one "(combined from similar events)"; each
source is limited per object to a burst of 25, then one event every five minutes. Events expire after an hour.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, name_of, namespace_of, reference_to, uid_of
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.identity import User

if TYPE_CHECKING:
    from srearena.cluster.embedded.world import World

EVENT_LIFETIME = 3600.0
_BURST = 25.0
_REFILL_PER_SECOND = 1 / 300
_SIMILAR_LIMIT = 10
_SIMILAR_INTERVAL = 600.0
_MESSAGE_LIMIT = 1024


@dataclass(slots=True)
class _Bucket:
    """The token bucket of one source about one object."""

    tokens: float
    filled_at: float


@dataclass(slots=True)
class _Similar:
    """The recent messages of one reason."""

    messages: set[str] = field(default_factory=set)
    last_at: float = 0.0


class Recorder:
    """Records events of one component (`kubelet`, `deployment-controller` ...)."""

    def __init__(self, world: World, component: str, user: User, host: str = "", field_manager: str = "") -> None:
        self._world = world
        self._component = component
        self._host = host
        self._client = world.client(user, field_manager or component)
        self._names: dict[tuple[str, ...], str] = {}
        self._buckets: dict[str, _Bucket] = {}
        self._similar: dict[tuple[str, ...], _Similar] = {}

    def event(self, about: Obj, kind: str, reason: str, message: str, *, field_path: str = "") -> None:
        """Record an event about an object; `kind` is Normal or Warning."""
        message = message if len(message) <= _MESSAGE_LIMIT else message[: _MESSAGE_LIMIT - 3] + "..."
        if not self._may_speak(uid_of(about) or name_of(about)):
            return
        identity = (uid_of(about), name_of(about), field_path, kind, reason)
        folded = self._folded(identity, message)
        if folded:
            message = f"(combined from similar events): {message}"
        key = (*identity, "" if folded else message)
        if not self._count_again(about, key, message):
            self._write_new(about, key, kind, reason, message, field_path)

    def _may_speak(self, subject: str) -> bool:
        now = self._world.clock.now
        bucket = self._buckets.get(subject)
        if bucket is None:
            bucket = self._buckets[subject] = _Bucket(_BURST, now)
        bucket.tokens = min(_BURST, bucket.tokens + (now - bucket.filled_at) * _REFILL_PER_SECOND)
        bucket.filled_at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _folded(self, identity: tuple[str, ...], message: str) -> bool:
        now = self._world.clock.now
        similar = self._similar.setdefault(identity, _Similar())
        if now - similar.last_at > _SIMILAR_INTERVAL:
            similar.messages.clear()
        similar.last_at = now
        similar.messages.add(message)
        if len(similar.messages) < _SIMILAR_LIMIT:
            return False
        similar.messages.remove(message)
        return True

    def _count_again(self, about: Obj, key: tuple[str, ...], message: str) -> bool:
        name = self._names.get(key)
        if name is None:
            return False
        now = self._world.clock.timestamp()

        def change(event: Obj) -> None:
            event["count"] = event.get("count", 1) + 1
            event["lastTimestamp"] = now
            event["message"] = message

        return self._client.modify("events", namespace_of(about) or "default", name, change) is not None

    def _write_new(self, about: Obj, key: tuple[str, ...], kind: str, reason: str, message: str, path: str) -> None:
        now = self._world.clock.timestamp()
        namespace = namespace_of(about) or "default"
        reference = reference_to(about)
        if path:
            reference["fieldPath"] = path
        name = f"{name_of(about)}.{int(self._world.clock.now * 1e9) + self._world.next_serial():x}"
        source = {"component": self._component, **({"host": self._host} if self._host else {})}
        event: Obj = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": reference,
            "reason": reason,
            "message": message,
            "source": source,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "type": kind,
            "eventTime": None,
            "reportingComponent": self._component,
            "reportingInstance": self._host,
        }
        try:
            self._client.create("events", event)
        except ApiError:
            return  # the namespace is being deleted
        self._names[key] = name
        self._world.clock.after(EVENT_LIFETIME, self._expire, namespace, name, key)

    def _expire(self, namespace: str, name: str, key: tuple[str, ...]) -> None:
        event = self._client.get("events", namespace, name)
        if event is None:
            self._names.pop(key, None)
            return
        age = self._world.clock.now - parse_time(event.get("lastTimestamp") or event["metadata"]["creationTimestamp"])
        if age < EVENT_LIFETIME - 1:
            self._world.clock.after(EVENT_LIFETIME - age, self._expire, namespace, name, key)
            return
        self._names.pop(key, None)
        self._client.delete("events", event, expired=True)
