"""Events as the scheduler writes them: through events.k8s.io, where repetitions become a series.

Two events are equal when they have the same reason and the same version of an object, regardless of their note. The
second starts a series and is written at once; further ones are only counted, and the count is written when the series
is refreshed every half hour or ends, six minutes after its last event.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING

from srearena.cluster.embedded.durations import parse_time
from srearena.cluster.embedded.objects import Obj, dig, meta, name_of, namespace_of, reference_to, uid_of
from srearena.cluster.embedded.recorder import EVENT_LIFETIME
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.identity import User

if TYPE_CHECKING:
    from srearena.cluster.embedded.world import World

_SERIES_LASTS = 360.0
_REFRESHES = 5
"""A series is refreshed at every n-th check for finished series (client-go: 30 minutes at one check per 6 minutes)."""
_NOTE_LIMIT = 1024

_Key = tuple[str, ...]


@dataclass(slots=True)
class _Series:
    """An event that may be repeated."""

    namespace: str
    name: str
    last: float
    last_stamp: str
    count: int = 1


class SeriesRecorder:
    def __init__(self, world: World, controller: str, instance: str, user: User, field_manager: str) -> None:
        self._world = world
        self._controller = controller
        self._instance = instance
        self._client = world.client(user, field_manager)
        self._series: dict[_Key, _Series] = {}
        self._started = world.clock.now

    def event(self, about: Obj, kind: str, reason: str, action: str, note: str, *, related: Obj | None = None) -> None:
        now, stamp = self._world.clock.now, self._world.clock.micro_timestamp()
        key = (uid_of(about), meta(about).get("resourceVersion", ""), kind, reason, action, uid_of(related or {}))
        known = self._series.get(key)
        if known is not None:
            known.count, known.last, known.last_stamp = known.count + 1, now, stamp
            if known.count == 2:
                self._write_series(known)
            return
        namespace = namespace_of(about) or "default"
        name = f"{name_of(about)}.{int(now * 1e9) + self._world.next_serial():x}"
        event: Obj = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": reference_to(about),
            "reason": reason,
            "message": note if len(note) <= _NOTE_LIMIT else note[: _NOTE_LIMIT - 4] + " ...",
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "type": kind,
            "eventTime": stamp,
            "action": action,
            "reportingComponent": self._controller,
            "reportingInstance": self._instance,
        }
        if related is not None:
            event["related"] = reference_to(related)
        try:
            self._client.create("events", event)
        except ApiError:
            return  # the namespace is being deleted
        self._series[key] = _Series(namespace, name, now, stamp)
        self._look_later(key)
        self._world.clock.after(EVENT_LIFETIME, self._expire, namespace, name)

    def _look_later(self, key: _Key) -> None:
        looks = floor((self._world.clock.now - self._started) / _SERIES_LASTS) + 1
        self._world.clock.at(self._started + looks * _SERIES_LASTS, self._look, key, looks % _REFRESHES == 0)

    def _look(self, key: _Key, refreshing: bool) -> None:
        known = self._series[key]
        ended = known.last < self._world.clock.now - _SERIES_LASTS
        if known.count > 1 and (ended or refreshing):
            self._write_series(known)
        if ended:
            del self._series[key]
        else:
            self._look_later(key)

    def _write_series(self, known: _Series) -> None:
        series = {"count": known.count, "lastObservedTime": known.last_stamp}
        self._client.modify("events", known.namespace, known.name, lambda event: event.update(series=series))

    def _expire(self, namespace: str, name: str) -> None:
        event = self._client.get("events", namespace, name)
        if event is None:
            return
        age = self._world.clock.now - parse_time(dig(event, "series", "lastObservedTime") or event["eventTime"])
        if age < EVENT_LIFETIME - 1:
            self._world.clock.after(EVENT_LIFETIME - age, self._expire, namespace, name)
        else:
            self._client.delete("events", event, expired=True)
