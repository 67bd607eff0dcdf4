"""The protobuf messages of the built-in kinds: which field has which number, name and type.

`protobuf_fields.txt` is written by `scripts/protobuf-table` from the published Kubernetes modules, one message a line,
each field as `number:name:type`. Marks before the type: `[]` repeated, `{}` a map by string, `^` a message whose fields
belong to the one around it, `*` a pointer in Go (its zero differs from unset), `!` shown by JSON even when zero. The
table is read when the first protobuf body comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

SCALARS: Final = frozenset({"string", "int", "bool", "bytes", "double"})
_MARKS: Final = ("[]", "{}", "^", "*", "!")


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    shape: str
    """`[]`, `{}`, `^` or nothing."""
    kind: str
    """A scalar's name, or a message's with its package."""
    zeros: bool
    """A zero on the wire is a value, not an unset field."""


@cache
def messages() -> dict[str, dict[int, Field]]:
    table: dict[str, dict[int, Field]] = {}
    text = files(__package__).joinpath("protobuf_fields.txt").read_text(encoding="utf-8")
    for line in text.splitlines()[1:]:
        name, *fields = line.split()
        package = name.rpartition(".")[0]
        table[name] = {int(number): _field(label, kind, package) for number, label, kind in map(_split, fields)}
    return table


def _split(field: str) -> tuple[str, str, str]:
    number, label, kind = field.split(":")
    return number, label, kind


def _field(label: str, kind: str, package: str) -> Field:
    mark = next((mark for mark in _MARKS if kind.startswith(mark)), "")
    kind = kind.removeprefix(mark)
    known = kind in SCALARS or "." in kind
    shape = mark if mark not in ("*", "!") else ""
    return Field(label, shape, kind if known else f"{package}.{kind}", mark in ("*", "!"))


def message_of(version: str, kind: str) -> str | None:
    """The message of a kind, or None where the kind has no protobuf encoding."""
    group, _, number = version.rpartition("/")
    known = messages()
    if group and "." in group and not group.endswith(".k8s.io"):
        return None
    for candidate in (f"{group.partition('.')[0] or 'core'}.{number}.{kind}", f"meta.v1.{kind}"):
        if candidate in known:
            return candidate
    return None
