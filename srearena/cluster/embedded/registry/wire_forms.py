"""How Go writes each field of a built-in kind: when it leaves it out, and what it writes when nothing was set.

A JSON schema says which fields may be there; it does not say that a container always has `resources`, that
`paused: false` vanishes while `replicas: 0` stays, or that a condition's `lastProbeTime` is null. The API server
decodes every object into Go structs and writes it out again, so these habits show in everything it serves, and
in which fields count as set by whom. `wire_forms.json` lists, per definition, the fields whose habit cannot be
guessed from the schema: space-separated `field=habit:type`, read off the json tags of k8s.io/api v0.34. Habits:

    (empty)  a pointer: left out when null          s   a struct: always there, at least as {}
    o        a value: left out when zero            n   a list or map without omitempty: null when not set
    e        a list or map: left out when empty     z…  always there; what follows is its zero value
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

import orjson

from srearena.cluster.embedded.registry.schema import Schema, Shape

_ZEROS: Final[Mapping[Shape, str]] = {
    Shape.STRING: '""',
    Shape.INTEGER: "0",
    Shape.NUMBER: "0",
    Shape.BOOLEAN: "false",
    Shape.INT_OR_STRING: "0",
    Shape.QUANTITY: '"0"',
}
_NOTHING: Final[Mapping[str, Any]] = {}


class WireForm:
    """The habits of one struct's fields."""

    __slots__ = ("always", "fleeting", "go_types")

    def __init__(self, always: Mapping[str, Any], fleeting: frozenset[str], go_types: Mapping[str, str]) -> None:
        #: Fields that are always written, with what is written when nothing was set. Not to be changed.
        self.always = always
        #: Fields that are not written when they are zero or empty.
        self.fleeting = fleeting
        #: Fields whose Go type has a name of its own, such as `v1.RestartPolicy`.
        self.go_types = go_types


FREE: Final = WireForm(_NOTHING, frozenset(), _NOTHING)
_forms: dict[str, WireForm] = {}


def wire_form(schema: Schema) -> WireForm:
    """The habits of a struct; a custom resource has none."""
    name = schema.name
    if not name:
        return FREE
    found = _forms.get(name)
    if found is None:
        found = _forms.setdefault(name, _build(schema))
    return found


def zero_of(schema: Schema) -> Any:
    """The wire form of a zero struct, without null fields."""
    return {name: _fresh(value) for name, value in wire_form(schema).always.items() if value is not None}


def _fresh(value: Any) -> Any:
    return {name: _fresh(item) for name, item in value.items()} if isinstance(value, dict) else value


@lru_cache(maxsize=1)
def _exceptions() -> dict[str, str]:
    data: dict[str, str] = orjson.loads(files(__package__).joinpath("wire_forms.json").read_bytes())
    return data


def _build(schema: Schema) -> WireForm:
    habits: dict[str, str] = {}
    go_types: dict[str, str] = {}
    for token in _exceptions().get(schema.name, "").split():
        name, colon, go_type = token.partition(":")
        name, equals, habit = name.partition("=")
        if equals:
            habits[name] = habit
        if colon:
            go_types[name] = go_type
    always: dict[str, Any] = {}
    fleeting: set[str] = set()
    for name, field in schema.fields.items():
        habit = habits.get(name, _usual_habit(schema, name, field))
        if habit in ("o", "e"):
            fleeting.add(name)
        elif habit == "s":
            always[name] = zero_of(field)
        elif habit == "n":
            always[name] = None
        elif habit:
            always[name] = orjson.loads(habit[1:])
    return WireForm(always, frozenset(fleeting), go_types)


def _usual_habit(owner: Schema, name: str, field: Schema) -> str:
    required = name in owner.required
    if field.shape is Shape.STRUCT:
        return "s" if required or name == "metadata" else ""
    if field.shape in (Shape.LIST, Shape.MAP) or field.format == "byte":
        if field.name:  # a raw extension
            return ""
        return "n" if required else "e"
    if field.name.endswith("Time"):
        return "znull" if required else ""
    if field.shape in (Shape.QUANTITY, Shape.INT_OR_STRING):
        return f"z{_ZEROS[field.shape]}" if required else ""
    if field.shape is Shape.ANY:
        return ""
    return f"z{_ZEROS[field.shape]}" if required else "o"
