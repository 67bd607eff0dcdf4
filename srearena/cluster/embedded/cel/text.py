"""Functions on strings: cel-go's string extension (version 2) and Kubernetes' regular expressions."""

from __future__ import annotations

from typing import Any

from srearena.cluster.embedded.cel.errors import EvaluationError
from srearena.cluster.embedded.cel.functions import overload, traversal
from srearena.cluster.embedded.cel.standard import _string, display
from srearena.cluster.embedded.cel.values import Duration, Timestamp, TypeValue, UInt
from srearena.cluster.embedded.go_text import quoted
from srearena.regular_expressions import Pattern, PatternError, pattern

_LOWER = str.maketrans({chr(code): chr(code + 32) for code in range(65, 91)})
_UPPER = str.maketrans({chr(code): chr(code - 32) for code in range(97, 123)})


@overload("string.charAt(int) string")
def _char_at(text: str, position: int) -> str:
    if not 0 <= position <= len(text):
        raise EvaluationError(f"index out of range: {position}")
    return text[position : position + 1]


@overload("string.indexOf(string) int", "string.indexOf(string, int) int", cost=traversal)
def _index_of(text: str, part: str, start: int = 0) -> int:
    if part and not 0 <= start < max(len(text), 1):
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


@overload("string.lastIndexOf(string) int", "string.lastIndexOf(string, int) int", cost=traversal)
def _last_index_of(text: str, part: str, end: int | None = None) -> int:
    if end is None:
        return text.rfind(part)
    if part and not 0 <= end < max(len(text), 1):
        raise EvaluationError(f"index out of range: {end}")
    return text.rfind(part, 0, end + len(part))


@overload("string.lowerAscii() string", cost=traversal)
def _lower(text: str) -> str:
    return text.translate(_LOWER)


@overload("string.upperAscii() string", cost=traversal)
def _upper(text: str) -> str:
    return text.translate(_UPPER)


@overload("string.replace(string, string) string", "string.replace(string, string, int) string", cost=traversal)
def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    return text.replace(old, new, count)


@overload("string.split(string) list(string)", "string.split(string, int) list(string)", cost=traversal)
def _split(text: str, separator: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not separator:
        characters = list(text)
        if count < 0 or len(characters) <= count:
            return characters
        return [*characters[: count - 1], "".join(characters[count - 1 :])]
    return text.split(separator, count - 1 if count > 0 else -1)


@overload("string.substring(int) string", "string.substring(int, int) string", cost=traversal)
def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        end = len(text)
        if not 0 <= start <= end:
            raise EvaluationError(f"index out of range: {start}")
    elif start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    elif start < 0 or end > len(text):
        raise EvaluationError(f"index out of range: {start if start < 0 else end}")
    return text[start:end]


@overload("string.trim() string", cost=traversal)
def _trim(text: str) -> str:
    return text.strip()


@overload("list(string).join() string", "list(string).join(string) string", cost=traversal)
def _join(items: list[str], separator: str = "") -> str:
    return separator.join(items)


@overload("strings:quote(string) string", cost=traversal)
def _quote(text: str) -> str:
    return quoted(text)


@overload("string.find(string) string", cost=traversal)
def _find(text: str, expression: str) -> str:
    match = _compiled(expression).search(text)
    return match.groups[0] if match else ""


@overload("string.findAll(string) list(string)", "string.findAll(string, int) list(string)", cost=traversal)
def _find_all(text: str, expression: str, count: int = -1) -> list[str]:
    found = [match.groups[0] for match in _compiled(expression).find_all(text)]
    return found if count < 0 else found[:count]


def _compiled(expression: str) -> Pattern:
    try:
        return pattern(expression)
    except PatternError as problem:
        raise EvaluationError(f"Illegal regex: {problem}") from None


@overload("string.format(list(dyn)) string", cost=traversal)
def _format(template: str, values: list[Any]) -> str:
    found: list[str] = []
    position, used = 0, 0
    while position < len(template):
        character = template[position]
        position += 1
        if character != "%":
            found.append(character)
            continue
        if template[position : position + 1] == "%":
            found.append("%")
            position += 1
            continue
        precision: int | None = None
        if template[position : position + 1] == ".":
            digits = position + 1
            while template[digits : digits + 1].isdecimal():
                digits += 1
            precision, position = int(template[position + 1 : digits] or 0), digits
        clause = template[position : position + 1]
        position += 1
        if not clause:
            raise EvaluationError("could not parse formatting clause: unexpected end of string")
        if used >= len(values):
            raise EvaluationError(f"index {used} out of range")
        found.append(_clause(clause, values[used], precision))
        used += 1
    return "".join(found)


def _clause(clause: str, value: Any, precision: int | None) -> str:
    if clause == "s":
        return _plain(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if clause == "d" and whole:
        return str(value)
    if clause in "fe" and isinstance(value, int | float) and not isinstance(value, bool):
        places = 6 if precision is None else precision
        return f"{value:.{places}{clause}}"
    if clause == "b" and isinstance(value, int):
        return f"{int(value):b}"
    if clause == "o" and whole:
        return f"{value:o}"
    if clause in "xX":
        if whole:
            return f"{value:{clause}}"
        if isinstance(value, str | bytes):
            text = (value.encode() if isinstance(value, str) else value).hex()
            return text.upper() if clause == "X" else text
    if clause not in "sdfeboxX":
        raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{clause}"')
    raise EvaluationError("error during formatting: no such overload")


def _plain(value: Any) -> str:
    """A value under %s."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return "[" + ", ".join(map(_plain, value)) + "]"
    if isinstance(value, dict):
        items = sorted((_plain(key), _plain(item)) for key, item in value.items())
        return "{" + ", ".join(f"{key}: {item}" for key, item in items) + "}"
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, bytes | Timestamp | Duration):
        return str(_string(value))
    return str(int(value)) if isinstance(value, UInt) else display(value)
