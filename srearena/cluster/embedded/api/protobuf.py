"""Bodies in the protobuf encoding of Kubernetes, which Go clients use for the built-in kinds.

`protobuf_table` knows the fields. One that is not in the table is skipped, as any protobuf reader does. A zero on the
wire is kept where the Go type has a pointer, or where the JSON encoding shows zeros; elsewhere it is left out, as the
JSON encoding would.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from srearena.cluster.embedded.api.protobuf_table import message_of, messages
from srearena.cluster.embedded.durations import format_duration, format_micro_time, format_time
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import BadRequest

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
_MAX_DEPTH: Final = 100


class Malformed(ValueError):
    """The bytes are not a protobuf message."""


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Malformed("unexpected EOF")
        byte = data[at]
        at += 1
        result |= (byte & 127) << shift
        if byte < 128:
            return result, at
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Each field of a message: its number, and an integer or bytes."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield number, value
            continue
        if wire == 2:
            size, at = _varint(data, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise Malformed(f"illegal wireType {wire}")
        if at + size > len(data):
            raise Malformed("unexpected EOF")
        yield number, data[at : at + size]
        at += size


def _signed(value: Any) -> int:
    if not isinstance(value, int):
        raise Malformed("wrong wireType for an integer")
    number = value & (2**64 - 1)
    return number - 2**64 if number >= 2**63 else number


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("wrong wireType for bytes")
    return value


def _numbered(data: Any) -> dict[int, Any]:
    return dict(_fields(_bytes(data)))


def _time(data: Any) -> str | None:
    fields = _numbered(data)
    return format_time(float(_signed(fields.get(1, 0)))) if fields else None


def _micro_time(data: Any) -> str | None:
    fields = _numbered(data)
    return format_micro_time(_signed(fields.get(1, 0)) + _signed(fields.get(2, 0)) / 1e9) if fields else None


def _int_or_string(data: Any) -> int | str:
    fields = _numbered(data)
    return _bytes(fields.get(3, b"")).decode() if fields.get(1) else _signed(fields.get(2, 0))


def _double(value: Any) -> float | int:
    raw = _bytes(value)
    if len(raw) != 8:
        raise Malformed("wrong wireType for a double")
    number = float(struct.unpack("<d", raw)[0])
    if not math.isfinite(number):
        raise Malformed(f"json: unsupported value: {number}")
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _raw_json(data: Any) -> Any:
    return orjson.loads(_bytes(_numbered(data).get(1, b"null")) or b"null")


_SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": lambda value: _bytes(value).decode(),
    "int": _signed,
    "bool": lambda value: bool(_signed(value)),
    "bytes": lambda value: base64.b64encode(_bytes(value)).decode(),
    "double": _double,
}
_SPECIAL: Final[dict[str, Callable[[Any], Any]]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "meta.v1.Duration": lambda data: format_duration(_signed(_numbered(data).get(1, 0)) / 1e9),
    "meta.v1.FieldsV1": _raw_json,
    "runtime.RawExtension": _raw_json,
    "apiextensions.v1.JSON": _raw_json,
    "resource.Quantity": lambda data: _bytes(_numbered(data).get(1, b"0")).decode(),
    "intstr.IntOrString": _int_or_string,
}


def _items(data: Any) -> list[str]:
    return [_bytes(value).decode() for _, value in _fields(_bytes(data))]


def _decoded(data: bytes, message: str, depth: int) -> Obj:
    if depth > _MAX_DEPTH:
        raise Malformed("exceeded max depth")
    table = messages()[message]
    result: Obj = {}
    for number, raw in _fields(data):
        field = table.get(number)
        if field is None:
            continue
        if field.shape == "{}":
            entry = _numbered(raw)
            key = _bytes(entry.get(1, b"")).decode()
            result.setdefault(field.name, {})[key] = _value(entry.get(2, b""), field.kind, depth)
            continue
        value = _value(raw, field.kind, depth)
        if field.shape == "[]":
            result.setdefault(field.name, []).append(value)
        elif field.shape == "^":
            result.update(value)
        elif value is not None and (field.zeros or value not in ("", 0, False)):
            result[field.name] = value
    return result


def _schema_or_array(found: Obj) -> Any:
    return found["jSONSchemas"] if "jSONSchemas" in found else found.get("schema")


def _schema_or_bool(found: Obj) -> Any:
    return found["schema"] if "schema" in found else found.get("allows", False)


def _schema_or_strings(found: Obj) -> Any:
    return found["property"] if "property" in found else found.get("schema")


# Messages that the JSON encoding shows as one of several things.
_UNIONS: Final[dict[str, Callable[[Obj], Any]]] = {
    "apiextensions.v1.JSONSchemaPropsOrArray": _schema_or_array,
    "apiextensions.v1.JSONSchemaPropsOrBool": _schema_or_bool,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _schema_or_strings,
}


def _value(raw: Any, kind: str, depth: int) -> Any:
    read = _SCALARS.get(kind) or _SPECIAL.get(kind)
    if read is not None:
        return read(raw)
    if kind.endswith((".ExtraValue", ".Verbs")):
        return _items(raw)
    found = _decoded(_bytes(raw), kind, depth + 1)
    return _UNIONS[kind](found) if kind in _UNIONS else found


def decode(data: bytes) -> Obj:
    """The object in a protobuf body, in its JSON shape."""
    try:
        if not data.startswith(MAGIC):
            raise Malformed("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
        envelope = _numbered(data[len(MAGIC) :])
        about = _numbered(envelope.get(1, b""))
        version, kind = _bytes(about.get(1, b"")).decode(), _bytes(about.get(2, b"")).decode()
        message = message_of(version, kind)
        if message is None:
            raise BadRequest(f'no kind "{kind}" is registered for version "{version}" in the protobuf encoding')
        return {"apiVersion": version, "kind": kind, **_decoded(_bytes(envelope.get(2, b"")), message, 0)}
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"couldn't decode protobuf: {error}") from None
