"""Values of documents beyond JSON's, and how the two shells print them.

The old shell prints JSON with blanks around colons and tabs; mongosh prints as Node.js inspects objects. On the wire
and on disk a special value is an object with one `$` key, as in MongoDB's extended JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

LEGACY_WIDTH = 80
MODERN_WIDTH = 76


class Undefined:
    """JavaScript's undefined; there is one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False


UNDEFINED = Undefined()


@dataclass(frozen=True, slots=True)
class ObjectId:
    text: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A date, in seconds."""

    seconds: float

    @property
    def text(self) -> str:
        whole = datetime.fromtimestamp(self.seconds, UTC)
        return whole.strftime("%Y-%m-%dT%H:%M:%S.") + f"{whole.microsecond // 1000:03d}Z"


@dataclass(frozen=True, slots=True)
class Long:
    value: int


@dataclass(frozen=True, slots=True)
class Pattern:
    body: str
    flags: str = ""


_PLAIN = frozenset((str, int, float, bool, type(None)))


def packed(value: Any) -> Any:
    """As JSON can carry it."""
    if type(value) in _PLAIN:  # first, as nearly all of a database is: a server writes all of it at every change
        return value
    if isinstance(value, dict):
        return {
            str(key): item if type(item) in _PLAIN else packed(item)
            for key, item in value.items()
            if not isinstance(item, Undefined)
        }
    if isinstance(value, ObjectId):
        return {"$oid": value.text}
    if isinstance(value, Moment):
        return {"$date": value.seconds}
    if isinstance(value, Long):
        return {"$numberLong": str(value.value)}
    if isinstance(value, Pattern):
        return {"$regularExpression": {"pattern": value.body, "options": value.flags}}
    if isinstance(value, list | tuple):
        return [packed(item) for item in value]
    return None if isinstance(value, Undefined) or callable(value) else value


def unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if len(value) == 1:
            if "$oid" in value:
                return ObjectId(str(value["$oid"]))
            if "$date" in value:
                return Moment(float(value["$date"]))
            if "$numberLong" in value:
                return Long(int(value["$numberLong"]))
            if "$regularExpression" in value:
                return Pattern(value["$regularExpression"]["pattern"], value["$regularExpression"]["options"])
        return {key: unpacked(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unpacked(item) for item in value]
    return value


def number_text(value: float) -> str:
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


def plain(value: Any) -> str:
    """As `print` and string concatenation show it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    if isinstance(value, str):
        return value
    if isinstance(value, Undefined):
        return "undefined"
    if isinstance(value, list):
        return ",".join(plain(item) for item in value)
    if isinstance(value, dict):
        return "[object Object]"
    if isinstance(value, ObjectId):
        return value.text
    if isinstance(value, Long):
        return str(value.value)
    return value.text if isinstance(value, Moment) else "[function]"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'


def legacy(value: Any, *, oneline: bool = False, depth: int = 0) -> str:
    """As the `mongo` shell's tojson has it."""
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, ObjectId):
        return f'ObjectId("{value.text}")'
    if isinstance(value, Moment):
        return f'ISODate("{value.text}")'
    if isinstance(value, Long):
        return f"NumberLong({value.value})"
    if isinstance(value, Pattern):
        return f"/{value.body}/{value.flags}"
    if isinstance(value, list | dict):
        return _legacy_group(value, oneline, depth)
    return plain(value)


def _legacy_group(value: list[Any] | dict[str, Any], oneline: bool, depth: int) -> str:
    left, right = ("[", "]") if isinstance(value, list) else ("{", "}")
    if not value:
        return f"{left} {right}"
    if isinstance(value, list):
        flat = [legacy(item, oneline=True) for item in value]
        deep = [legacy(item, depth=depth + 1) for item in value] if not oneline else flat
    else:
        flat = [f"{_quoted(key)} : {legacy(item, oneline=True)}" for key, item in value.items()]
        deep = flat
        if not oneline:
            deep = [f"{_quoted(key)} : {legacy(item, depth=depth + 1)}" for key, item in value.items()]
    single = f"{left} {', '.join(flat)} {right}"
    if oneline or (isinstance(value, dict) and len(single) < LEGACY_WIDTH and depth == 0):
        return single
    if isinstance(value, dict) and len(single) < LEGACY_WIDTH and not any(isinstance(v, list) for v in value.values()):
        return single if depth == 0 else _tabbed(left, deep, right, depth)
    return _tabbed(left, deep, right, depth)


def _tabbed(left: str, items: list[str], right: str, depth: int) -> str:
    inner = ",\n".join("\t" * (depth + 1) + item for item in items)
    return f"{left}\n{inner}\n{chr(9) * depth}{right}"


def modern(value: Any, indent: int = 0) -> str:
    """As mongosh prints it."""
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"
    if isinstance(value, ObjectId):
        return f"ObjectId('{value.text}')"
    if isinstance(value, Moment):
        return f"ISODate('{value.text}')"
    if isinstance(value, Long):
        return f"Long('{value.value}')"
    if isinstance(value, Pattern):
        return f"/{value.body}/{value.flags}"
    if isinstance(value, list | dict):
        if not value:
            return "[]" if isinstance(value, list) else "{}"
        items = (
            [modern(item, indent + 2) for item in value]
            if isinstance(value, list)
            else [f"{_key(key)}: {modern(item, indent + 2)}" for key, item in value.items()]
        )
        left, right = ("[", "]") if isinstance(value, list) else ("{", "}")
        single = f"{left} {', '.join(items)} {right}"
        if len(single) + indent <= MODERN_WIDTH and "\n" not in single:
            return single
        pad = " " * (indent + 2)
        return f"{left}\n" + ",\n".join(pad + item for item in items) + f"\n{' ' * indent}{right}"
    return plain(value)


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z_$][\w$]*", text) else modern(text)
