"""Whether the schema of a custom resource is structural: every value typed, every field in one place.

`check_schema` walks an openAPIV3Schema and says what a server would refuse in it. Rules written in CEL are
compiled in `schema_rules`.
"""

from __future__ import annotations

from typing import Any

import orjson

from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.strategies.checks import Problems
from srearena.regular_expressions import PatternError
from srearena.regular_expressions import pattern as compiled

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_LEVELS = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_LIST_TYPES = ("atomic", "map", "set")
_MAP_TYPES = ("atomic", "granular")
# What may not be said again inside a logical junctor, and how the refusal words it.
_NESTED_FORBIDDEN = {
    "type": "empty",
    "default": "undefined",
    "title": "empty",
    "description": "empty",
    "nullable": "false",
    "x-kubernetes-preserve-unknown-fields": "false",
    "x-kubernetes-embedded-resource": "false",
    "x-kubernetes-int-or-string": "false",
    "x-kubernetes-list-map-keys": "empty",
    "x-kubernetes-list-type": "undefined",
    "x-kubernetes-map-type": "undefined",
    "additionalProperties": "undefined",
}
_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_DEEPEST = 200


def check_schema(problems: Problems, path: str, schema: Obj) -> None:
    if schema.get("nullable"):
        problems.append(FieldError.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    found: Problems = []
    _structure(found, path, schema, "root", 0)
    problems += sorted(found, key=str)
    _vocabulary(problems, path, schema, 0)
    if not problems and b'"x-kubernetes-validations"' in orjson.dumps(schema):
        from srearena.cluster.embedded.registry.schema_rules import RuleNode

        problems += RuleNode(schema, root=True).all_problems(path)


def _structure(problems: Problems, path: str, schema: Obj, level: str, depth: int) -> None:
    if depth > _DEEPEST:
        return
    kind, properties = schema.get("type") or "", schema.get("properties") or {}
    within, extra = schema.get("items"), schema.get("additionalProperties")
    if kind == "array" and within is None:
        problems.append(FieldError.required(f"{path}.items", "must be specified"))
    if isinstance(within, dict):
        _structure(problems, f"{path}.items", within, "item", depth + 1)
    for name, value in properties.items():
        _structure(problems, f"{path}.properties[{name}]", value or {}, "field", depth + 1)
    if extra is not None and extra is not False:
        if level == "root":
            problems.append(FieldError.forbidden(f"{path}.additionalProperties", "must not be used at the root"))
        if isinstance(extra, dict):
            _structure(problems, f"{path}.additionalProperties", extra, "field", depth + 1)
    _junctors(problems, path, schema, depth)
    _type_is_there(problems, path, schema, level)
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    if level == "root" or embedded:
        for name in ("kind", "apiVersion"):
            if name in properties and (properties[name] or {}).get("type") != "string":
                where = f"{path}.properties[{name}].type"
                problems.append(FieldError.invalid(where, (properties[name] or {}).get("type") or "", "must be string"))
        if "metadata" in properties:
            _metadata(problems, f"{path}.properties[metadata]", properties["metadata"] or {}, level)
    if embedded and not schema.get("x-kubernetes-preserve-unknown-fields") and not properties:
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        problems.append(FieldError.required(f"{path}.properties", text))


def _type_is_there(problems: Problems, path: str, schema: Obj, level: str) -> None:
    kind = schema.get("type") or ""
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.get("x-kubernetes-embedded-resource") and kind != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        if kind:
            problems.append(FieldError.invalid(f"{path}.type", kind, text))
        else:
            problems.append(FieldError.required(f"{path}.type", text))
    elif not kind and not free:
        problems.append(FieldError.required(f"{path}.type", _LEVELS[level]))
    if level == "root" and kind not in ("", "object"):
        problems.append(FieldError.invalid(f"{path}.type", kind, "must be object at the root"))


def _metadata(problems: Problems, path: str, schema: Obj, level: str) -> None:
    if schema.get("type") != "object":
        problems.append(FieldError.invalid(f"{path}.type", schema.get("type") or "", "must be object"))
    names, others = set(schema.get("properties") or {}), set(schema) - {"type", "properties", "default"}
    if level == "root" and (others or not names <= {"name", "generateName"}):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        problems.append(FieldError.forbidden(path, text))


def _junctors(problems: Problems, path: str, schema: Obj, depth: int) -> None:
    either = schema.get("anyOf") or []
    if either != _INT_OR_STRING:
        for index, nested in enumerate(either):
            _nested(problems, f"{path}.anyOf[{index}]", nested or {}, depth + 1)
    for key in ("allOf", "oneOf"):
        for index, nested in enumerate(schema.get(key) or ()):
            if key == "allOf" and index == 0 and (nested or {}).get("anyOf") == _INT_OR_STRING:
                continue
            _nested(problems, f"{path}.{key}[{index}]", nested or {}, depth + 1)
    if schema.get("not") is not None:
        _nested(problems, f"{path}.not", schema["not"], depth + 1)
    pattern = schema.get("pattern")
    if pattern and _pattern_error(pattern):
        text = f"must be a valid regular expression, but isn't: {_pattern_error(pattern)}"
        problems.append(FieldError.invalid(f"{path}.pattern", pattern, text))


def _pattern_error(pattern: str) -> str:
    try:
        compiled(pattern)
    except PatternError as error:
        return str(error)
    return ""


def _nested(problems: Problems, path: str, schema: Obj, depth: int) -> None:
    if depth > _DEEPEST:
        return
    _junctors(problems, path, schema, depth)
    if isinstance(schema.get("items"), dict):
        _nested(problems, f"{path}.items", schema["items"], depth + 1)
    for name, value in (schema.get("properties") or {}).items():
        _nested(problems, f"{path}.properties[{name}]", value or {}, depth + 1)
    for key, word in _NESTED_FORBIDDEN.items():
        if schema.get(key):
            problems.append(FieldError.forbidden(f"{path}.{key}", f"must be {word} to be structural"))
    if "metadata" in (schema.get("properties") or {}):
        where = f"{path}.properties[metadata]"
        problems.append(FieldError.forbidden(where, "must not be specified in a nested context"))


def _vocabulary(problems: Problems, path: str, schema: Any, depth: int) -> None:
    """What may be said at all, at any depth."""
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return
    kind = schema.get("type") or ""
    if kind and kind not in _TYPES:
        problems.append(FieldError.not_supported(f"{path}.type", kind, _TYPES))
    for key in _UNSUPPORTED:
        if schema.get(key):
            problems.append(FieldError.forbidden(f"{path}.{key}", f"{key} is not supported"))
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        problems.append(FieldError.forbidden(f"{path}.uniqueItems", text))
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        text = "additionalProperties and properties are mutual exclusive"
        problems.append(FieldError.forbidden(f"{path}.additionalProperties", text))
    _vocabulary(problems, f"{path}.additionalProperties", schema.get("additionalProperties"), depth + 1)
    for name, value in (schema.get("properties") or {}).items():
        _vocabulary(problems, f"{path}.properties[{name}]", value, depth + 1)
    _vocabulary(problems, f"{path}.items", schema.get("items"), depth + 1)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        where = f"{path}.x-kubernetes-preserve-unknown-fields"
        problems.append(FieldError.invalid(where, False, "must be true or undefined"))
    _topology(problems, path, schema, "map", "object", _MAP_TYPES)
    _topology(problems, path, schema, "list", "array", _LIST_TYPES)
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if schema.get("x-kubernetes-list-type") == "map" and not keys:
        text = "must not be empty if x-kubernetes-list-type is map"
        problems.append(FieldError.required(f"{path}.x-kubernetes-list-map-keys", text))
    within = schema.get("items")
    if schema.get("x-kubernetes-list-type") == "map" and isinstance(within, dict) and within.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        problems.append(FieldError.invalid(f"{path}.items.type", within.get("type") or "", text))


def _topology(problems: Problems, path: str, schema: Obj, word: str, needed: str, supported: tuple[str, ...]) -> None:
    key = f"x-kubernetes-{word}-type"
    value, kind = schema.get(key), schema.get("type") or ""
    if value is None:
        return
    if kind != needed:
        text = f"must be {needed} if {key} is specified"
        if kind:
            problems.append(FieldError.invalid(f"{path}.type", kind, text))
        else:
            problems.append(FieldError.required(f"{path}.type", text))
    if value not in supported:
        problems.append(FieldError.not_supported(f"{path}.{key}", value, supported))
