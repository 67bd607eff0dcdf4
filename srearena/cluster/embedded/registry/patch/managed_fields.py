"""Who owns which fields: the managedFields of an object, and how a write that is no apply changes them.

The manager that changes a field with a create, update or patch becomes its owner and others lose it; a removed
field has no owner. A write that changes nothing changes no owner and no timestamp, and costs one comparison.
Entries keep their wire form throughout. Entries of another version of the same kind are compared as they are:
the field names of the versions served here agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from srearena.cluster.embedded.objects import Obj, meta, uid_of
from srearena.cluster.embedded.registry.patch import field_sets
from srearena.cluster.embedded.registry.patch.field_sets import FieldSet
from srearena.cluster.embedded.registry.patch.typed_values import UnkeyedItem, compare
from srearena.cluster.embedded.registry.schema import Schema
from srearena.cluster.embedded.registry.wire_forms import zero_of

MAX_UPDATE_MANAGERS: Final = 10
_ANCIENT: Final = "ancient-changes"
_OPERATIONS: Final = ("Apply", "Update")
# Fields that the server writes itself or that identify the object: without an owner.
_SERVERS_METADATA: Final = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
)
_STRIPPED: Final[FieldSet] = {
    "f:apiVersion": {},
    "f:kind": {},
    "f:metadata": {field_sets.SELF: {}, **{f"f:{name}": {} for name in _SERVERS_METADATA}},
}

Identity = tuple[str, str, str, str]
"""Operation, manager, apiVersion (empty for Apply, where it may move on) and subresource."""


class Owner:
    """One manager and what it owns."""

    __slots__ = ("api_version", "fields", "manager", "operation", "subresource", "time")

    def __init__(
        self, manager: str, operation: str, api_version: str, subresource: str, time: str, fields: FieldSet
    ) -> None:
        self.manager = manager
        self.operation = operation
        self.api_version = api_version
        self.subresource = subresource
        self.time = time
        self.fields = fields

    @property
    def identity(self) -> Identity:
        version = "" if self.operation == "Apply" else self.api_version
        return (self.operation, self.manager, version, self.subresource)

    def entry(self) -> Obj:
        entry: Obj = {"manager": self.manager, "operation": self.operation, "apiVersion": self.api_version}
        if self.time:
            entry["time"] = self.time
        entry["fieldsType"] = "FieldsV1"
        entry["fieldsV1"] = self.fields
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


Owners = dict[Identity, Owner]


def decode(entries: Any, *, trusted: bool) -> Owners:
    """The owners that managedFields lists. Raises ValueError where it is malformed; what we wrote needs no check."""
    owners: Owners = {}
    for entry in entries or ():
        fields = entry.get("fieldsV1") or {} if trusted else _checked(entry)
        owner = Owner(
            entry.get("manager", ""),
            entry["operation"],
            entry["apiVersion"],
            entry.get("subresource", ""),
            entry.get("time") or "",
            fields,
        )
        owners[owner.identity] = owner
    return owners


def _checked(entry: Any) -> FieldSet:
    if not isinstance(entry, dict):
        raise ValueError("not an entry")
    if entry.get("operation") not in _OPERATIONS:
        raise ValueError("operation must be `Apply` or `Update`")
    if not entry.get("apiVersion") or not isinstance(entry["apiVersion"], str):
        raise ValueError("apiVersion must not be empty")
    if entry.get("fieldsType") != "FieldsV1":
        raise ValueError("fieldsType must be FieldsV1")
    if not all(isinstance(entry.get(name) or "", str) for name in ("manager", "subresource", "time")):
        raise ValueError("not an entry")
    return field_sets.parse(entry.get("fieldsV1") or {})


def encode(owners: Owners) -> list[Obj]:
    """The entries in the order the server lists them: applies first, then by time and name."""
    ranked = sorted(owners.values(), key=lambda o: (o.operation, o.time, o.manager, o.api_version, o.subresource))
    return [owner.entry() for owner in ranked]


def same_owners(one: Any, other: Any) -> bool:
    """Whether two lists of entries say the same but for the times: a write that changed no more changed nothing."""
    return [_timeless(entry) for entry in one or ()] == [_timeless(entry) for entry in other or ()]


def _timeless(entry: Obj) -> Obj:
    return {key: value for key, value in entry.items() if key != "time"}


def live_owners(live: Obj | None, new: Obj, *, subresource: str) -> Owners:
    """The owners a write starts from: those the client sent along, else those on record.

    A client may hand ownership over by editing managedFields, or give it all up by sending an empty list or one
    empty entry; it may not do so through a subresource, and not by forgetting the field.
    """
    recorded = meta(live).get("managedFields") if live else None
    sent = meta(new).get("managedFields")
    if subresource or sent is None or sent == recorded:
        return _decoded(recorded, trusted=True)
    if sent in ([], [{}]):
        return {}
    return _decoded(sent, trusted=False) or _decoded(recorded, trusted=True)


def _decoded(entries: Any, *, trusted: bool) -> Owners:
    try:
        return decode(entries, trusted=trusted)
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def reset_fields(paths: Iterable[str]) -> FieldSet:
    """The set of some dotted paths: the fields that an endpoint does not write, so that it sets no owner for them."""
    result: FieldSet = {}
    for path in paths:
        field_sets.insert(result, tuple(f"f:{name}" for name in path.split(".")))
    return result


def update_managed_fields(
    old: Obj | None,
    new: Obj,
    *,
    manager: str,
    api_version: str,
    time: str,
    schema: Schema,
    operation: str = "Update",
    subresource: str = "",
    reset: FieldSet | None = None,
) -> list[Obj]:
    """The managedFields of `new` after `manager` has written it over `old`, or created it where there is no old.

    `reset` names what this endpoint never writes (see `reset_fields`). Neither object is changed; the entries that
    stay the same are shared with the old object.
    """
    owners = live_owners(old, new, subresource=subresource)
    if not owners and old and uid_of(old):
        return []  # tracking was given up on, and starts again with the next apply
    if not note_change(
        owners,
        old,
        new,
        Owner(manager or "unknown", operation, api_version, subresource, time, {}),
        schema,
        reset,
    ):
        recorded = meta(old).get("managedFields") if old else None
        if recorded is not None and meta(new).get("managedFields", recorded) == recorded:
            return list(recorded)
    _cap(owners)
    return encode(owners)


def note_change(
    owners: Owners, old: Obj | None, new: Obj, writer: Owner, schema: Schema, reset: FieldSet | None = None
) -> bool:
    """Hand over to `writer` what differs between two objects; say whether any owner's fields changed."""
    if old is not None and _says_the_same(old, new):
        return False
    try:
        comparison = compare(old if old is not None else zero_of(schema), new, schema, _UNTRACKED)
    except UnkeyedItem:
        return False  # not an object that validation would have let pass
    if reset:
        comparison.leave_out(reset)
    if comparison.empty:
        return False
    changed = comparison.changed
    if len(owners) == 1 and not comparison.removed:
        only = owners.get(writer.identity)
        if only is not None and not field_sets.difference(changed, only.fields):
            # The usual heartbeat: its writer is the only owner, also of what it writes.
            writer.fields = only.fields
            owners[writer.identity] = writer
            return True
    touched = take_away(owners, field_sets.union(changed, comparison.removed))
    mine = stripped(changed)
    if mine:
        before = owners.get(writer.identity)
        writer.fields = field_sets.ordered(field_sets.union(mine, before.fields) if before else mine)
        owners[writer.identity] = writer
    return touched or bool(mine)


def stripped(fields: FieldSet) -> FieldSet:
    """The fields that can have an owner."""
    return field_sets.difference(fields, _STRIPPED)


_UNTRACKED: Final = frozenset({"apiVersion", "kind"})


def _says_the_same(old: Obj, new: Obj) -> bool:
    """Whether two objects are equal in all ownable fields; a quick check before the full comparison."""
    for key, value in new.items():
        if key != "metadata" and old.get(key) != value:
            return False
    if len(old) != len(new):
        return False
    mine, theirs = meta(old), meta(new)
    return all(mine.get(key) == theirs.get(key) for key in {*mine, *theirs} if key not in _SERVERS_METADATA)


def take_away(owners: Owners, fields: FieldSet) -> bool:
    """Remove fields from all managers; managers without fields are dropped."""
    touched = False
    for identity, owner in list(owners.items()):
        left = field_sets.difference(owner.fields, fields)
        if left is owner.fields:
            continue
        touched = True
        if left:
            owners[identity] = Owner(
                owner.manager,
                owner.operation,
                owner.api_version,
                owner.subresource,
                owner.time,
                field_sets.ordered(left),
            )
        else:
            del owners[identity]
    return touched


def _cap(owners: Owners) -> None:
    """Keep at most ten managers of updates, by putting the oldest of a version together."""
    updaters = sorted(
        (owner for owner in owners.values() if owner.operation == "Update"),
        key=lambda owner: (owner.time, printed_identity(owner)),
    )
    surplus = len(updaters) - MAX_UPDATE_MANAGERS
    first_of: dict[str, Owner] = {}
    for owner in updaters:
        if surplus <= 0:
            return
        version = owner.api_version
        first = first_of.get(version)
        if first is None:
            first_of[version] = owner
            continue
        bucket = Owner(_ANCIENT, "Update", version, "", owner.time, {})
        if bucket.identity in owners:
            bucket.fields = owners[bucket.identity].fields
        else:
            bucket.fields = first.fields
            del owners[first.identity]
        bucket.fields = field_sets.ordered(field_sets.union(owner.fields, bucket.fields))
        owners.pop(owner.identity, None)
        owners[bucket.identity] = bucket
        surplus -= 1


def printed_identity(owner: Owner) -> bytes:
    """The identity as the real server prints and sorts it."""
    keys: Mapping[str, str] = {
        "manager": owner.manager,
        "operation": owner.operation,
        "apiVersion": "" if owner.operation == "Apply" else owner.api_version,
        "subresource": owner.subresource,
    }
    return orjson.dumps({key: value for key, value in keys.items() if value})
