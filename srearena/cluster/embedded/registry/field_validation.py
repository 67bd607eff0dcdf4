"""Field validation: convert an object as a client sent it to the object as the server stores it.

Fields that are not in the schema are dropped and, if the client requested it, reported; a value of the wrong type ends
the request with the error of Go's JSON decoder. The result has the form in which Go writes it (see `wire_forms`): zero
values with `omitempty` are left out, structs that are always written are present, quantities and times are in
canonical form. Nulls are never added: a field that Go would write as null is absent.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from srearena.cluster.embedded.go_text import plain, quoted
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import BadRequest, FieldError, Invalid
from srearena.cluster.embedded.registry.json_values import kind_of, owned, written
from srearena.cluster.embedded.registry.schema import Schema, Shape
from srearena.cluster.embedded.registry.wire_forms import wire_form, zero_of
from srearena.cluster.embedded.registry.wire_scalars import (
    WrongKind,
    base64_text,
    int_or_string,
    micro_time_text,
    quantity_text,
    time_text,
)

_MOST_STRICT_ERRORS: Final = 100
_BOUNDS: Final = {"int32": 2**31, "int64": 2**63, "": 2**63}
_GO_SCALARS: Final = {Shape.STRING: "string", Shape.BOOLEAN: "bool", Shape.NUMBER: "float64"}
_SPECIAL_TYPES: Final = {Shape.QUANTITY: "resource.Quantity", Shape.INT_OR_STRING: "intstr.IntOrString"}
_GO_KINDS: Final = {dict: "map", list: "slice", str: "string", bool: "bool", int: "int64", float: "float64"}


class Directive(StrEnum):
    """What to do about unknown and repeated fields: the `fieldValidation` parameter."""

    STRICT = "Strict"
    WARN = "Warn"
    IGNORE = "Ignore"


class DecodeError(ValueError):
    """A value that does not fit its field."""


@dataclass(slots=True)
class Decoded:
    obj: Obj
    strict: list[str] = field(default_factory=list)
    """What strict decoding complains about, such as `unknown field "spec.foo"`."""


def decode(obj: Obj, schema: Schema) -> Decoded:
    """The object as JSON is decoded. Raises DecodeError; never changes `obj`, and shares nothing with it."""
    written(obj)  # bounds the depth of everything below
    return _Decoder(_JsonErrors()).run(obj, schema)


def decode_object(
    obj: Obj,
    schema: Schema,
    *,
    kind: str,
    version: str,
    directive: Directive = Directive.WARN,
    repeated: Iterable[str] = (),
) -> tuple[Obj, list[str]]:
    """What a create or update carries, and the warnings about it.

    `version` is without the group; `repeated` are the paths of fields that came twice (`json_reader`).
    """
    try:
        decoded = decode(obj, schema)
    except DecodeError as problem:
        raise _unfit(kind, version, str(problem)) from None
    strict = [*decoded.strict, *(f"duplicate field {quoted(path)}" for path in repeated)][:_MOST_STRICT_ERRORS]
    if strict and directive is Directive.STRICT:
        raise _unfit(kind, version, f"strict decoding error: {', '.join(strict)}")
    return decoded.obj, strict if directive is Directive.WARN else []


def _unfit(kind: str, version: str, why: str) -> BadRequest:
    return BadRequest(f"{kind} in version {quoted(version)} cannot be handled as a {kind}: {why}")


def decode_patched(
    obj: Obj,
    schema: Schema,
    *,
    patch: Any,
    strategic: bool = False,
    directive: Directive = Directive.WARN,
    strict: Iterable[str] = (),
) -> tuple[Obj, list[str]]:
    """What a patch made of an object, and the warnings about it.

    A strategic merge patch is decoded from memory, not from text, which has errors of its own. `strict` is what
    reading the patch itself has found (`json_patch.check_operations`, repeated fields).
    """
    text = written(obj)
    shown = plain(patch) if strategic else text.decode()
    try:
        decoded = _Decoder(_ConversionErrors() if strategic else _JsonErrors()).run(obj, schema)
    except DecodeError as problem:
        raise Invalid("", "", [FieldError.invalid("patch", shown, str(problem))]) from None
    found = [*strict, *(sorted(decoded.strict) if strategic else decoded.strict)]
    if found and directive is Directive.STRICT:
        why = f"strict decoding error: {', '.join(found)}"
        raise Invalid("", "", [FieldError.invalid("patch", shown, why)])
    return decoded.obj, found if directive is Directive.WARN else []


# Where in the object a value is: the way to its owner, the key or index there, and the owner's schema.
_Path = tuple[Any, str | int, Schema] | None
_Decode = Callable[[Any, Schema, _Path], Any]


def _path_text(path: _Path) -> str:
    parts: list[str] = []
    while path is not None:
        above, key, _ = path
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
        path = above
    return "".join(reversed(parts)).lstrip(".")


def _go_type(schema: Schema, path: _Path) -> str:
    """The Go type of the field at `path`."""
    if path is not None:
        above, key, owner = path
        if owner.shape is Shape.STRUCT and (named := wire_form(owner).go_types.get(str(key))):
            return named
        if owner.shape in (Shape.LIST, Shape.MAP) and above is not None:
            outer = _go_type(owner, above)
            inner = outer.removeprefix("[]") if owner.shape is Shape.LIST else outer.partition("]")[2]
            return inner if inner and inner != outer else _plain_go_type(schema)
    return _plain_go_type(schema)


def _plain_go_type(schema: Schema) -> str:
    if schema.format == "byte":
        return "[]uint8"
    if schema.shape is Shape.INTEGER:
        return schema.format or "int64"
    if scalar := _GO_SCALARS.get(schema.shape) or _SPECIAL_TYPES.get(schema.shape):
        return scalar
    if schema.shape is Shape.LIST:
        return f"[]{_plain_go_type(schema.element)}"
    if schema.shape is Shape.MAP and not schema.name:
        return f"map[string]{_plain_go_type(schema.element)}"
    return ".".join(schema.name.split(".")[-2:]) or "interface {}"


class _JsonErrors:
    """Errors of decoding JSON text: the first mismatch is reported at the end, a syntax error at once."""

    lenient = False

    def __init__(self) -> None:
        self.first = ""

    def mismatch(self, value: Any, schema: Schema, path: _Path, *, number: bool = False) -> None:
        if not self.first:
            what = f"number {value!r}" if number else kind_of(value)
            self.first = _cannot_unmarshal(what, _go_type(schema, path), path)

    def unparsable(self, problem: ValueError, schema: Schema, path: _Path) -> None:
        if isinstance(problem, WrongKind):
            raise DecodeError(_cannot_unmarshal(problem.found, problem.go_type, path))
        if schema.format != "byte":
            raise DecodeError(str(problem))
        self.first = self.first or str(problem)


def _cannot_unmarshal(what: str, go_type: str, path: _Path) -> str:
    """A mismatch where it is: the innermost struct, and the fields that lead there from the top."""
    fields: list[str] = []
    struct = ""
    while path is not None:
        above, key, owner = path
        if owner.shape is Shape.STRUCT:
            fields.append(str(key))
            struct = struct or owner.type_name
        path = above
    where = f"Go struct field {struct}.{'.'.join(reversed(fields))}" if fields else "Go value"
    return f"json: cannot unmarshal {what} into {where} of type {go_type}"


class _ConversionErrors:
    """Errors of turning maps in memory into structs: the first ends it."""

    lenient = True

    first = ""

    def mismatch(self, value: Any, schema: Schema, path: _Path, *, number: bool = False) -> None:
        kind = _GO_KINDS[type(value)]
        if schema.shape is Shape.STRUCT:
            raise DecodeError(f"cannot restore struct from: {kind}")
        if schema.shape is Shape.LIST or schema.format == "byte":
            raise DecodeError(f"cannot restore slice from {kind}")
        if schema.shape is Shape.MAP:
            raise DecodeError(f"cannot restore map from {kind}")
        convertible = (kind == "int64" and schema.shape is Shape.STRING) or (number and kind in ("int64", "float64"))
        if convertible:
            raise DecodeError(f"cannot convert {kind} to {_go_type(schema, path)}")
        raise DecodeError(f"unrecognized type: {_plain_go_type(schema)}")

    def unparsable(self, problem: ValueError, schema: Schema, path: _Path) -> None:
        prefix = "error decoding from json: " if schema.format == "byte" else ""
        raise DecodeError(f"{prefix}{problem}")


class _Decoder:
    """One walk over one object. A level of nesting costs one frame, so bounded depth is bounded recursion."""

    def __init__(self, errors: _JsonErrors | _ConversionErrors) -> None:
        self._errors = errors
        self._strict: dict[str, None] = {}
        self._by_shape: dict[Shape, _Decode] = {
            Shape.STRUCT: self._struct,
            Shape.MAP: self._map,
            Shape.LIST: self._list,
            Shape.STRING: self._string,
            Shape.INTEGER: self._integer,
            Shape.NUMBER: self._number,
            Shape.BOOLEAN: self._boolean,
            Shape.QUANTITY: self._parsed_by(quantity_text),
            Shape.INT_OR_STRING: self._parsed_by(int_or_string),
            Shape.ANY: lambda value, schema, path: owned(value),
        }

    def run(self, obj: Obj, schema: Schema) -> Decoded:
        result = self._struct(obj, schema, None)
        if self._errors.first:
            raise DecodeError(self._errors.first)
        return Decoded(result, list(self._strict))

    def _struct(self, value: Any, schema: Schema, path: _Path) -> Any:
        if not isinstance(value, dict):
            return self._errors.mismatch(value, schema, path)
        fields, form, by_shape = schema.fields, wire_form(schema), self._by_shape
        fleeting = form.fleeting
        result: Obj = {}
        for key, item in value.items():
            known = fields.get(key)
            if known is None:
                if schema.preserve_unknown:
                    result[key] = owned(item)
                else:
                    self._unknown((path, key, schema))
            elif item is not None:
                decoded = by_shape[known.shape](item, known, (path, key, schema))
                if decoded or key not in fleeting:
                    result[key] = decoded
        for key, zero in form.always.items():
            if zero is not None and key not in result:
                result[key] = zero_of(fields[key]) if isinstance(zero, dict) else zero
        return result

    def _unknown(self, path: _Path) -> None:
        if len(self._strict) < _MOST_STRICT_ERRORS:
            self._strict[f"unknown field {quoted(_path_text(path))}"] = None

    def _map(self, value: Any, schema: Schema, path: _Path) -> Any:
        if schema.name:  # a raw extension: whatever it is
            return owned(value)
        if not isinstance(value, dict):
            return self._errors.mismatch(value, schema, path)
        element = schema.element
        decode_one = self._by_shape[element.shape]
        result: Obj = {}
        for key, item in value.items():
            result[key] = _zero(element) if item is None else decode_one(item, element, (path, key, schema))
        return result

    def _list(self, value: Any, schema: Schema, path: _Path) -> Any:
        if not isinstance(value, list):
            return self._errors.mismatch(value, schema, path)
        element = schema.element
        decode_one = self._by_shape[element.shape]
        result: list[Any] = []
        for index, item in enumerate(value):
            result.append(_zero(element) if item is None else decode_one(item, element, (path, index, schema)))
        return result

    def _string(self, value: Any, schema: Schema, path: _Path) -> Any:
        if schema.format in _TEXT_PARSERS and (schema.format != "date-time" or schema.name):
            if schema.format == "byte" and not isinstance(value, str):
                if isinstance(value, list) and all(type(item) is int and 0 <= item < 256 for item in value):
                    return base64.b64encode(bytes(value)).decode()
                return self._errors.mismatch(value, schema, path)
            parser = micro_time_text if schema.name.endswith("MicroTime") else _TEXT_PARSERS[schema.format]
            return self._parse(parser, value, schema, path)
        if not isinstance(value, str):
            return self._errors.mismatch(value, schema, path)
        return value

    def _integer(self, value: Any, schema: Schema, path: _Path) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._errors.mismatch(value, schema, path)
        if isinstance(value, float) and self._errors.lenient and value.is_integer():
            value = int(value)
        bound = _BOUNDS.get(schema.format, 2**63)
        if isinstance(value, int) and self._errors.lenient:
            value = (value + bound) % (2 * bound) - bound  # a conversion in Go just cuts off the upper bits
        if not isinstance(value, int) or not -bound <= value < bound:
            return self._errors.mismatch(value, schema, path, number=True)
        return value

    def _number(self, value: Any, schema: Schema, path: _Path) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._errors.mismatch(value, schema, path)
        return value

    def _boolean(self, value: Any, schema: Schema, path: _Path) -> Any:
        if not isinstance(value, bool):
            return self._errors.mismatch(value, schema, path)
        return value

    def _parsed_by(self, parser: Callable[[Any], Any]) -> _Decode:
        return lambda value, schema, path: self._parse(parser, value, schema, path)

    def _parse(self, parser: Callable[[Any], Any], value: Any, schema: Schema, path: _Path) -> Any:
        try:
            return parser(value)
        except ValueError as problem:
            self._errors.unparsable(problem, schema, path)
            return None


_TEXT_PARSERS: Final[dict[str, Callable[[Any], Any]]] = {"date-time": time_text, "byte": base64_text}


def _zero(schema: Schema) -> Any:
    """What null stands for in a list or map."""
    if schema.shape is Shape.STRUCT:
        return zero_of(schema)
    if schema.format == "byte":
        return None
    return {Shape.STRING: "", Shape.INTEGER: 0, Shape.NUMBER: 0, Shape.BOOLEAN: False, Shape.QUANTITY: "0"}.get(
        schema.shape
    )
