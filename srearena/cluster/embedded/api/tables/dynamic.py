"""Tables whose columns are not known beforehand: those of custom resources, and those of resource usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from srearena import jsonpath
from srearena.cluster.embedded.api.tables.columns import NAME, Cell, Column, Printer, items, mapping, printer, text
from srearena.cluster.embedded.durations import (
    INVALID,
    DurationError,
    TimeError,
    format_duration,
    human_duration,
    parse_duration,
    parse_time,
)
from srearena.cluster.embedded.objects import Obj
from srearena.cluster.embedded.quantity import ZERO, Quantity, QuantityError, parse
from srearena.cluster.embedded.registry.jsonpath_text import text_of

_LOWEST: Final = -(2**63)
_AGE_COLUMN: Final = {
    "name": "Age",
    "type": "date",
    "description": "Time since the object was created.",
    "jsonPath": ".metadata.creationTimestamp",
}


def custom_printer(columns: Sequence[Mapping[str, Any]]) -> Printer:
    """The printer of a custom resource with these additionalPrinterColumns; with none of them it shows its age.

    As on the real server, the columns from the first one on whose path cannot be parsed are left out.
    """
    result = [NAME]
    for column in columns or (_AGE_COLUMN,):
        path = text(column, "jsonPath") or text(column, "JSONPath")
        try:
            parsed = jsonpath.parse(path)
        except jsonpath.JSONPathError:
            break
        kind = text(column, "type")
        priority = column.get("priority")
        result.append(
            Column(
                text(column, "name"),
                kind,
                text(column, "description") or f"Custom resource definition column (in JSONPath format): {path}",
                _found(parsed, kind),
                priority=priority if type(priority) is int else 0,
                format=text(column, "format"),
            )
        )
    return printer(*result)


def _found(path: jsonpath.Path, kind: str) -> Cell:
    convert = _CONVERSIONS.get(kind)

    def cell(obj: Obj, now: float) -> Any:
        try:
            values = path.find(obj)
        except jsonpath.JSONPathError:
            return None
        return convert(values[0], now) if values and convert else None

    return cell


def _whole(value: Any, now: float) -> int | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    # What does not fit comes out as the lowest number there is, as in the real server's conversion.
    return int(value) if _LOWEST <= value < -_LOWEST else _LOWEST


def _real(value: Any, now: float) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _truth(value: Any, now: float) -> bool | None:
    return value if isinstance(value, bool) else None


def _since(value: Any, now: float) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        return human_duration(now - parse_time(value))
    except TimeError:
        return INVALID


_CONVERSIONS: Final[dict[str, Callable[[Any, float], Any]]] = {
    "string": lambda value, now: text_of(value),
    "integer": _whole,
    "number": _real,
    "boolean": _truth,
    "date": _since,
}


def _usage_of_node(obj: Obj) -> dict[str, Quantity]:
    return _add_usage({}, obj)


def _usage_of_pod(obj: Obj) -> dict[str, Quantity]:
    usage: dict[str, Quantity] = {}
    for container in items(obj, "containers"):
        _add_usage(usage, container)
    return usage


def _add_usage(usage: dict[str, Quantity], holder: Obj) -> dict[str, Quantity]:
    for name, value in mapping(holder, "usage").items():
        try:
            usage[name] = usage.get(name, ZERO) + parse(value)
        except QuantityError:
            continue
    return usage


def _window(obj: Obj, now: float) -> str:
    value = text(obj, "window")
    try:
        return format_duration(parse_duration(value))
    except DurationError:
        return value


def _usage_printer(usage_of: Callable[[Obj], dict[str, Quantity]], objects: Sequence[Obj]) -> Printer:
    """The columns are the resources that the first object uses."""
    names = sorted(usage_of(objects[0])) if objects else []

    def row(obj: Obj, now: float) -> list[Any]:
        usage = usage_of(obj)
        return [NAME.cell(obj, now), *(str(usage.get(name, ZERO)) for name in names), _window(obj, now)]

    columns = (
        Column("Name", "string", "Name of the resource", format="name"),
        *(Column(name, "string", "", format="quantity") for name in names),
        Column("Window", "string", "", format="duration"),
    )
    return Printer(columns if objects else (), row)


def node_usage_printer(objects: Sequence[Obj]) -> Printer:
    return _usage_printer(_usage_of_node, objects)


def pod_usage_printer(objects: Sequence[Obj]) -> Printer:
    return _usage_printer(_usage_of_pod, objects)
