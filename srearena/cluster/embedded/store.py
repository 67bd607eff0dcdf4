"""The object store of a cluster: in memory, versioned, indexed and watchable.

What always holds: every write gets the next revision, which becomes the object's resourceVersion; subscribers are
notified of writes in that order, before the write returns; a stored object is never mutated, so a reader may keep it.

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
"""The number of changes kept per resource for watches; older revisions are compacted (410)."""


@dataclass(slots=True, frozen=True)
class Change:
    """One write: `old` is None for an addition; for a deletion `new` is the last state, at the deletion's revision."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    resource: str
    old: Obj | None
    new: Obj
    revision: int


class RevisionGone(Exception):
    """The requested revision is older than the retained history."""

    def __init__(self, requested: int, oldest: int) -> None:
        super().__init__(f"revision {requested} is gone, the oldest kept is {oldest}")
        self.requested = requested
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


class _ResourceTable:
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
        self.compacted = 0
        """Lists of states before this revision cannot be had any more."""
        self._tables: dict[str, _ResourceTable] = {}
        self._subscribers: list[Subscriber] = []
        self._owned: dict[str, dict[tuple[str, str, str], Obj]] = {}

    # Reading

    def get(self, resource: str, namespace: str, name: str) -> Obj | None:
        table = self._tables.get(resource)
        return table.objects.get((namespace, name)) if table else None

    def objects(self, resource: str, namespace: str = "") -> list[Obj]:
        """Objects of a resource, of one namespace or of all, in the order etcd would give them."""
        table = self._tables.get(resource)
        if table is None:
            return []
        if namespace:
            within = table.by_namespace.get(namespace, {})
            return [within[name] for name in sorted(within)]
        return [table.objects[place] for place in sorted(table.objects, key="/".join)]

    def count(self, resource: str) -> int:
        table = self._tables.get(resource)
        return len(table.objects) if table else 0

    def resources(self) -> list[str]:
        """Every resource that has objects now."""
        return sorted(resource for resource, table in self._tables.items() if table.objects)

    def indexed(self, resource: str, index: str, key: str) -> list[Obj]:
        """Objects under `key` of an index made with `add_index`, in name order."""
        bucket = self._table(resource).indexes[index].buckets.get(key, {})
        return [bucket[place] for place in sorted(bucket)]

    def owned_by(self, uid: str) -> list[tuple[str, Obj]]:
        """Every object that names `uid` as an owner, with its resource, the longest owned first."""
        return [(place[0], obj) for place, obj in self._owned.get(uid, {}).items()]

    def encoded(self, resource: str, obj: Obj) -> bytes:
        """The object as JSON; the bytes of the current version are made once and shared by all readers."""
        table = self._table(resource)
        place = (namespace_of(obj), name_of(obj))
        if table.objects.get(place) is not obj:
            return orjson.dumps(obj)
        found = table.encoded.get(place)
        if found is None:
            found = table.encoded[place] = orjson.dumps(obj)
        return found

    # Writing

    def put(self, resource: str, obj: Obj) -> Obj:
        """Store a new state; returns it with its resourceVersion. The caller must not use the dict afterwards."""
        table = self._table(resource)
        place = (namespace_of(obj), name_of(obj))
        old = table.objects.get(place)
        self.revision += 1
        obj["metadata"]["resourceVersion"] = str(self.revision)
        table.objects[place] = obj
        table.by_namespace.setdefault(place[0], {})[place[1]] = obj
        self._record(table, Change("MODIFIED" if old else "ADDED", resource, old, obj, self.revision), place, old, obj)
        return obj

    def remove(self, resource: str, namespace: str, name: str) -> Obj:
        """Remove an object; KeyError if it does not exist."""
        table = self._table(resource)
        place = (namespace, name)
        old = table.objects.pop(place)
        within = table.by_namespace[namespace]
        del within[name]
        if not within:
            del table.by_namespace[namespace]
        self.revision += 1
        last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.revision)}}
        self._record(table, Change("DELETED", resource, old, last, self.revision), place, old, None)
        return last

    def _record(
        self, table: _ResourceTable, change: Change, place: tuple[str, str], old: Obj | None, new: Obj | None
    ) -> None:
        table.encoded.pop(place, None)
        for index in table.indexes.values():
            index.replace(place, old, new)
        self._update_owners((change.resource, *place), old, new)
        if len(table.history) == HISTORY_LENGTH:
            table.forgotten_revision = table.history[0].revision
        table.history.append(change)
        for subscriber in (*table.subscribers, *self._subscribers):
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
        """Call `subscriber` with every future change (of one resource, or of all); call the result to stop."""
        subscribers = self._table(resource).subscribers if resource else self._subscribers
        subscribers.append(subscriber)

        def unsubscribe() -> None:
            if subscriber in subscribers:
                subscribers.remove(subscriber)

        return unsubscribe

    def changes_since(self, resource: str, revision: int) -> list[Change]:
        """The changes of a resource after `revision`; RevisionGone where they are no longer retained."""
        table = self._table(resource)
        if revision < table.forgotten_revision:
            raise RevisionGone(revision, table.forgotten_revision)
        return [change for change in table.history if change.revision > revision]

    def add_index(self, resource: str, name: str, keys: IndexKeys) -> None:
        """Index the objects of a resource by the keys that `keys` returns for each."""
        table = self._table(resource)
        index = table.indexes[name] = _Index(keys)
        for place, obj in table.objects.items():
            index.replace(place, None, obj)

    def _table(self, resource: str) -> _ResourceTable:
        found = self._tables.get(resource)
        if found is None:
            found = self._tables[resource] = _ResourceTable()
        return found
