"""Custom resources and their structural schemas: pruning, defaulting, and the checks on lists.

Functions that change an object say so and change it in place; they are meant for a copy that one owns. A schema is
the openAPIV3Schema as the definition has it; None stands for one that allows nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from srearena.cluster.embedded.go_text import json_text, quoted
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import BadRequest, FieldError
from srearena.cluster.embedded.registry.field_validation import DecodeError, Directive, decode
from srearena.cluster.embedded.registry.json_values import owned
from srearena.cluster.embedded.registry.schema import Schema

Structural = Mapping[str, Any]
_META: Final = frozenset({"apiVersion", "kind", "metadata"})
_NOTHING: Final[Structural] = {}


def decode_custom(
    obj: Obj,
    schema: Schema,
    *,
    kind: str,
    version: str,
    directive: Directive = Directive.WARN,
    repeated: Iterable[str] = (),
) -> tuple[Obj, list[str]]:
    """What a write of a custom resource carries, pruned, and the warnings about it. Defaults come later."""
    result: Obj = owned(obj)
    metadata = result.pop("metadata", None)
    unknown: list[str] = []
    if metadata is not None:
        try:
            decoded = decode({"metadata": metadata}, _only_metadata(schema))
        except DecodeError as problem:
            raise _unfit(kind, version, str(problem)) from None
        unknown += decoded.strict
        result["metadata"] = decoded.obj.get("metadata", {})
    unknown += [f"unknown field {quoted(path)}" for path in prune(result, schema.raw)]
    drop_nulls(result, schema.raw)
    strict = [*(f"duplicate field {quoted(path)}" for path in repeated), *unknown]
    if strict and directive is Directive.STRICT:
        raise _unfit(kind, version, f"strict decoding error: {', '.join(strict)}")
    return result, strict if directive is Directive.WARN else []


def _unfit(kind: str, version: str, why: str) -> BadRequest:
    return BadRequest(f"{kind} in version {quoted(version)} cannot be handled as a {kind}: {why}")


def _only_metadata(schema: Schema) -> Schema:
    metadata = schema.fields["metadata"]
    return Schema.of_fields({"metadata": metadata})


def prune(obj: Obj, schema: Structural) -> list[str]:
    """Drop in place what the schema does not know; the paths of it, sorted."""
    unknown: list[str] = []
    _prune(obj, {**schema, "x-kubernetes-embedded-resource": True}, "", unknown)
    return sorted(unknown)


def _prune(value: Any, schema: Structural | None, path: str, unknown: list[str]) -> None:
    if isinstance(value, dict):
        _prune_object(value, schema, path, unknown)
    elif isinstance(value, list):
        items = _items(schema)
        preserved = schema is not None and schema.get("x-kubernetes-preserve-unknown-fields") is True
        if preserved and items is None:
            return
        for index, item in enumerate(value):
            _prune(item, {**(items or {}), **_PRESERVED} if preserved else items, f"{path}[{index}]", unknown)


_PRESERVED: Final[Structural] = {"x-kubernetes-preserve-unknown-fields": True}


def _prune_object(value: Obj, schema: Structural | None, path: str, unknown: list[str]) -> None:
    schema = schema if schema is not None else _NOTHING
    preserved = schema.get("x-kubernetes-preserve-unknown-fields") is True
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    properties = schema.get("properties") or _NOTHING
    additional = schema.get("additionalProperties")
    for key in list(value):
        if embedded and key in _META:
            continue
        here = f"{path}.{key}" if path else key
        if key in properties:
            _prune(value[key], properties[key], here, unknown)
        elif additional:
            _prune(value[key], additional if isinstance(additional, dict) else None, here, unknown)
        elif not preserved:
            unknown.append(here)
            del value[key]


def drop_nulls(value: Any, schema: Structural | None) -> None:
    """Drop in place the nulls of fields that are neither nullable nor have a default."""
    if isinstance(value, dict):
        for key in list(value):
            below = _under(schema, key)
            if value[key] is None and below is not None and not below.get("nullable") and below.get("default") is None:
                del value[key]
            else:
                drop_nulls(value[key], below)
    elif isinstance(value, list):
        items = _items(schema)
        for item in value:
            drop_nulls(item, items)


def apply_defaults(value: Any, schema: Structural | None) -> None:
    """Fill in place what is missing, or null where it must not be, with the schema's defaults."""
    if schema is None:
        return
    if isinstance(value, dict):
        properties = schema.get("properties") or _NOTHING
        for key, below in properties.items():
            default = below.get("default")
            if default is not None and (key not in value or (value[key] is None and not below.get("nullable"))):
                value[key] = owned(default)
        for key, item in value.items():
            below = _under(schema, key)
            if item is None and below is not None and key not in properties and not below.get("nullable"):
                value[key] = owned(below.get("default"))
            if isinstance(value[key], dict | list):
                apply_defaults(value[key], below)
    elif isinstance(value, list):
        items = _items(schema)
        for index, item in enumerate(value):
            if item is None and items is not None and not items.get("nullable"):
                value[index] = owned(items.get("default"))
            if isinstance(value[index], dict | list):
                apply_defaults(value[index], items)


def _under(schema: Structural | None, key: str) -> Structural | None:
    """The schema of a property, declared or additional."""
    if schema is None:
        return None
    found = (schema.get("properties") or _NOTHING).get(key)
    if found is None:
        found = schema.get("additionalProperties")
    return found if isinstance(found, dict) else None


def _items(schema: Structural | None) -> Structural | None:
    found = schema.get("items") if schema is not None else None
    return found if isinstance(found, dict) else None


def list_errors(value: Any, schema: Structural | None, path: str = "") -> list[FieldError]:
    """Items that come twice in lists that are sets or maps."""
    errors: list[FieldError] = []
    if schema is None:
        return errors
    if isinstance(value, dict):
        properties = schema.get("properties") or _NOTHING
        for key, item in value.items():
            if key in properties:
                errors += list_errors(item, properties[key], f"{path}.{key}" if path else key)
            elif (below := _under(schema, key)) is not None:
                errors += list_errors(item, below, f"{path}[{key}]")
    elif isinstance(value, list):
        kind = schema.get("x-kubernetes-list-type")
        if kind == "set":
            errors += [FieldError.duplicate(f"{path}[{index}]", value[index]) for index in _repeated(value)]
        elif kind == "map":
            errors += _repeated_keys(value, schema.get("x-kubernetes-list-map-keys") or (), path)
        for index, item in enumerate(value):
            errors += list_errors(item, _items(schema), f"{path}[{index}]")
    return errors


def _repeated_keys(items: list[Any], names: Iterable[str], path: str) -> list[FieldError]:
    for index, item in enumerate(items):
        if item is not None and not isinstance(item, dict):
            why = "must be an object for an array of list-type map"
            return [FieldError.invalid(f"{path}[{index}]", item, why)]
    names = tuple(names)
    keys = [{name: item[name] for name in names if name in item} if item else {} for item in items]
    return [FieldError.duplicate(f"{path}[{index}]", keys[index]) for index in _repeated(keys)]


def _repeated(items: list[Any]) -> list[int]:
    """The indexes of items that repeat an earlier one; a third occurrence is not reported."""
    seen: dict[str, int] = {}
    found: list[int] = []
    for index, item in enumerate(items):
        text = json_text(item, sort_keys=True)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            found.append(index)
    return found
