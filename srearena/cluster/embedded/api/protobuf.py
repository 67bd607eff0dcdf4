"""Bodies in the protobuf encoding of Kubernetes, which kubectl uses for what it creates through typed clients.

Only reading is offered: every client that sends protobuf also accepts JSON back. The numbers of the fields are in
`protobuf_fields.txt`, one message a line (`number:name:type`; `[]` is repeated, `{}` a map by string, `^` a message
whose fields belong to the one around it). A field that is not in the table is skipped, as any protobuf reader does.

Protobuf does not tell an unset field from an empty one where the Go type has no pointer: such zeros are dropped, as
the JSON encoding would have left them out, except those of `_KEPT`, which mean something.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import orjson

from srearena.cluster.embedded.durations import format_duration, format_micro_time, format_time
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.registry.errors import BadRequest

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
_MAGIC: Final = b"k8s\x00"
_MAX_DEPTH: Final = 100
_KEPT: Final = frozenset(
    """
    allocateLoadBalancerNodePorts allowPrivilegeEscalation allowed automountServiceAccountToken backoffLimit
    blockOwnerDeletion completions containerPort controller currentHealthy currentReplicas defaultMode
    desiredHealthy desiredReplicas disruptionsAllowed enableServiceLinks expectedPods expirationSeconds
    failedJobsHistoryLimit fsGroup globalDefault gracePeriodSeconds hostUsers immutable maxReplicas minReplicas mode
    optional orphanDependents parallelism partition port priority readOnlyRootFilesystem ready replicas restartCount
    revisionHistoryLimit runAsGroup runAsNonRoot runAsUser shareProcessNamespace storageClassName
    successfulJobsHistoryLimit suspend terminationGracePeriodSeconds tolerationSeconds ttlSecondsAfterFinished value
    """.split()
)


class Malformed(ValueError):
    """The bytes are not a protobuf message."""


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    shape: str
    """`[]`, `{}`, `^` or nothing."""
    kind: str
    """A scalar's name, or a message's with its package."""


@cache
def _messages() -> dict[str, dict[int, Field]]:
    table: dict[str, dict[int, Field]] = {}
    text = files(__package__).joinpath("protobuf_fields.txt").read_text()
    for line in text.splitlines():
        name, *fields = line.split()
        package = name.rpartition(".")[0]
        table[name] = {}
        for field in fields:
            number, label, kind = field.split(":")
            shape = kind[:2] if kind[:2] in ("[]", "{}") else "^" if kind[0] == "^" else ""
            kind = kind.removeprefix(shape)
            local = f"{package}.{kind}"
            table[name][int(number)] = Field(label, shape, kind if kind in _SCALARS or "." in kind else local)
    return table


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


def _raw_json(data: Any) -> Any:
    return orjson.loads(_bytes(_numbered(data).get(1, b"null")) or b"null")


_SCALARS: Final[dict[str, Callable[[Any], Any]]] = {
    "string": lambda value: _bytes(value).decode(),
    "int": _signed,
    "bool": lambda value: bool(_signed(value)),
    "bytes": lambda value: base64.b64encode(_bytes(value)).decode(),
}
_SPECIAL: Final[dict[str, Callable[[Any], Any]]] = {
    "meta.v1.Time": _time,
    "meta.v1.MicroTime": _micro_time,
    "meta.v1.Duration": lambda data: format_duration(_signed(_numbered(data).get(1, 0)) / 1e9),
    "meta.v1.FieldsV1": _raw_json,
    "runtime.RawExtension": _raw_json,
    "resource.Quantity": lambda data: _bytes(_numbered(data).get(1, b"0")).decode(),
    "intstr.IntOrString": _int_or_string,
}


def _items(data: Any) -> list[str]:
    return [_bytes(value).decode() for _, value in _fields(_bytes(data))]


def _decoded(data: bytes, message: str, depth: int) -> Obj:
    if depth > _MAX_DEPTH:
        raise Malformed("exceeded max depth")
    table = _messages()[message]
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
        elif value is not None and (value not in ("", 0, False) or field.name in _KEPT):
            result[field.name] = value
    return result


def _value(raw: Any, kind: str, depth: int) -> Any:
    read = _SCALARS.get(kind) or _SPECIAL.get(kind)
    if read is not None:
        return read(raw)
    if kind.endswith(".ExtraValue"):
        return _items(raw)
    return _decoded(_bytes(raw), kind, depth + 1)


def decode(data: bytes) -> Obj:
    """The object in a protobuf body, in its JSON shape."""
    try:
        if not data.startswith(_MAGIC):
            raise Malformed("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
        envelope = _numbered(data[len(_MAGIC) :])
        about = _numbered(envelope.get(1, b""))
        version, kind = _bytes(about.get(1, b"")).decode(), _bytes(about.get(2, b"")).decode()
        message = _message_of(version, kind)
        return {"apiVersion": version, "kind": kind, **_decoded(_bytes(envelope.get(2, b"")), message, 0)}
    except (ValueError, OverflowError) as error:
        raise BadRequest(f"couldn't decode protobuf: {error}") from None


def _message_of(version: str, kind: str) -> str:
    group, _, number = version.rpartition("/")
    message = f"{group.partition('.')[0] or 'core'}.{number}.{kind}"
    known = _messages()
    for candidate in (message, f"meta.v1.{kind}"):
        if candidate in known:
            return candidate
    raise BadRequest(f'no kind "{kind}" is registered for version "{version}" in the protobuf encoding')
