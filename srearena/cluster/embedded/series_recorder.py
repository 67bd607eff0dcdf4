"""Events as the scheduler writes them: through events.k8s.io, where repetitions become a series.

The same event again within six minutes counts up its series instead of making a new object.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from srearena.cluster.embedded.objects import Obj, name_of, namespace_of, reference_to, uid_of
from srearena.cluster.embedded.recorder import EVENT_LIFETIME
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.identity import User

if TYPE_CHECKING:
    from srearena.cluster.embedded.world import World

_SERIES_LASTS = 360.0
_NOTE_LIMIT = 1024


class SeriesRecorder:
    def __init__(self, world: World, controller: str, instance: str, user: User, field_manager: str) -> None:
        self._world = world
        self._controller = controller
        self._instance = instance
        self._client = world.client(user, field_manager)
        self._last: dict[tuple[str, ...], tuple[str, float]] = {}

    def event(self, about: Obj, kind: str, reason: str, action: str, note: str, *, related: Obj | None = None) -> None:
        note = note[:_NOTE_LIMIT]
        now = self._world.clock.now
        key = (uid_of(about), kind, reason, action, note)
        known = self._last.get(key)
        namespace = namespace_of(about) or "default"
        if known is not None and now - known[1] < _SERIES_LASTS and self._count_again(namespace, known[0]):
            self._last[key] = (known[0], now)
            return
        name = f"{name_of(about)}.{int(now * 1e9) + self._world.next_serial():x}"
        event: Obj = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": reference_to(about),
            "reason": reason,
            "message": note,
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "type": kind,
            "eventTime": self._world.clock.micro_timestamp(),
            "action": action,
            "reportingComponent": self._controller,
            "reportingInstance": self._instance,
        }
        if related is not None:
            event["related"] = reference_to(related)
        try:
            self._client.create("events", event)
        except ApiError:
            return  # the namespace is going away: nobody will read it
        self._last[key] = (name, now)
        self._world.clock.after(EVENT_LIFETIME, self._expire, namespace, name, key)

    def _count_again(self, namespace: str, name: str) -> bool:
        seen = self._world.clock.micro_timestamp()

        def change(event: Obj) -> None:
            count = (event.get("series") or {}).get("count", 1) + 1
            event["series"] = {"count": count, "lastObservedTime": seen}

        return self._client.modify("events", namespace, name, change) is not None

    def _expire(self, namespace: str, name: str, key: tuple[str, ...]) -> None:
        known = self._last.get(key)
        if known is not None and known[0] == name:
            age = self._world.clock.now - known[1]
            if age < EVENT_LIFETIME - 1:
                self._world.clock.after(EVENT_LIFETIME - age, self._expire, namespace, name, key)
                return
            del self._last[key]
        event = self._client.get("events", namespace, name)
        if event is not None:
            self._client.delete("events", event)
