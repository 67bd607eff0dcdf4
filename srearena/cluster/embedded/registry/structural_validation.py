"""Validation of custom resources against their schema, with the messages of k8s.io/kube-openapi.

Each rule is one function from a value and its schema to what is wrong with it; `_RULES` is their order. An error
of anyOf, oneOf, allOf or not is reported against no field, as the server does. Rules in CEL
(x-kubernetes-validations) are not enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from srearena.cluster.embedded.go_text import float_text, json_text, quoted
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.schema import Schema
from srearena.cluster.embedded.registry.string_formats import is_known_format, matches_format
from srearena.cluster.embedded.registry.structural import Structural, list_errors
from srearena.regular_expressions import PatternError
from srearena.regular_expressions import pattern as compiled

_NO_FIELD: Final = "<nil>"
_NOTHING: Final[Mapping[str, Any]] = {}


def validation_errors(obj: Obj, schema: Schema) -> list[FieldError]:
    """Everything wrong with a custom resource, given its schema (see `schemas.for_custom`)."""
    raw = schema.raw
    # What every object has is checked elsewhere, whatever a definition may say of it.
    properties = {key: value for key, value in (raw.get("properties") or _NOTHING).items() if key != "metadata"}
    found = _check(obj, {**raw, "properties": properties}, "")
    # What several alternatives complain about alike is said once.
    unique = {(error.kind, str(error)): error for error in found}
    return [*unique.values(), *list_errors(obj, raw)]


def _check(value: Any, schema: Structural, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for rule in _RULES_FOR_NULL if value is None else _RULES:
        errors.extend(rule(value, schema, path))
    return errors


def _type_rule(value: Any, schema: Structural, path: str) -> Iterator[FieldError]:
    expected = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        if value is None:
            if not schema.get("nullable"):
                yield _wrong_type(path, "integer,string", "null")
        elif _json_type(value) not in ("integer", "string") and not _is_integral(value):
            yield _wrong_type(path, "integer,string", _json_type(value))
        return
    if not expected:
        return
    if value is None:
        if not schema.get("nullable"):
            yield _wrong_type(path, expected, "null")
        return
    found = _json_type(value)
    if found == expected or (expected == "number" and found == "integer"):
        return
    if expected == "integer" and _is_integral(value):
        return
    if is_known_format(schema.get("format")):
        if found not in ("string", "array"):
            yield _wrong_type(path, schema["format"], _NUMBER_FORMATS.get(found, ""))
            return
        if expected not in ("number", "integer"):
            return
    yield _wrong_type(path, expected, found)


_NUMBER_FORMATS: Final = {"integer": "int64", "number": "float64"}


def _wrong_type(path: str, expected: str, found: str) -> FieldError:
    return FieldError.type_invalid(_field(path), found, f"{path} in body must be of type {expected}: {quoted(found)}")


def _json_type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _is_integral(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _field(path: str) -> str:
    return path.removeprefix(".") or _NO_FIELD


def _invalid(path: str, value: Any, why: str) -> FieldError:
    return FieldError.invalid(_field(path), "" if value is None else value, f"{path} in body {why}")


def _alternatives_rule(value: Any, schema: Structural, path: str) -> Iterator[FieldError]:
    yield from _any_of(value, schema.get("anyOf") or (), path)
    yield from _one_of(value, schema.get("oneOf") or (), path)
    parts = schema.get("allOf") or ()
    failed = 0
    for part in parts:
        errors = _check(value, part, path)
        failed += bool(errors)
        yield from errors
    if failed:
        none = ". None validated" if failed == len(parts) else ""
        yield _unplaced(f"{quoted(path)} must validate all the schemas (allOf){none}")
    if (forbidden := schema.get("not")) is not None and not _check(value, forbidden, path):
        yield _unplaced(f"{quoted(path)} must not validate the schema (not)")


def _unplaced(why: str) -> FieldError:
    return FieldError.invalid(_NO_FIELD, "", why)


def _any_of(value: Any, parts: Any, path: str) -> Iterator[FieldError]:
    results = [_check(value, part, path) for part in parts]
    if results and all(results):
        yield _unplaced(f"{quoted(path)} must validate at least one schema (anyOf)")
        yield from results[_furthest(value, parts)]


def _one_of(value: Any, parts: Any, path: str) -> Iterator[FieldError]:
    results = [_check(value, part, path) for part in parts]
    valid = sum(not errors for errors in results)
    if results and valid != 1:
        found = f"Found {valid} valid alternatives" if valid else "Found none valid"
        yield _unplaced(f"{quoted(path)} must validate one and only one schema (oneOf). {found}")
        if not valid:
            yield from results[_furthest(value, parts)]


def _furthest(value: Any, parts: Any) -> int:
    """Which of several schemas that all fail was nearest: the first that checked the most."""
    counts = [_extent(value, part) for part in parts]
    return counts.index(max(counts))


def _extent(value: Any, schema: Structural) -> int:
    """How many checks a schema makes of a value, roughly."""
    count = 1 + bool(schema.get("type"))
    if isinstance(value, dict):
        properties = schema.get("properties") or _NOTHING
        count += sum(_extent(item, properties[key]) for key, item in value.items() if key in properties)
    elif isinstance(value, list) and isinstance(items := schema.get("items"), dict):
        count += sum(_extent(item, items) for item in value)
    return count


def _string_rule(value: Any, schema: Structural, path: str) -> Iterator[FieldError]:
    if not isinstance(value, str):
        return
    most, least, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if most is not None and len(value) > most:
        yield FieldError.too_long(_field(path), most)
    elif least is not None and len(value) < least:
        yield _invalid(path, value, f"should be at least {least} chars long")
    elif pattern and not _matches(pattern, value):
        yield _invalid(path, value, f"should match '{pattern}'")


def _matches(pattern: str, value: str) -> bool:
    """Whether the value matches; a pattern that is no expression is not enforced."""
    try:
        return compiled(pattern).matches(value)
    except PatternError:
        return True


def _format_rule(value: Any, schema: Structural, path: str) -> Iterator[FieldError]:
    name = schema.get("format") or ""
    if isinstance(value, str) and is_known_format(name) and not matches_format(name, value):
        why = f"{path} in body must be of type {name}: {quoted(value)}"
        yield FieldError.type_invalid(_field(path), value, why)


def _number_rule(value: Any, schema: Structural, path: str) -> Iterator[FieldError]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    factor, least, most = schema.get("multipleOf"), schema.get("minimum"), schema.get("maximum")
    whole = isinstance(value, int)
    if factor and (value % int(factor) if whole and int(factor) else (value / factor) % 1):
        yield _invalid(path, value, f"should be a multiple of {_bound(factor, whole)}")
    if least is not None:
        exclusive = schema.get("exclusiveMinimum") is True
        bound = int(least) if whole else least
        if value < bound or (exclusive and value == bound):
            how = "should be greater than" if exclusive else "should be greater than or equal to"
            yield _invalid(path, value, f"{how} {_bound(least, whole)}")
    if most is not None:
        exclusive = schema.get("exclusiveMaximum") is True
        bound = int(most) if whole else most
        if value > bound or (exclusive and value == bound):
            how = "should be less than" if exclusive else "should be less than or equal to"
            yield _invalid(path, value, f"{how} {_bound(most, whole)}")


def _bound(number: float, whole: bool) -> str:
    return str(int(number)) if whole else float_text(float(number))


def _list_rule(value: Any, schema: Structural, path: str) -> Iterator[FieldError]:
    if not isinstance(value, list):
        return
    if isinstance(items := schema.get("items"), dict):
        for index, item in enumerate(value):
            yield from _check(item, items, f"{path}[{index}]")
    least, most = schema.get("minItems"), schema.get("maxItems")
    if least is not None and len(value) < least:
        yield _invalid(path, len(value), f"should have at least {least} items")
    if most is not None and len(value) > most:
        yield FieldError.too_many(_field(path), len(value), most)
    if schema.get("uniqueItems") and len({json_text(item, sort_keys=True) for item in value}) != len(value):
        yield _invalid(path, None, "shouldn't contain duplicates")


def _enum_rule(value: Any, schema: Structural, path: str) -> Iterator[FieldError]:
    allowed = schema.get("enum")
    if not allowed:
        return
    text = json_text(value, sort_keys=True)
    if not any(json_text(item, sort_keys=True) == text for item in allowed):
        names = [item if isinstance(item, str) else json_text(item, sort_keys=True) for item in allowed]
        yield FieldError.not_supported(_field(path), value, names)


def _object_rule(value: Any, schema: Structural, path: str) -> Iterator[FieldError]:
    if not isinstance(value, dict):
        return
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    if least is not None and len(value) < least:
        yield _invalid(path, len(value), f"should have at least {least} properties")
    if most is not None and len(value) > most:
        yield FieldError.too_many(_field(path), len(value), most)
    properties, additional = schema.get("properties") or _NOTHING, schema.get("additionalProperties")
    for key, item in value.items():
        if key in properties:
            here = f"{path}.{key}" if path else key
            yield from _check(item, properties[key], here)
        elif isinstance(additional, dict):
            yield from _check(item, additional, f"{path}.{key}")
        elif additional is False:
            yield FieldError.invalid(_field(path), key, f"{path}.{key} in body is a forbidden property")
    for key in schema.get("required") or ():
        if key not in value:
            yield FieldError.required(_field(f"{path}.{key}"))


_Rule = Callable[[Any, Structural, str], Iterator[FieldError]]
_RULES: Final[tuple[_Rule, ...]] = (
    _type_rule,
    _alternatives_rule,
    _string_rule,
    _format_rule,
    _number_rule,
    _list_rule,
    _enum_rule,
    _object_rule,
)
_RULES_FOR_NULL: Final[tuple[_Rule, ...]] = (_type_rule, _enum_rule)
