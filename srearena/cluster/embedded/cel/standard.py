"""CEL's standard functions and operators."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from srearena.cluster.embedded.cel.errors import EvaluationError, no_such_overload
from srearena.cluster.embedded.cel.functions import overload, traversal
from srearena.cluster.embedded.cel.values import (
    INT_RANGE,
    Duration,
    KeyedList,
    Optional,
    SetList,
    Timestamp,
    TypeValue,
    UInt,
    checked_int,
    checked_uint,
    compare,
    contains,
    equal,
    type_name,
)
from srearena.cluster.embedded.durations import DurationError, TimeError, parse_duration, parse_time
from srearena.cluster.embedded.go_text import float_text
from srearena.regular_expressions import PatternError, pattern

_NANO: Final = 10**9
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENTS: Final = range(-62135596800 * _NANO, 253402300800 * _NANO)
_SPANS: Final = range(-(2**63), 2**63)
_NUMBERS: Final = ("int", "uint", "double")
_ORDERED: Final = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_COMPARED: Final = [(kind, kind) for kind in _ORDERED] + [
    (one, other) for one in _NUMBERS for other in _NUMBERS if one != other
]


def _order(name: str) -> tuple[str, ...]:
    return tuple(f"{name}({one}, {other}) bool" for one, other in _COMPARED)


@overload("_==_(A, A) bool", cost=traversal)
def _equal(left: Any, right: Any) -> bool:
    return equal(left, right)


@overload("_!=_(A, A) bool", cost=traversal)
def _unequal(left: Any, right: Any) -> bool:
    return not equal(left, right)


@overload(*_order("_<_"))
def _less(left: Any, right: Any) -> bool:
    return not _is_nan(left, right) and compare(left, right) < 0


@overload(*_order("_<=_"))
def _at_most(left: Any, right: Any) -> bool:
    return not _is_nan(left, right) and compare(left, right) <= 0


@overload(*_order("_>_"))
def _greater(left: Any, right: Any) -> bool:
    return not _is_nan(left, right) and compare(left, right) > 0


@overload(*_order("_>=_"))
def _at_least(left: Any, right: Any) -> bool:
    return not _is_nan(left, right) and compare(left, right) >= 0


def _is_nan(*values: Any) -> bool:
    return any(isinstance(value, float) and math.isnan(value) for value in values)


@overload("@in(A, list(A)) bool", "@in(A, map(A, B)) bool", cost=lambda _, items: 1 + len(items))
def _in(value: Any, items: Any) -> bool:
    return contains(items, value) if isinstance(items, list) else _key_of(items, value) is not None


def _key_of(items: dict[Any, Any], key: Any) -> tuple[Any] | None:
    """The key under which a map has a value; numbers are found by their value."""
    try:
        if key not in items:
            return None
    except TypeError:
        raise no_such_overload() from None
    if isinstance(key, int | float):
        # To Python, True is 1; to CEL it is not.
        same = (known for known in items if isinstance(known, bool) == isinstance(key, bool))
        return (key,) if any(known == key for known in same) else None
    return (key,)


@overload("_[_](list(A), int) A", "_[_](map(A, B), A) B", "_[_](list(A), double) A", "_[_](list(A), uint) A")
def index(items: Any, key: Any) -> Any:
    if isinstance(items, dict):
        found = _key_of(items, key)
        if found is None:
            raise EvaluationError(f"no such key: {display(key)}")
        return items[found[0]]
    if isinstance(key, float) and not key.is_integer():
        raise EvaluationError(f"unsupported index value {float_text(key)} in list")
    if not 0 <= key < len(items):
        raise EvaluationError(f"index out of bounds: {int(key)}")
    return items[int(key)]


def display(value: Any) -> str:
    """A value as messages show it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_text(value) if isinstance(value, float) else str(value)


@overload("!_(bool) bool")
def _not(value: bool) -> bool:
    return not value


@overload("-_(int) int")
def _negative(value: int) -> int:
    return checked_int(-value)


@overload("-_(double) double")
def _negative_double(value: float) -> float:
    return -value


@overload("_+_(int, int) int")
def _add(left: int, right: int) -> int:
    return checked_int(left + right)


@overload("_+_(uint, uint) uint")
def _add_uint(left: int, right: int) -> int:
    return checked_uint(int(left) + int(right))


@overload("_+_(double, double) double")
def _add_double(left: float, right: float) -> float:
    return left + right


@overload("_+_(string, string) string", "_+_(bytes, bytes) bytes", cost=traversal)
def _join(left: Any, right: Any) -> Any:
    return left + right


@overload("_+_(list(A), list(A)) list(A)")
def _concatenate(left: list[Any], right: list[Any]) -> list[Any]:
    if isinstance(left, SetList):
        return SetList([*left, *(item for item in right if not contains(left, item))])
    if isinstance(left, KeyedList):
        added = {left.key(item): item for item in right}
        merged = KeyedList([added.pop(left.key(item), item) for item in left])
        merged.extend(added.values())
        merged.keys = left.keys
        return merged
    return [*left, *right]


@overload("_+_(timestamp, duration) timestamp")
def _later(moment: Timestamp, span: Duration) -> Timestamp:
    return _moment(moment.nanoseconds + span.nanoseconds)


@overload("_+_(duration, timestamp) timestamp")
def _later_reversed(span: Duration, moment: Timestamp) -> Timestamp:
    return _moment(moment.nanoseconds + span.nanoseconds)


@overload("_+_(duration, duration) duration")
def _longer(left: Duration, right: Duration) -> Duration:
    return _span(left.nanoseconds + right.nanoseconds)


@overload("_-_(int, int) int")
def _subtract(left: int, right: int) -> int:
    return checked_int(left - right)


@overload("_-_(uint, uint) uint")
def _subtract_uint(left: int, right: int) -> int:
    return checked_uint(int(left) - int(right))


@overload("_-_(double, double) double")
def _subtract_double(left: float, right: float) -> float:
    return left - right


@overload("_-_(timestamp, timestamp) duration")
def _between(left: Timestamp, right: Timestamp) -> Duration:
    return _span(left.nanoseconds - right.nanoseconds)


@overload("_-_(timestamp, duration) timestamp")
def _earlier(moment: Timestamp, span: Duration) -> Timestamp:
    return _moment(moment.nanoseconds - span.nanoseconds)


@overload("_-_(duration, duration) duration")
def _shorter(left: Duration, right: Duration) -> Duration:
    return _span(left.nanoseconds - right.nanoseconds)


@overload("_*_(int, int) int")
def _multiply(left: int, right: int) -> int:
    return checked_int(left * right)


@overload("_*_(uint, uint) uint")
def _multiply_uint(left: int, right: int) -> int:
    return checked_uint(int(left) * int(right))


@overload("_*_(double, double) double")
def _multiply_double(left: float, right: float) -> float:
    return left * right


@overload("_/_(int, int) int", "_/_(uint, uint) uint")
def _divide(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("division by zero")
    quotient = abs(int(left)) // abs(int(right))
    if isinstance(left, UInt):
        return UInt(quotient)
    return checked_int(quotient if (left < 0) == (right < 0) else -quotient)


@overload("_/_(double, double) double")
def _divide_double(left: float, right: float) -> float:
    if right == 0:
        return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)
    return left / right


@overload("_%_(int, int) int", "_%_(uint, uint) uint")
def _modulus(left: int, right: int) -> int:
    if right == 0:
        raise EvaluationError("modulus by zero")
    rest = (
        int(math.fmod(left, right)) if abs(left) < 2**52 else abs(int(left)) % abs(int(right)) * (-1 if left < 0 else 1)
    )
    return UInt(rest) if isinstance(left, UInt) else rest


@overload(
    "size(string) int",
    "size(bytes) int",
    "size(list(A)) int",
    "size(map(A, B)) int",
    "string.size() int",
    "bytes.size() int",
    "list(A).size() int",
    "map(A, B).size() int",
)
def _size(value: Any) -> int:
    return len(value)


@overload("string.contains(string) bool", cost=lambda text, part: 1 + int(len(text) * 0.1 * max(len(part) * 0.1, 1)))
def _contains(text: str, part: str) -> bool:
    return part in text


@overload("string.startsWith(string) bool", cost=lambda _, part: traversal(part))
def _starts_with(text: str, part: str) -> bool:
    return text.startswith(part)


@overload("string.endsWith(string) bool", cost=lambda _, part: traversal(part))
def _ends_with(text: str, part: str) -> bool:
    return text.endswith(part)


@overload(
    "string.matches(string) bool",
    "matches(string, string) bool",
    cost=lambda text, expression: 1 + int((len(text) + 1) * 0.1 * max(len(expression) * 0.25, 1)),
)
def _matches(text: str, expression: str) -> bool:
    try:
        return pattern(expression).matches(text)
    except PatternError as problem:
        raise EvaluationError(str(problem)) from None


@overload("dyn(A) dyn")
def _dyn(value: Any) -> Any:
    return value


@overload("type(A) type(A)")
def _type(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


@overload(*(f"int({kind}) int" for kind in ("int", "uint", "double", "string", "timestamp", "duration")))
def _int(value: Any) -> int:
    if isinstance(value, Timestamp):
        return value.nanoseconds // _NANO
    if isinstance(value, Duration):
        return value.nanoseconds
    if isinstance(value, str):
        try:
            value = int(value) if value.strip() == value and "_" not in value else int("x")
        except ValueError:
            raise EvaluationError("type conversion error from 'string' to 'int'") from None
    if isinstance(value, float) and (math.isnan(value) or not -(2.0**63) < value < 2.0**63):
        raise EvaluationError("integer overflow")
    return checked_int(int(value))


@overload("uint(uint) uint", "uint(int) uint", "uint(double) uint", "uint(string) uint")
def _uint(value: Any) -> int:
    if isinstance(value, str):
        if not value.isdecimal():
            raise EvaluationError("type conversion error from 'string' to 'uint'")
        value = int(value)
    if isinstance(value, float) and (math.isnan(value) or not 0 <= value < 2.0**64):
        raise EvaluationError("unsigned integer overflow")
    return checked_uint(int(value))


@overload("double(double) double", "double(int) double", "double(uint) double", "double(string) double")
def _double(value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise EvaluationError("type conversion error from 'string' to 'double'") from None


@overload("bool(bool) bool", "bool(string) bool")
def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise EvaluationError("type conversion error from 'string' to 'bool'")


@overload("bytes(bytes) bytes", "bytes(string) bytes", cost=traversal)
def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


@overload(
    *(f"string({kind}) string" for kind in (*_ORDERED, "quantity", "ip", "cidr", "url", "semver")),
    cost=traversal,
)
def _string(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise EvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None
    if isinstance(value, Timestamp):
        return _rfc3339(value)
    if isinstance(value, Duration):
        whole, rest = divmod(abs(value.nanoseconds), _NANO)
        sign = "-" if value.nanoseconds < 0 else ""
        return f"{sign}{whole}" + (f".{rest:09}".rstrip("0") if rest else "") + "s"
    return display(value)


@overload("timestamp(timestamp) timestamp", "timestamp(string) timestamp", "timestamp(int) timestamp")
def timestamp(value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    if isinstance(value, str):
        try:
            whole = parse_time(value)
        except TimeError as problem:
            raise EvaluationError(str(problem)) from None
        fraction = value[19:].lstrip(".").rstrip("Z").partition("+")[0].partition("-")[0]
        digits = f"{fraction[:9]:0<9}" if value[19:20] == "." else "0"
        return _moment(math.floor(whole) * _NANO + int(digits))
    return _moment(value * _NANO)


@overload("duration(duration) duration", "duration(string) duration", "duration(int) duration")
def duration(value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    if isinstance(value, str):
        try:
            return _span(round(parse_duration(value) * _NANO))
        except DurationError as problem:
            raise EvaluationError(str(problem)) from None
    return _span(value)


def _moment(nanoseconds: int) -> Timestamp:
    if nanoseconds not in _MOMENTS:
        raise EvaluationError("timestamp overflow")
    return Timestamp(nanoseconds)


def _span(nanoseconds: int) -> Duration:
    if nanoseconds not in _SPANS:
        raise EvaluationError("duration overflow")
    return Duration(nanoseconds)


def _rfc3339(moment: Timestamp) -> str:
    whole, rest = divmod(moment.nanoseconds, _NANO)
    text = (_EPOCH + timedelta(seconds=whole)).strftime("%Y-%m-%dT%H:%M:%S").zfill(19)
    return text + (f".{rest:09}".rstrip("0") if rest else "") + "Z"


def _zone(name: str) -> tzinfo:
    if ":" in name:
        sign = -1 if name.startswith("-") else 1
        hours, _, minutes = name.lstrip("+-").partition(":")
        try:
            return timezone(sign * timedelta(hours=int(hours), minutes=int(minutes)))
        except ValueError:
            raise EvaluationError(f"unknown time zone {name}") from None
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        raise EvaluationError(f"unknown time zone {name}") from None


_PARTS: Final[dict[str, Any]] = {
    "getFullYear": lambda when: when.year,
    "getMonth": lambda when: when.month - 1,
    "getDayOfYear": lambda when: when.timetuple().tm_yday - 1,
    "getDayOfMonth": lambda when: when.day - 1,
    "getDate": lambda when: when.day,
    "getDayOfWeek": lambda when: (when.weekday() + 1) % 7,
    "getHours": lambda when: when.hour,
    "getMinutes": lambda when: when.minute,
    "getSeconds": lambda when: when.second,
    "getMilliseconds": lambda when: when.microsecond // 1000,
}
_SPAN_PARTS: Final = {"getHours": 3600 * _NANO, "getMinutes": 60 * _NANO, "getSeconds": _NANO}


def _register_parts() -> None:
    for name, part in _PARTS.items():

        def read(moment: Timestamp, zone: str = "UTC", part: Any = part) -> int:
            whole, rest = divmod(moment.nanoseconds, _NANO)
            when = (_EPOCH + timedelta(seconds=whole, microseconds=rest // 1000)).astimezone(_zone(zone))
            return int(part(when))

        overload(f"timestamp.{name}() int", f"timestamp.{name}(string) int")(read)
    for name, size in _SPAN_PARTS.items():

        def count(span: Duration, size: int = size) -> int:
            whole = abs(span.nanoseconds) // size
            return whole if span.nanoseconds >= 0 else -whole

        overload(f"duration.{name}() int")(count)

    def milliseconds(span: Duration) -> int:
        return int(math.fmod(span.nanoseconds, _NANO)) // 10**6

    overload("duration.getMilliseconds() int")(milliseconds)


_register_parts()


@overload("optional:of(A) optional_type(A)")
def _optional_of(value: Any) -> Optional:
    return Optional(True, value)


@overload("optional:none() optional_type(A)")
def _optional_none() -> Optional:
    return Optional()


@overload("optional:ofNonZeroValue(A) optional_type(A)")
def _optional_of_non_zero(value: Any) -> Optional:
    empty = value is None or value in (0, "", b"", [], {}) or value == Duration(0)
    return Optional() if empty else Optional(True, value)


@overload("optional_type(A).hasValue() bool")
def _has_value(optional: Optional) -> bool:
    return optional.present


@overload("optional_type(A).value() A")
def _value(optional: Optional) -> Any:
    if not optional.present:
        raise EvaluationError("optional.none() dereference")
    return optional.value


@overload("optional_type(A).orValue(A) A")
def _or_value(optional: Optional, other: Any) -> Any:
    return optional.value if optional.present else other


@overload("optional_type(A).or(optional_type(A)) optional_type(A)")
def _or(optional: Optional, other: Optional) -> Optional:
    return optional if optional.present else other


@overload(
    "_[?_](list(A), int) optional_type(A)",
    "_[?_](map(A, B), A) optional_type(B)",
    "_[?_](optional_type(list(A)), int) optional_type(A)",
    "_[?_](optional_type(map(A, B)), A) optional_type(B)",
)
def optional_index(items: Any, key: Any) -> Optional:
    if isinstance(items, Optional):
        if not items.present:
            return items
        items = items.value
    if isinstance(items, list):
        inside = isinstance(key, int) and key in INT_RANGE and 0 <= key < len(items)
        return Optional(True, items[key]) if inside else Optional()
    if not isinstance(items, dict):
        raise no_such_overload()
    found = _key_of(items, key)
    return Optional(True, items[found[0]]) if found else Optional()
