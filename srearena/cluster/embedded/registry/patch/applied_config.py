"""Whether what a client wants to apply fits the schema, in the words of structured-merge-diff.

Unlike a create or update, an applied configuration is never decoded leniently: a field the schema does not know,
a scalar of the wrong type or two list items with the same key make the whole request fail.
"""

from __future__ import annotations

from typing import Any, Final

from srearena.cluster.embedded.go_text import float_text, plain, quoted
from srearena.cluster.embedded.registry.patch.field_sets import path_text
from srearena.cluster.embedded.registry.patch.typed_values import UnkeyedItem, element_of, is_list
from srearena.cluster.embedded.registry.schema import Schema, Shape

_GO_TYPES: Final = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}
_UNTYPED: Final = frozenset({Shape.INT_OR_STRING, Shape.QUANTITY})


def config_errors(value: Any, schema: Schema) -> list[str]:
    """Everything that does not fit, each with its path."""
    errors: list[str] = []
    _check(value, schema, (), errors)
    return errors


def _check(value: Any, schema: Schema, path: tuple[str, ...], errors: list[str]) -> None:
    shape = schema.shape
    if value is None or shape is Shape.ANY:
        return
    if shape is Shape.STRUCT or shape is Shape.MAP:
        if isinstance(value, dict):
            _check_map(value, schema, path, errors)
        else:
            _say(errors, path, f"expected map, got &{{{plain(value)}}}")
    elif shape is Shape.LIST:
        if isinstance(value, list):
            _check_list(value, schema, path, errors)
        else:
            _say(errors, path, f"expected list, got &{{{plain(value)}}}")
    elif complaint := _scalar_complaint(value, schema):
        _say(errors, path, complaint)


def _check_map(value: dict[str, Any], schema: Schema, path: tuple[str, ...], errors: list[str]) -> None:
    for key, item in value.items():
        here = (*path, f"f:{key}")
        field = schema.field(key)
        if field is not None:
            _check(item, field, here, errors)
        elif not schema.preserve_unknown:
            _say(errors, here, "field not declared in schema")
            return


def _check_list(value: list[Any], schema: Schema, path: tuple[str, ...], errors: list[str]) -> None:
    keyed = is_list(schema)
    seen: set[str] = set()
    for index, item in enumerate(value):
        element = f"i:{index}"
        if keyed:
            try:
                element = element_of(schema, item)
            except UnkeyedItem as problem:
                _say(errors, path, f"element {index}: {problem}")
                return
            if element in seen:
                _say(errors, path, f"duplicate entries for key {path_text((element,))}")
            seen.add(element)
        _check(item, schema.element, (*path, element), errors)


def _scalar_complaint(value: Any, schema: Schema) -> str:
    shape = schema.shape
    if shape in _UNTYPED or schema.name.endswith("Time"):
        return f"expected any scalar, got &{{{plain(value)}}}" if isinstance(value, dict | list) else ""
    if shape is Shape.STRING:
        return (
            "" if isinstance(value, str) else f"expected string, got &value.valueUnstructured{{Value:{_syntax(value)}}}"
        )
    if shape is Shape.BOOLEAN:
        return "" if isinstance(value, bool) else f"expected boolean, got &{{{plain(value)}}}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return ""
    return f"expected numeric (int or float), got {_GO_TYPES[type(value)]}"


def _syntax(value: Any) -> str:
    """A value under %#v."""
    if isinstance(value, dict):
        items = ", ".join(f"{quoted(key)}:{_syntax(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{items}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(_syntax, value))}}}"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return float_text(value)
    return "interface {}(nil)" if value is None else plain(value)


def _say(errors: list[str], path: tuple[str, ...], message: str) -> None:
    errors.append(f"{path_text(path)}: {message}" if path else message)
