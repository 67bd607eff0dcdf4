"""What a table of one kind is made of: columns, each with its header and the function that computes its cell.

A cell function takes the object in wire shape and the moment it is looked at, and never raises: objects come with
missing fields, nulls and, for custom resources, anything at all. So cells read objects only through the accessors
below, each of which answers with an empty value of its type where the object holds something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from srearena.cluster.embedded.durations import age
from srearena.cluster.embedded.objects import Obj, dig
from srearena.cluster.embedded.quantity import QuantityError, canonical
from srearena.cluster.embedded.registry.errors import ApiError
from srearena.cluster.embedded.registry.selectors import label_selector_of

Cell = Callable[[Obj, float], Any]
Row = Callable[[Obj, float], list[Any]]

NONE: Final = "<none>"
UNSET: Final = "<unset>"
UNKNOWN: Final = "<unknown>"
_EMPTY: Final[Obj] = {}


def _blank(obj: Obj, now: float) -> Any:
    return None


@dataclass(slots=True, frozen=True)
class Column:
    """One column: the header a client sees, and the cell."""

    name: str
    type: str
    description: str
    cell: Cell = _blank
    priority: int = 0
    format: str = ""

    def definition(self) -> Obj:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def _no_conditions(obj: Obj) -> list[Obj] | None:
    return None


def _same_order(objects: list[Obj]) -> list[Obj]:
    return objects


@dataclass(slots=True, frozen=True)
class Printer:
    """A kind's columns and the function that fills a row of them."""

    columns: tuple[Column, ...]
    row: Row
    conditions: Callable[[Obj], list[Obj] | None] = _no_conditions
    order: Callable[[list[Obj]], list[Obj]] = _same_order

    def definitions(self) -> list[Obj]:
        return [column.definition() for column in self.columns]


def printer(*columns: Column, order: Callable[[list[Obj]], list[Obj]] = _same_order) -> Printer:
    """A printer whose row is its columns' cells, one by one."""
    cells = tuple(column.cell for column in columns)

    def row(obj: Obj, now: float) -> list[Any]:
        return [cell(obj, now) for cell in cells]

    return Printer(columns, row, order=order)


def wide(name: str, description: str, cell: Cell = _blank) -> Column:
    """A column of text shown only on request."""
    return Column(name, "string", description, cell, priority=1)


# Accessors: the value at a path, or an empty one of the right type.


def as_map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else _EMPTY


def mapping(obj: Any, *path: str | int) -> Mapping[str, Any]:
    return as_map(dig(obj, *path))


def items(obj: Any, *path: str | int) -> list[Obj]:
    """The objects in a list, without anything else that may be in it."""
    value = dig(obj, *path)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings(obj: Any, *path: str | int) -> list[str]:
    value = dig(obj, *path)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text(obj: Any, *path: str | int, missing: str = "") -> str:
    value = dig(obj, *path)
    return value if isinstance(value, str) and value else missing


def number(obj: Any, *path: str | int, missing: int = 0) -> int:
    value = dig(obj, *path)
    return value if type(value) is int else missing


def flag(obj: Any, *path: str | int, missing: bool = False) -> bool:
    value = dig(obj, *path)
    return value if isinstance(value, bool) else missing


def count(obj: Any, *path: str | int) -> int:
    value = dig(obj, *path)
    return len(value) if isinstance(value, dict | list) else 0


def int_or_string(obj: Any, *path: str | int, missing: str) -> str:
    value = dig(obj, *path)
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else missing


def quantity_text(value: Any, missing: str) -> str:
    if value is None:
        return missing
    try:
        return canonical(value)
    except QuantityError:
        return str(value)


# Cells made from a path.


def text_at(*path: str | int, missing: str = "") -> Cell:
    return lambda obj, now: text(obj, *path, missing=missing)


def number_at(*path: str | int) -> Cell:
    return lambda obj, now: number(obj, *path)


def count_at(*path: str | int) -> Cell:
    return lambda obj, now: count(obj, *path)


def flag_at(*path: str | int, missing: bool = False) -> Cell:
    return lambda obj, now: flag(obj, *path, missing=missing)


def age_at(*path: str | int, missing: str = UNKNOWN) -> Cell:
    def cell(obj: Obj, now: float) -> str:
        moment = dig(obj, *path)
        return age(moment, now) if moment else missing

    return cell


def containers_at(*path: str | int) -> Cell:
    """The names of the containers of the pod template at `path`, in one line."""
    return lambda obj, now: ",".join(text(c, "name") for c in items(obj, *path, "spec", "containers"))


def images_at(*path: str | int) -> Cell:
    return lambda obj, now: ",".join(text(c, "image") for c in items(obj, *path, "spec", "containers"))


def labels_at(*path: str | int) -> Cell:
    return lambda obj, now: labels_text(mapping(obj, *path))


def selector_at(*path: str | int, empty: str = NONE, wrong: str = "<error>") -> Cell:
    return lambda obj, now: selector_text(dig(obj, *path), empty=empty, wrong=wrong)


def labels_text(labels: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def selector_text(selector: Any, *, empty: str = NONE, wrong: str = "<error>") -> str:
    if not isinstance(selector, dict):
        return empty
    shaped = {
        "matchLabels": {k: v for k, v in mapping(selector, "matchLabels").items() if isinstance(v, str)},
        "matchExpressions": [
            {
                "key": text(expression, "key"),
                "operator": text(expression, "operator"),
                "values": strings(expression, "values"),
            }
            for expression in items(selector, "matchExpressions")
        ],
    }
    try:
        return str(label_selector_of(shaped)) or empty
    except ApiError:
        return wrong


def more(texts: Iterable[str], *, at_most: int, separator: str = ",") -> str:
    """The first few, and how many are left out."""
    listed = list(texts)
    line = separator.join(listed[:at_most])
    return f"{line} + {len(listed) - at_most} more..." if len(listed) > at_most else line


def condition(obj: Any, kind: str, *path: str | int) -> Obj | None:
    """The first condition of that type in the list at `path` (status.conditions unless said)."""
    found = items(obj, *(path or ("status", "conditions")))
    return next((entry for entry in found if entry.get("type") == kind), None)


NAME: Final = Column(
    "Name", "string", "Name of the object, unique among its kind.", text_at("metadata", "name"), format="name"
)
AGE: Final = Column("Age", "string", "Time since the object was created.", age_at("metadata", "creationTimestamp"))
CREATED_AT: Final = Column(
    "Created At", "date", "When the object was created.", text_at("metadata", "creationTimestamp")
)
DEFAULT: Final = printer(NAME, CREATED_AT)
"""What a built-in kind without columns of its own shows."""
NAME_AND_AGE: Final = printer(NAME, AGE)


def template_columns(*path: str | int) -> tuple[Column, Column]:
    """The wide columns of whatever runs pods from a template."""
    return (
        wide("Containers", "Names of the template's containers.", containers_at(*path)),
        wide("Images", "Images of the template's containers.", images_at(*path)),
    )
