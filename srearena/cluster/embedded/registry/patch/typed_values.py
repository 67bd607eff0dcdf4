"""Objects seen through their schema: which fields they set, what differs between two, what a merge gives.

This is the part of structured-merge-diff that knows types. A list is atomic, a set of scalars, or a map by keys;
a struct or map is atomic or merges field by field; what has no schema merges where it is a map and is atomic
where it is a list. Built-in kinds are taken as Go writes them: a field that is always written counts as present
although the dict may lack it, and one that is zero and would not be written counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.patch import field_sets
from srearena.cluster.embedded.registry.patch.field_sets import LEAF, SELF, FieldSet, key_element, value_element
from srearena.cluster.embedded.registry.schema import ANYTHING, Schema, Shape
from srearena.cluster.embedded.registry.schemas import item_keys
from srearena.cluster.embedded.registry.wire_forms import FREE, wire_form

_ABSENT: Final = object()
_MAPS: Final = frozenset({Shape.STRUCT, Shape.MAP})


class UnkeyedItem(ValueError):
    """A list item without a unique key."""


def element_of(items: Schema, item: Any) -> str:
    """The path element of an item in a list that is not atomic."""
    if items.list_type == "set":
        if isinstance(item, dict):
            raise UnkeyedItem("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise UnkeyedItem("not supported: associative list with lists as elements")
        if item is None:
            raise UnkeyedItem("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if not isinstance(item, dict):
        what = "a null element" if item is None else "non-map elements"
        raise UnkeyedItem(f"associative list with keys may not have {what}")
    keys = item_keys(items)
    if len(keys) == 1:  # nearly always `name` or `type`
        name, default = keys[0]
        value = item.get(name, default)
        if value is not None and not isinstance(value, dict | list):
            return key_element((name,), value)
    found = [(name, item.get(name, default)) for name, default in keys]
    values = [value for _, value in found]
    if any(isinstance(value, dict | list) for value in values):
        raise UnkeyedItem("associative list with keys has an element whose key fields are not scalars")
    if all(value is None for value in values):
        names = " ".join(f'"{name}"' for name in items.list_keys)
        raise UnkeyedItem(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return key_element(tuple(name for name, _ in keys), *values)


def is_map(schema: Schema, value: Any) -> bool:
    """Whether the value merges key by key."""
    return schema.map_type != "atomic" and (
        schema.shape in _MAPS or (schema.shape is Shape.ANY and isinstance(value, dict))
    )


def is_list(schema: Schema) -> bool:
    """Whether the value is a list that merges item by item."""
    return schema.shape is Shape.LIST and schema.list_type in ("map", "set")


def _below(schema: Schema, key: str) -> Schema:
    """The schema under a key of something that merges key by key."""
    found = schema.fields.get(key)
    if found is not None:
        return found
    return schema.element if schema.shape is Shape.MAP else ANYTHING


def field_set(value: Any, schema: Schema) -> FieldSet:
    """The fields that an object sets; what it would be to apply it."""
    return _fields_of(value, schema)[1]


def _fields_of(value: Any, schema: Schema) -> tuple[bool, FieldSet]:
    """Whether the value is itself a member, and the members below it."""
    if is_map(schema, value):
        below: FieldSet = {}
        if isinstance(value, dict):
            declared = schema.fields
            for key, item in value.items():
                member, deeper = _fields_of(item, _below(schema, key))
                if member or item is None or item == {} or key not in declared:
                    below[f"f:{key}"] = {SELF: LEAF, **deeper} if deeper else LEAF
                elif deeper:
                    below[f"f:{key}"] = deeper
        return False, below
    if is_list(schema):
        below = {}
        for element, items in _grouped(schema, value).items():
            deeper = _fields_of(items[0], schema.element)[1] if len(items) == 1 else LEAF
            below[element] = {SELF: LEAF, **deeper} if deeper else LEAF
        return False, below
    return True, LEAF


def _grouped(schema: Schema, value: Any) -> dict[str, list[Any]]:
    """The items of a list by element; more than one under an element are duplicates."""
    groups: dict[str, list[Any]] = {}
    if isinstance(value, list):
        for item in value:
            groups.setdefault(element_of(schema, item), []).append(item)
    return groups


def whole(value: Any, schema: Schema, literal: bool = False) -> FieldSet:
    """The node of a value that came or went as a whole: it and everything below it.

    A `literal` value is taken as it is, not as Go would write it.
    """
    below: FieldSet = {}
    if is_map(schema, value):
        if not isinstance(value, dict):
            return LEAF
        form = FREE if literal else wire_form(schema)
        fleeting = form.fleeting
        for key, item in value.items():
            if item or key not in fleeting:
                deeper = isinstance(item, dict | list)
                below[f"f:{key}"] = whole(item, _below(schema, key), literal) if deeper else LEAF
        for key, item in form.always.items():
            if key not in value:
                below[f"f:{key}"] = whole(item, _below(schema, key))
    elif is_list(schema):
        for element, items in _grouped(schema, value).items():
            below[element] = whole(items[0], schema.element, literal) if len(items) == 1 else LEAF
    if below:
        below[SELF] = LEAF
    return below or LEAF


class Comparison:
    """What it takes to get from one object to another."""

    __slots__ = ("added", "literal", "modified", "removed")

    def __init__(self, literal: bool = False) -> None:
        self.literal = literal
        self.removed: FieldSet = {}
        self.modified: FieldSet = {}
        self.added: FieldSet = {}

    @property
    def changed(self) -> FieldSet:
        """What the new object says that the old did not."""
        return field_sets.union(self.modified, self.added)

    @property
    def empty(self) -> bool:
        return not (self.removed or self.modified or self.added)

    def leave_out(self, fields: FieldSet) -> None:
        """Forget about some fields and everything below them."""
        if fields:
            self.removed = field_sets.recursive_difference(self.removed, fields)
            self.modified = field_sets.recursive_difference(self.modified, fields)
            self.added = field_sets.recursive_difference(self.added, fields)


def compare(
    old: Any, new: Any, schema: Schema, skip: frozenset[str] = frozenset(), *, literal: bool = False
) -> Comparison:
    """The difference between two objects of a kind, leaving out some fields at the top.

    With `literal` the new one holds what was spelled out by an apply, where a zero value is as good as any other.
    """
    comparison = Comparison(literal)
    _compare_maps(old, new, schema, (), comparison, skip)
    return comparison


def _compare(old: Any, new: Any, schema: Schema, path: tuple[str, ...], found: Comparison) -> None:
    if old is new or (type(old) is type(new) and old == new):
        return
    if schema.shape is Shape.ANY and isinstance(old, dict) != isinstance(new, dict):
        field_sets.insert(found.modified, path)
        for value, side in ((old, found.removed), (new, found.added)):
            if isinstance(value, dict):
                for key, item in value.items():
                    field_sets.insert(side, (*path, f"f:{key}"), whole(item, ANYTHING, found.literal))
    elif is_map(schema, new):
        if old or new:
            _compare_maps(old, new, schema, path, found)
        else:
            field_sets.insert(found.modified, path)
    elif is_list(schema):
        if old or new:
            _compare_lists(old, new, schema, path, found)
        else:
            field_sets.insert(found.modified, path)
    elif old != new:
        field_sets.insert(found.modified, path)


def _compare_maps(
    old: Any,
    new: Any,
    schema: Schema,
    path: tuple[str, ...],
    found: Comparison,
    skip: frozenset[str] = frozenset(),
) -> None:
    old = old if isinstance(old, dict) else {}
    new = new if isinstance(new, dict) else {}
    form = wire_form(schema)
    always, fleeting = form.always, form.fleeting
    for key in {**old, **new}:
        before, after = old.get(key, _ABSENT), new.get(key, _ABSENT)
        if before is after or key in skip:
            continue
        if key in always:
            before = always[key] if before is _ABSENT else before
            after = always[key] if after is _ABSENT else after
        elif key in fleeting:
            before = before or _ABSENT
            after = after if found.literal else after or _ABSENT
        if before is _ABSENT:
            if after is not _ABSENT:
                field_sets.insert(found.added, (*path, f"f:{key}"), whole(after, _below(schema, key), found.literal))
        elif after is _ABSENT:
            field_sets.insert(found.removed, (*path, f"f:{key}"), whole(before, _below(schema, key)))
        else:
            _compare(before, after, _below(schema, key), (*path, f"f:{key}"), found)


def _compare_lists(old: Any, new: Any, schema: Schema, path: tuple[str, ...], found: Comparison) -> None:
    before, after = _grouped(schema, old), _grouped(schema, new)
    for element in {**before, **after}:
        left, right = before.get(element, []), after.get(element, [])
        here = (*path, element)
        if len(left) == 1 and len(right) == 1:
            _compare(left[0], right[0], schema.element, here, found)
        elif len(left) >= 2 and len(right) >= 2:
            if left != right:
                field_sets.insert(found.modified, here)
        else:
            # A duplicated item counts as gone or come in one piece, its single counterpart with all its fields.
            for items, side, literal in ((left, found.removed, False), (right, found.added, found.literal)):
                if items:
                    node = whole(items[0], schema.element, literal) if len(items) == 1 else LEAF
                    field_sets.insert(side, here, node)


def merge(live: Any, applied: Any, schema: Schema) -> Any:
    """`live` with everything that `applied` says, which wins. Shares with both; neither is changed."""
    if is_map(schema, applied) and (isinstance(live, dict) or schema.shape in _MAPS):
        if not live and not applied:
            return applied
        return _merge_maps(live, applied, schema)
    if is_list(schema) and (live or applied):
        return _merge_lists(live or [], applied or [], schema)
    return applied


def _merge_maps(live: Any, applied: Any, schema: Schema) -> Obj:
    result: Obj = dict(live) if isinstance(live, dict) else {}
    for key, value in (applied or {}).items():
        result[key] = merge(result[key], value, _below(schema, key)) if key in result else value
    return result


def _merge_lists(live: list[Any], applied: list[Any], schema: Schema) -> list[Any]:
    """Items in the order of the applied list, those only the live one has staying near their neighbours."""
    theirs = {element_of(schema, item): item for item in applied}
    mine: dict[str, Any] = {}
    order: list[str] = []
    for item in live:
        element = element_of(schema, item)
        # It is ambiguous which duplicate is meant: applying replaces them all.
        mine[element] = _ABSENT if element in mine else item
        order.append(element)
    wanted = list(theirs)
    shared = iter([element for element in wanted if element in mine])
    upcoming = next(shared, None)
    done: set[str] = set()
    result: list[Any] = []

    def take(element: str) -> None:
        done.add(element)
        before = mine.get(element, _ABSENT)
        after = theirs[element]
        result.append(after if before is _ABSENT else merge(before, after, schema.element))

    left = right = 0
    while left < len(order) or right < len(wanted):
        if left < len(order) and right < len(wanted):
            element = order[left]
            if element == wanted[right]:
                take(element)
                left, right = left + 1, right + 1
                upcoming = next(shared, None)
                continue
            if element in theirs and upcoming is not None and upcoming != element:
                left += 1
                continue
        if left < len(order):
            element = order[left]
            if element not in theirs:
                result.append(live[left])
                left += 1
                continue
            if element in done:
                left += 1
        if right < len(wanted):
            element = wanted[right]
            take(element)
            right += 1
            if upcoming == element:
                upcoming = next(shared, None)
    return result


def remove(value: Any, fields: FieldSet, schema: Schema, *, leave_null: bool = True) -> Any:
    """The value without the members of a set. What loses all it had becomes null, or goes unless `leave_null`."""
    if is_map(schema, value) and isinstance(value, dict):
        return _remove_from(
            ((f"f:{key}", key, item, _below(schema, key)) for key, item in value.items()), fields, leave_null, dict
        )
    if is_list(schema) and isinstance(value, list):
        element = schema.element
        return _remove_from(
            ((element_of(schema, item), index, item, element) for index, item in enumerate(value)),
            fields,
            leave_null,
            lambda pairs: [item for _, item in pairs],
        )
    return value if not isinstance(value, dict | list) else None


def _remove_from(entries: Any, fields: FieldSet, leave_null: bool, build: Callable[[list[Any]], Any]) -> Any:
    kept: list[Any] = []
    emptied = False
    for element, key, item, schema in entries:
        node = fields.get(element)
        if node is not None:
            if field_sets.is_member(node):
                continue
            item = remove(item, node, schema, leave_null=leave_null)
            if item is None and not leave_null:
                emptied = True
                continue
        kept.append((key, item))
    return build(kept) if kept or emptied else None


def with_structs(fields: FieldSet, schema: Schema) -> FieldSet:
    """The set in which every declared field that something lies below is a member, too."""
    result: FieldSet = {}
    declared = schema.fields
    items = schema.element if is_list(schema) else None
    for element, node in fields.items():
        if element == SELF or not node:
            result[element] = node
            continue
        name = element[2:]
        below = with_structs(node, items if items is not None else _below(schema, name))
        result[element] = {SELF: LEAF, **below} if name in declared and element[0] == "f" else below
    return result
