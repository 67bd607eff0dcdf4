"""Strategic merge patch: a merge patch that knows from the schema which lists to merge, and by which key.

Directives understood: `$patch` (delete, replace), `$retainKeys`, `$deleteFromPrimitiveList/<field>` and
`$setElementOrder/<field>`. Results, including the order of merged lists, are those of
k8s.io/apimachinery/pkg/util/strategicpatch; so are the complaints.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, cast

from srearena.cluster.embedded.go_text import plain, quoted
from srearena.cluster.embedded.objects import Obj, copy_of
from srearena.cluster.embedded.registry.errors import ApiError, BadRequest
from srearena.cluster.embedded.registry.json_values import kind_of, owned
from srearena.cluster.embedded.registry.patch.json_patch import PatchRejected
from srearena.cluster.embedded.registry.schema import Schema, Shape

_MARKER: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder"
_DELETE: Final = "$deleteFromPrimitiveList"
_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}
_GO_KINDS: Final = {
    Shape.STRUCT: "struct",
    Shape.MAP: "map",
    Shape.LIST: "slice",
    Shape.STRING: "string",
    Shape.INTEGER: "int64",
    Shape.NUMBER: "float64",
    Shape.BOOLEAN: "bool",
}


class StrategicPatchError(ApiError):
    """A patch that contradicts the object or the schema. The real server has no reason for it either."""

    code = 422


def apply_strategic_patch(current: Obj, patch: Any, schema: Schema) -> Obj:
    """`current` with `patch` merged into it by the patch strategies of `schema`."""
    if patch is None:
        patch = {}
    if not isinstance(patch, dict):
        raise BadRequest(f"json: cannot unmarshal {kind_of(patch)} into Go value of type map[string]interface {{}}")
    return _merge_map(copy_of(current), owned(patch), schema)


def _merge_map(original: Obj, patch: Obj, schema: Schema) -> Obj:
    """Merge `patch` into `original`; both are consumed."""
    if _MARKER in patch:
        return _directed(patch)
    _retain_keys(original, patch)
    for key in [key for key in patch if key.startswith(_ORDER)]:
        _merge_ordered(original, patch, key, schema)
    for key, value in patch.items():
        deleting = key.startswith(_DELETE)
        if deleting:
            key = _directive_target(key, _DELETE, "invalid patch format of primitive list")
        if value is None:
            original.pop(key, None)
            continue
        here = original.get(key)
        if key not in original or type(here) is not type(value):
            if not deleting:
                _discard_nulls(value)
                _set(original, key, value)
        elif isinstance(value, dict):
            field = _field(schema, key)
            original[key] = value if "replace" in field.patch_strategy else _merge_map(cast(Obj, here), value, field)
        elif isinstance(value, list):
            field = _field(schema, key)
            original[key] = _merge_field(cast("list[Any]", here), value, field, schema, deleting)
        else:
            original[key] = value
    return original


def _directed(patch: Obj) -> Obj:
    directive = patch[_MARKER]
    if directive == "replace":
        del patch[_MARKER]
        return patch
    if directive == "delete":
        return {}
    raise _bad_directive(directive, patch)


def _bad_directive(directive: Any, patch: Obj) -> StrategicPatchError:
    return StrategicPatchError(f"unknown patch type: {plain(directive)} in map: {plain(patch)}")


def _retain_keys(original: Obj, patch: Obj) -> None:
    if _RETAIN not in patch:
        return
    retained = patch.pop(_RETAIN)
    if not isinstance(retained, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith((_DELETE, _ORDER)) and key not in retained:
            raise BadRequest("invalid patch format of retainKeys")
    for key in [key for key in original if key not in retained]:
        del original[key]


def _directive_target(key: str, prefix: str, complaint: str) -> str:
    head, slash, field = key.partition("/")
    if not slash or head != prefix:
        raise BadRequest(complaint)
    return field


def _merge_ordered(original: Obj, patch: Obj, directive: str, schema: Schema) -> None:
    """Merge one list whose wanted order the patch spells out."""
    order = patch.pop(directive)
    if not isinstance(order, list):
        raise _bad_type(list, order)
    key = _directive_target(directive, _ORDER, "invalid patch format of setElementOrder list")
    mine, theirs = original.get(key), patch.get(key)
    for found, there in ((mine, key in original), (theirs, key in patch)):
        if there and not isinstance(found, list):
            raise _bad_type(list, found)
    field = _list_field(schema, key)
    _check_order(theirs or [], order, field.patch_key)
    if mine is None and theirs is None:
        return
    server_order = _order_seen(mine or [], theirs or [], field.patch_key)
    if mine is None:
        merged = _without_directives(theirs)
    elif theirs is None:
        merged = mine
    else:
        merged = _merge_field(mine, theirs, field, schema, deleting=False)
    if not server_order and not theirs:
        raise StrategicPatchError("no elements in any of the given slices")
    original[key] = _arranged(merged, order, server_order, field.patch_key)
    patch.pop(key, None)


def _order_seen(mine: list[Any], theirs: list[Any], merge_key: str) -> list[Any]:
    """The order that the server is taken to have had.

    Where a patch deletes some items and adds others, the library lets the added ones move into the places that
    became free at the end, and takes them for having been there. So a renamed variable ends up last, not first.
    """
    if not merge_key or not all(isinstance(item, dict) and item.get(_MARKER) != "replace" for item in theirs):
        return list(mine)
    doomed = {_identity(item, merge_key) for item in theirs if item.get(_MARKER) == "delete" and merge_key in item}
    left = [item for item in mine if _identity(item, merge_key) not in doomed]
    known = {_identity(item, merge_key) for item in left}
    added = [item for item in theirs if _MARKER not in item and _identity(item, merge_key) not in known]
    return left + added[: len(mine) - len(left)]


def _check_order(items: list[Any], order: list[Any], merge_key: str) -> None:
    """The items that a patch sets must come in the order it asks for."""
    if not items or not order:
        return
    wanted = (_identity(item, merge_key) for item in items if not (isinstance(item, dict) and _MARKER in item))
    ordered = iter([_identity(item, merge_key) for item in order])
    # `in` consumes the iterator up to the match, so each item must come after the one before it.
    if not all(identity in ordered for identity in wanted):
        raise StrategicPatchError(
            f"The order in patch list:\n{plain(items)}\n doesn't match {_ORDER} list:\n{plain(order)}\n"
        )


_Identity = tuple[type, Any]


def _identity(item: Any, merge_key: str) -> _Identity:
    """What tells an item from the others: its merge key, or the item itself. 1, 1.0 and true are three things."""
    value = _key_of(item, merge_key) if merge_key else item
    if isinstance(value, dict | list):
        raise StrategicPatchError(f"merge key {merge_key} of {plain(item)} is not a scalar")
    return type(value), value


def _places(identities: Iterable[_Identity]) -> dict[_Identity, int]:
    """Where each identity comes first."""
    places: dict[_Identity, int] = {}
    for place, identity in enumerate(identities):
        places.setdefault(identity, place)
    return places


def _key_of(item: Any, merge_key: str) -> Any:
    if not isinstance(item, dict):
        raise _bad_type(dict, item)
    if merge_key not in item:
        raise StrategicPatchError(f"map: {plain(item)} does not contain declared merge key: {merge_key}")
    return item[merge_key]


def _merge_field(mine: list[Any], theirs: list[Any], field: Schema, parent: Schema, deleting: bool) -> list[Any]:
    if "merge" not in field.patch_strategy and not deleting:
        return theirs
    if field.shape is not Shape.LIST:
        raise StrategicPatchError(f"expected slice or array type, but got: {_kind(parent)}")
    if not mine and not theirs:
        return mine
    if _element_type(mine, theirs) is not dict:
        if deleting:
            doomed = {_identity(item, "") for item in theirs}
            return [item for item in mine if _identity(item, "") not in doomed]
        merged = list({_identity(item, ""): item for item in (*mine, *theirs)}.values())
        return _arranged(merged, theirs, mine, "")
    key = field.patch_key
    if not key:
        raise StrategicPatchError(f"cannot merge lists without merge key for {_kind(field.element)}")
    mine, theirs = _without_special_items(mine, theirs, key)
    merged = list(mine)
    places = _places(_identity(item, key) for item in mine)
    for item in theirs:
        identity = _identity(item, key)
        place = places.get(identity)
        if place is None:
            places[identity] = len(merged)
            merged.append(item)
        else:
            merged[place] = _merge_map(merged[place], item, field.element)
    return _arranged(merged, theirs, mine, key)


def _without_special_items(mine: list[Any], theirs: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The lists once items that carry a directive have been obeyed and taken out."""
    plain_items: list[Any] = []
    doomed: set[_Identity] = set()
    replacing = False
    for item in theirs:
        if _MARKER not in item:
            plain_items.append(item)
            continue
        directive = item[_MARKER]
        if directive == "delete":
            doomed.add(_identity(item, key))
        elif directive == "replace":
            replacing = True
        elif directive == "merge":
            raise StrategicPatchError("merging lists cannot yet be specified in the patch")
        else:
            raise _bad_directive(directive, item)
    if replacing:
        return plain_items, []
    return [item for item in mine if _identity(item, key) not in doomed], plain_items


def _arranged(merged: list[Any], patch_order: list[Any], server_order: list[Any], merge_key: str) -> list[Any]:
    """Items of the patch in its order, the others in theirs, the two interleaved as the server had them."""
    in_patch = _places(_identity(item, merge_key) for item in patch_order)
    on_server = _places(_identity(item, merge_key) for item in server_order)
    known = [(_identity(item, merge_key), item) for item in merged]
    right = sorted((pair for pair in known if pair[0] in in_patch), key=lambda pair: in_patch[pair[0]])
    left = sorted((pair for pair in known if pair[0] not in in_patch), key=lambda pair: on_server.get(pair[0], 0))
    result: list[Any] = []
    i = j = 0
    while i < len(left) and j < len(right):
        mine, theirs = on_server.get(left[i][0]), on_server.get(right[j][0])
        if mine is not None and theirs is not None and mine < theirs:
            result.append(left[i][1])
            i += 1
        else:
            result.append(right[j][1])
            j += 1
    return result + [item for _, item in left[i:]] + [item for _, item in right[j:]]


def _element_type(*lists: list[Any]) -> type:
    """What all the lists hold; they must agree."""
    kinds = {type(item) for items in lists for item in items}
    if list in kinds:
        raise PatchRejected("lists of lists are not supported")
    if len(kinds) != 1 or type(None) in kinds:
        raise StrategicPatchError(f"list element types are not identical: {plain(list(lists))}")
    return kinds.pop()


def _field(schema: Schema, key: str) -> Schema:
    if schema.shape is Shape.STRUCT:
        field = schema.fields.get(key)
        if field is None:
            raise StrategicPatchError(
                f"unable to find api field in struct {schema.type_name} for the json field {quoted(key)}"
            )
        return field
    if schema.shape is Shape.ANY:
        return schema
    raise StrategicPatchError(f"merging an object in json but data type is not struct, instead is: {_kind(schema)}")


def _list_field(schema: Schema, key: str) -> Schema:
    field = _field(schema, key)
    if field.shape is not Shape.LIST:
        raise StrategicPatchError(f"expected slice or array type, but got: {_kind(schema)}")
    return field


def _kind(schema: Schema) -> str:
    return _GO_KINDS.get(schema.shape, "struct")


def _bad_type(expected: type, value: Any) -> StrategicPatchError:
    received = _GO_TYPES.get(type(value), "%!s(<nil>)")
    return StrategicPatchError(f"expected a {_GO_TYPES[expected]}, but received a {received}")


def _discard_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for key in [key for key, item in value.items() if item is None]:
            del value[key]
        for item in value.values():
            _discard_nulls(item)
    elif isinstance(value, list):
        for item in value:
            _discard_nulls(item)


def _set(target: Obj, key: str, value: Any) -> None:
    """Set what is new to the object; something that carries a `$patch` has nothing to act on and vanishes."""
    if isinstance(value, dict) and _MARKER in value:
        target.pop(key, None)
    else:
        target[key] = _without_directives(value)


def _without_directives(value: Any) -> Any:
    if isinstance(value, dict):
        for key in list(value):
            _set(value, key, value[key])
    elif isinstance(value, list):
        kept: list[Any] = []
        for item in value:
            if not (isinstance(item, dict) and _MARKER in item):
                kept.append(_without_directives(item))
        return kept
    return value
