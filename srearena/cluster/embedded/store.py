"""Where the cluster's objects are: in memory, versioned, indexed and watchable.

What always holds: every write gets the next revision, which becomes the object's resourceVersion; subscribers hear of
writes in that order, before the writer goes on; a stored object is never mutated, so a reader may keep it.

Resources are named as RBAC and kubectl name them: `pods`, `deployments.apps`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import orjson

from srearena.cluster.embedded.objects import Obj, meta, name_of, namespace_of

HISTORY_LENGTH = 1_000
"""How many changes per resource a watcher can catch up with; older revisions are gone (410)."""


@dataclass(slots=True, frozen=True)
class Change:
    """One write: `old` is None for an addition; for a deletion `new` is the last state, at the deletion's revision."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: str
    old: Obj | None
    new: Obj
    revision: int


class RevisionGone(Exception):
    """The asked-for revision is older than the history that is kept."""

    def __init__(self, asked: int, oldest: int) -> None:
        super().__init__(f"revision {asked} is gone, the oldest kept is {oldest}")
        self.asked = asked
        self.oldest = oldest


Subscriber = Callable[[Change], None]
IndexKeys = Callable[[Obj], Iterable[str]]


class _Index:
    def __init__(self, keys: IndexKeys) -> None:
        self.keys = keys
        self.buckets: dict[str, dict[tuple[str, str], Obj]] = {}

    def replace(self, place: tuple[str, str], old: Obj | None, new: Obj | None) -> None:
        if old is not None:
            for key in self.keys(old):
                bucket = self.buckets.get(key)
                if bucket is not None:
                    bucket.pop(place, None)
                    if not bucket:
                        del self.buckets[key]
        if new is not None:
            for key in self.keys(new):
                self.buckets.setdefault(key, {})[place] = new


class _Shelf:
    """All objects of one resource."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Obj] = {}
        self.by_namespace: dict[str, dict[str, Obj]] = {}
        self.encoded: dict[tuple[str, str], bytes] = {}
        self.history: deque[Change] = deque(maxlen=HISTORY_LENGTH)
        self.forgotten_revision = 0
        self.subscribers: list[Subscriber] = []
        self.indexes: dict[str, _Index] = {}


class Store:
    def __init__(self) -> None:
        self.revision = 1
        self._shelves: dict[str, _Shelf] = {}
        self._subscribers: list[Subscriber] = []
        self._owned: dict[str, dict[tuple[str, str, str], Obj]] = {}

    # Reading

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        shelf = self._shelves.get(resource)
        return shelf.objects.get((namespace, name)) if shelf else None

    def objects(self, resource: str, namespace: str = "") -> list[Obj]:
        """Objects of a resource, of one namespace or of all, in the order etcd would give them."""
        shelf = self._shelves.get(resource)
        if shelf is None:
            return []
        if namespace:
            within = shelf.by_namespace.get(namespace, {})
            return [within[name] for name in sorted(within)]
        return [shelf.objects[place] for place in sorted(shelf.objects, key="/".join)]

    def count(self, resource: str) -> int:
        shelf = self._shelves.get(resource)
        return len(shelf.objects) if shelf else 0

    def resources(self) -> list[str]:
        """Every resource that has objects now."""
        return sorted(resource for resource, shelf in self._shelves.items() if shelf.objects)

    def indexed(self, resource: str, index: str, key: str) -> list[Obj]:
        """Objects under `key` of an index made with `add_index`, in name order."""
        bucket = self._shelf(resource).indexes[index].buckets.get(key, {})
        return [bucket[place] for place in sorted(bucket)]

    def owned_by(self, uid: str) -> list[tuple[str, Obj]]:
        """Every object that names `uid` as an owner, with its resource, the longest owned first."""
        return [(place[0], obj) for place, obj in self._owned.get(uid, {}).items()]

    def encoded(self, resource: str, obj: Obj) -> bytes:
        """The object as JSON; the bytes of the current version are made once and shared by all readers."""
        shelf = self._shelf(resource)
        place = (namespace_of(obj), name_of(obj))
        if shelf.objects.get(place) is not obj:
            return orjson.dumps(obj)
        found = shelf.encoded.get(place)
        if found is None:
            found = shelf.encoded[place] = orjson.dumps(obj)
        return found

    # Writing

    def put(self, resource: str, obj: Obj) -> Obj:
        """Store a new state (the store takes the dict over); returns it with its resourceVersion."""
        shelf = self._shelf(resource)
        place = (namespace_of(obj), name_of(obj))
        old = shelf.objects.get(place)
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        shelf.objects[place] = obj
        shelf.by_namespace.setdefault(place[0], {})[place[1]] = obj
        self._record(shelf, Change("MODIFIED" if old else "ADDED", resource, old, obj, self.revision), place, old, obj)
        return obj

    def remove(self, resource: str, namespace: str, name: str) -> Obj:
        """Take an object out; KeyError if it is not there."""
        shelf = self._shelf(resource)
        place = (namespace, name)
        old = shelf.objects.pop(place)
        within = shelf.by_namespace[namespace]
        del within[name]
        if not within:
            del shelf.by_namespace[namespace]
        self.revision += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.revision)}}
        self._record(shelf, Change("DELETED", resource, old, last, self.revision), place, old, None)
        return last

    def _record(self, shelf: _Shelf, change: Change, place: tuple[str, str], old: Obj | None, new: Obj | None) -> None:
        shelf.encoded.pop(place, None)
        for index in shelf.indexes.values():
            index.replace(place, old, new)
        self._update_owners((change.resource, *place), old, new)
        if len(shelf.history) == HISTORY_LENGTH:
            shelf.forgotten_revision = shelf.history[0].revision
        shelf.history.append(change)
        for subscriber in (*shelf.subscribers, *self._subscribers):
            subscriber(change)

    def _update_owners(self, place: tuple[str, str, str], old: Obj | None, new: Obj | None) -> None:
        before = meta(old).get("ownerReferences") if old else None
        after = meta(new).get("ownerReferences") if new else None
        staying = {reference["uid"] for reference in after or ()}
        for reference in before or ():
            owned = self._owned.get(reference["uid"])
            if owned is not None and reference["uid"] not in staying:
                owned.pop(place, None)
                if not owned:
                    del self._owned[reference["uid"]]
        for reference in after or ():
            if new is not None:
                self._owned.setdefault(reference["uid"], {})[place] = new

    # Watching

    def subscribe(self, subscriber: Subscriber, resource: str | None = None) -> Callable[[], None]:
        """Hear of every change from now on (of one resource, or of all); call the result to stop."""
        subscribers = self._shelf(resource).subscribers if resource else self._subscribers
        subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in subscribers:
                subscribers.remove(subscriber)

        return unsubscribe

    def changes_since(self, resource: str, revision: int) -> list[Change]:
        """What happened to a resource after `revision`; RevisionGone when that is too long ago to know."""
        shelf = self._shelf(resource)
        if revision < shelf.forgotten_revision:
            raise RevisionGone(revision, shelf.forgotten_revision)
        return [change for change in shelf.history if change.revision > revision]

    def add_index(self, resource: str, name: str, keys: IndexKeys) -> None:
        """Keep objects of a resource findable by the keys that `keys` gives for each."""
        shelf = self._shelf(resource)
        index = shelf.indexes[name] = _Index(keys)
        for place, obj in shelf.objects.items():
            index.replace(place, None, obj)

    def _shelf(self, resource: str) -> _Shelf:
        found = self._shelves.get(resource)
        if found is None:
            found = self._shelves[resource] = _Shelf()
        return found
