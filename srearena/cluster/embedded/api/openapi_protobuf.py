"""OpenAPI version 2 in the protobuf encoding of gnostic, which kubectl up to 1.28 asks for.

The numbers are those of `openapiv2/OpenAPIv2.proto` in github.com/google/gnostic-models v0.7.0. Extensions (`x-...`)
and values of any type are carried as YAML text.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson
import yaml

from srearena.cluster.embedded.api.protobuf_encoding import delimited, varint
from srearena.cluster.embedded.objects import Obj

_FIXED64: Final = 1
Encoder = Callable[[int, Any], bytes]
Fields = Mapping[str, tuple[int, Encoder]]


def encode(document: Obj) -> bytes:
    """A whole document."""
    return _message(_DOCUMENT, document)


def _text(number: int, value: str) -> bytes:
    return delimited(number, value.encode()) if value else b""


def _boolean(number: int, value: bool) -> bytes:
    return varint(number << 3) + b"\1" if value else b""


def _integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value) if value else b""


def _double(number: int, value: float) -> bytes:
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value) if value else b""


def _texts(number: int, values: list[str]) -> bytes:
    return b"".join(delimited(number, value.encode()) for value in values)


class _Dumper(yaml.CSafeDumper):
    """Quotes as Go's encoder does: what would be read as something else than a text has double quotes."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        tag: str = self.resolve(yaml.ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
        ambiguous = tag != _TEXT_TAG
        return self.represent_scalar(_TEXT_TAG, text, style='"' if ambiguous else None)


_TEXT_TAG: Final = "tag:yaml.org,2002:str"
_UNLIMITED: Final = 1 << 30
_Dumper.add_representer(str, _Dumper.represent_text)


def _yaml(value: Any) -> bytes:
    return _yaml_of(orjson.dumps(value))


@lru_cache(maxsize=4096)
def _yaml_of(encoded: bytes) -> bytes:
    text = yaml.dump(orjson.loads(encoded), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_UNLIMITED)
    # The mark of a document's end that PyYAML puts behind a plain scalar.
    return _text(2, text.removesuffix("...\n"))


def _any(number: int, value: Any) -> bytes:
    return delimited(number, _yaml(value))


def _anys(number: int, values: list[Any]) -> bytes:
    return b"".join(_any(number, value) for value in values)


def _named(number: int, name: str, value: bytes) -> bytes:
    return delimited(number, _text(1, name) + delimited(2, value))


def _message(fields: Fields, obj: Obj, extensions: int = 0) -> bytes:
    """A message with these fields, and its extensions under a number of their own."""
    found = [(field[0], field[1](field[0], obj[name])) for name, field in fields.items() if name in obj]
    parts = [data for _, data in sorted(found, key=lambda part: part[0])]
    if extensions:
        parts += [_named(extensions, name, _yaml(value)) for name, value in obj.items() if name.startswith("x-")]
    return b"".join(parts)


def _schema(value: Obj) -> bytes:
    return _message(_SCHEMA, value, extensions=31)


def _types(number: int, value: str | list[str]) -> bytes:
    return delimited(number, _texts(1, [value] if isinstance(value, str) else value))


def _additional(number: int, value: Obj | bool) -> bytes:
    return delimited(number, _boolean(2, value) if isinstance(value, bool) else delimited(1, _schema(value)))


def _named_schemas(number: int, value: dict[str, Obj]) -> bytes:
    return delimited(number, b"".join(_named(1, name, _schema(schema)) for name, schema in value.items()))


_SCHEMA: Final[Fields] = {
    "$ref": (1, _text),
    "format": (2, _text),
    "title": (3, _text),
    "description": (4, _text),
    "default": (5, _any),
    "multipleOf": (6, _double),
    "maximum": (7, _double),
    "exclusiveMaximum": (8, _boolean),
    "minimum": (9, _double),
    "exclusiveMinimum": (10, _boolean),
    "maxLength": (11, _integer),
    "minLength": (12, _integer),
    "pattern": (13, _text),
    "maxItems": (14, _integer),
    "minItems": (15, _integer),
    "uniqueItems": (16, _boolean),
    "maxProperties": (17, _integer),
    "minProperties": (18, _integer),
    "required": (19, _texts),
    "enum": (20, _anys),
    "additionalProperties": (21, _additional),
    "type": (22, _types),
    "items": (23, lambda number, value: delimited(number, delimited(1, _schema(value)))),
    "allOf": (24, lambda number, values: b"".join(delimited(number, _schema(value)) for value in values)),
    "properties": (25, _named_schemas),
    "discriminator": (26, _text),
    "readOnly": (27, _boolean),
    "example": (30, _any),
}
# Parameters in a path lack `allowEmptyValue`, so that everything after it has another number.
_QUERY_PARAMETER: Final[Fields] = {
    "required": (1, _boolean),
    "in": (2, _text),
    "description": (3, _text),
    "name": (4, _text),
    "allowEmptyValue": (5, _boolean),
    "type": (6, _text),
    "format": (7, _text),
    "uniqueItems": (20, _boolean),
}
_PATH_PARAMETER: Final[Fields] = {
    name: (number - 1 if number > 5 else number, encoder)
    for name, (number, encoder) in _QUERY_PARAMETER.items()
    if name != "allowEmptyValue"
}
_BODY_PARAMETER: Final[Fields] = {
    "description": (1, _text),
    "name": (2, _text),
    "in": (3, _text),
    "required": (4, _boolean),
    "schema": (5, lambda number, value: delimited(number, _schema(value))),
}


def _parameters(number: int, values: list[Obj]) -> bytes:
    return b"".join(delimited(number, delimited(1, _parameter(value))) for value in values)


def _parameter(value: Obj) -> bytes:
    if value["in"] == "body":
        return delimited(1, _message(_BODY_PARAMETER, value, extensions=6))
    if value["in"] == "path":
        return delimited(2, delimited(4, _message(_PATH_PARAMETER, value, extensions=22)))
    return delimited(2, delimited(3, _message(_QUERY_PARAMETER, value, extensions=23)))


def _responses(number: int, value: dict[str, Obj]) -> bytes:
    return delimited(number, b"".join(_named(1, code, delimited(1, _response(one))) for code, one in value.items()))


def _response(value: Obj) -> bytes:
    schema = value.get("schema")
    return _text(1, value["description"]) + (delimited(2, delimited(1, _schema(schema))) if schema else b"")


_OPERATION: Final[Fields] = {
    "tags": (1, _texts),
    "summary": (2, _text),
    "description": (3, _text),
    "operationId": (5, _text),
    "produces": (6, _texts),
    "consumes": (7, _texts),
    "parameters": (8, _parameters),
    "responses": (9, _responses),
    "schemes": (10, _texts),
    "deprecated": (11, _boolean),
}


def _operation(number: int, value: Obj) -> bytes:
    return delimited(number, _message(_OPERATION, value, extensions=13))


_PATH_ITEM: Final[Fields] = {
    "get": (2, _operation),
    "put": (3, _operation),
    "post": (4, _operation),
    "delete": (5, _operation),
    "options": (6, _operation),
    "head": (7, _operation),
    "patch": (8, _operation),
    "parameters": (9, _parameters),
}


def _paths(number: int, value: dict[str, Obj]) -> bytes:
    named = (_named(2, path, _message(_PATH_ITEM, item, extensions=10)) for path, item in value.items())
    return delimited(number, b"".join(named))


_API_KEY: Final[Fields] = {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}


def _security(number: int, values: list[dict[str, list[str]]]) -> bytes:
    return b"".join(
        delimited(number, b"".join(_named(1, name, _texts(1, scopes)) for name, scopes in value.items()))
        for value in values
    )


def _security_definitions(number: int, value: dict[str, Obj]) -> bytes:
    # Every one of the cluster's is an API key: field 2 of the item.
    named = (_named(1, name, delimited(2, _message(_API_KEY, one, extensions=5))) for name, one in value.items())
    return delimited(number, b"".join(named))


_INFO: Final[Fields] = {"title": (1, _text), "version": (2, _text), "description": (3, _text)}
_DOCUMENT: Final[Fields] = {
    "swagger": (1, _text),
    "info": (2, lambda number, value: delimited(number, _message(_INFO, value, extensions=7))),
    "paths": (8, _paths),
    "definitions": (9, _named_schemas),
    "security": (12, _security),
    "securityDefinitions": (13, _security_definitions),
}
