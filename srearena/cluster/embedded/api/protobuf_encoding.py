"""Answers in the protobuf encoding of Kubernetes, for clients that accept nothing else.

The inverse of `protobuf`: what the table has no field for is left out, and a kind without messages (a custom resource,
a table) cannot be encoded at all.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

import orjson

from srearena.cluster.embedded.api.protobuf import MAGIC
from srearena.cluster.embedded.api.protobuf_table import Field, message_of, messages
from srearena.cluster.embedded.durations import parse_duration, parse_time
from srearena.cluster.embedded.objects import Obj

_VARINT, _FIXED64, _DELIMITED = 0, 1, 2


class NotEncodable(ValueError):
    """The kind has no protobuf encoding."""


def encode(obj: Obj) -> bytes:
    """An object as a protobuf body: the magic number and an envelope that names its kind."""
    version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
    message = message_of(version, kind)
    if message is None:
        raise NotEncodable(f"{version} {kind}")
    about = _text(1, version) + _text(2, kind)
    return MAGIC + delimited(1, about) + delimited(2, _message(obj, message)) + _text(3, "") + _text(4, "")


def encode_event(kind: str, obj: Obj) -> bytes:
    """One event of a watch, with its length before it."""
    frame = _text(1, kind) + delimited(2, delimited(1, encode(obj)))
    return struct.pack(">I", len(frame)) + frame


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    result = bytearray()
    while number > 127:
        result.append(number & 127 | 128)
        number >>= 7
    result.append(number)
    return bytes(result)


def delimited(number: int, data: bytes) -> bytes:
    return varint(number << 3 | _DELIMITED) + varint(len(data)) + data


def _text(number: int, text: str) -> bytes:
    return delimited(number, text.encode())


def _integer(number: int, value: int) -> bytes:
    return varint(number << 3 | _VARINT) + varint(int(value))


def _double(number: int, value: float) -> bytes:
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


_SCALARS: Final[dict[str, Callable[[int, Any], bytes]]] = {
    "string": _text,
    "int": _integer,
    "bool": _integer,
    "bytes": lambda number, value: delimited(number, base64.b64decode(value)),
    "double": _double,
}


def _time(text: str) -> bytes:
    return _integer(1, int(parse_time(text) // 1))


def _micro_time(text: str) -> bytes:
    seconds, micros = divmod(round(parse_time(text) * 10**6), 10**6)
    return _integer(1, seconds) + _integer(2, micros * 1000)


def _int_or_string(value: int | str) -> bytes:
    if isinstance(value, str):
        return _integer(1, 1) + _integer(2, 0) + _text(3, value)
    return _integer(1, 0) + _integer(2, value) + _text(3, "")


def _raw_json(value: Any) -> bytes:
    return delimited(1, orjson.dumps(value))


def _items(values: list[str]) -> bytes:
    return b"".join(_text(1, value) for value in values)


def _schema(value: Obj) -> bytes:
    return _message(value, "apiextensions.v1.JSONSchemaProps")


def _schema_or_array(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(delimited(2, _schema(item)) for item in value)
    return delimited(1, _schema(value))


def _schema_or_bool(value: Any) -> bytes:
    return _integer(1, value) if isinstance(value, bool) else _integer(1, 1) + delimited(2, _schema(value))


def _schema_or_strings(value: Any) -> bytes:
    if isinstance(value, list):
        return b"".join(_text(2, item) for item in value)
    return delimited(1, _schema(value))


_SPECIAL: Final[dict[str, Callable[[Any], bytes]]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "meta.v1.Duration": lambda text: _integer(1, round(parse_duration(text) * 10**9)),
    "meta.v1.FieldsV1": _raw_json,
    "meta.v1.Verbs": _items,
    "runtime.RawExtension": _raw_json,
    "resource.Quantity": lambda value: _text(1, str(value)),
    "intstr.IntOrString": _int_or_string,
    "apiextensions.v1.JSON": _raw_json,
    "apiextensions.v1.JSONSchemaPropsOrArray": _schema_or_array,
    "apiextensions.v1.JSONSchemaPropsOrBool": _schema_or_bool,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": _schema_or_strings,
}


@cache
def _by_name(message: str) -> tuple[tuple[str, int, Field], ...]:
    return tuple((field.name, number, field) for number, field in sorted(messages()[message].items()))


def _message(obj: Obj, message: str) -> bytes:
    return b"".join(_parts(obj, message))


def _parts(obj: Obj, message: str) -> Iterator[bytes]:
    for name, number, field in _by_name(message):
        if field.shape == "^":
            yield delimited(number, _message(obj, field.kind))
            continue
        value = obj.get(name)
        if value is None:
            continue
        if field.shape == "[]":
            yield from (_value(number, item, field.kind) for item in value)
        elif field.shape == "{}":
            for key, item in value.items():
                yield delimited(number, _text(1, key) + _value(2, item, field.kind))
        else:
            yield _value(number, value, field.kind)


def _value(number: int, value: Any, kind: str) -> bytes:
    scalar = _SCALARS.get(kind)
    if scalar is not None:
        return scalar(number, value)
    special = _items if kind.endswith(".ExtraValue") else _SPECIAL.get(kind)
    return delimited(number, special(value) if special is not None else _message(value, kind))
