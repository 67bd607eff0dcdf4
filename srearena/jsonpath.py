"""JSONPath as Kubernetes understands it, for printer columns of custom resources and for the output of kubectl.

A path is parsed once into steps; each step turns the values found so far into the next ones. A missing key finds
nothing and is no error; what the real evaluator refuses (an index out of bounds, a filter on something that is no
list, a comparison of unlike things) raises `JSONPathError`, which a table shows as an empty cell. Paths come from
the authors of definitions, so length, nesting and the number of values looked at are bounded.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

_MAX_LENGTH: Final = 4096
_MAX_DEPTH: Final = 8
_MAX_VALUES: Final = 20_000

_NAME: Final = re.compile(r"(?:\\.|[^\\ \t\r\n.,\[\]$@{}])*", re.DOTALL)
_NUMBER: Final = re.compile(r"[+-]?[0-9.]+", re.ASCII)
_WORD: Final = re.compile(r"\w[^ \t\r\n.,\[\]$@{}]*")
_QUOTED: Final = re.compile(r"'((?:\\.|[^'\\\n])*)'|\"((?:\\.|[^\"\\\n])*)\"")
_FILTER: Final = re.compile(r"\[\?\(((?:'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|[^'\")])*)\)\]", re.DOTALL)
_COMPARISON: Final = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_BRACKET: Final = re.compile(r"\[([^\]\n]*)\]")
_KEY: Final = re.compile(r"'([^']*)'")
_SLICE: Final = re.compile(r"(-?[0-9]{0,9})(:-?[0-9]{0,9})?(:-?[0-9]{0,9})?", re.ASCII)
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class JSONPathError(ValueError):
    """The path cannot be parsed, or does not fit the value it is asked of."""


Values = list[Any]
Step = Callable[[Values], Values]


@dataclass(slots=True, frozen=True)
class Path:
    """A parsed path."""

    text: str
    steps: tuple[Step, ...]

    def find(self, root: Any) -> Values:
        """Every value the path leads to, in order."""
        return self.follow([root])

    def follow(self, values: Values) -> Values:
        for step in self.steps:
            values = step(values)
            if len(values) > _MAX_VALUES:
                raise JSONPathError(f"{self.text} finds too many values")
        return values


@lru_cache(maxsize=1024)
def parse(text: str) -> Path:
    """The path written as `.spec.replicas` or, in braces, `{.spec.replicas}`."""
    if len(text) > _MAX_LENGTH:
        raise JSONPathError("the path is too long")
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    return _parse(inner, 0)


def _parse(text: str, depth: int) -> Path:
    if depth > _MAX_DEPTH:
        raise JSONPathError("the path is nested too deeply")
    steps: list[Step] = []
    position = 0
    while position < len(text):
        position = _parse_step(text, position, steps, depth)
    return Path(text, tuple(steps))


def _parse_step(text: str, position: int, steps: list[Step], depth: int) -> int:
    char = text[position]
    if char in " @$":
        return position + 1
    if text.startswith("..", position):
        if steps and steps[-1] is _descend:
            raise JSONPathError("invalid multiple recursive descent")
        steps.append(_descend)
        after = position + 2
        named = after < len(text) and (text[after].isalnum() or text[after] == "_")
        return _parse_name(text, after, steps) if named else after
    if char == ".":
        return _parse_name(text, position + 1, steps)
    if char == "[":
        return _parse_bracket(text, position, steps, depth)
    if char in "'\"":
        return _parse_literal(_QUOTED, text, position, steps, "unterminated quoted string")
    if char in "+-" or char.isdigit():
        return _parse_literal(_NUMBER, text, position, steps, f"cannot parse number {text[position:]}")
    if char == "_" or char.isalpha():
        return _parse_literal(_WORD, text, position, steps, f"unrecognized identifier {text[position:]}")
    raise JSONPathError(f"unrecognized character in action: U+{ord(char):04X} '{char}'")


def _parse_name(text: str, position: int, steps: list[Step]) -> int:
    match = _NAME.match(text, position)
    end = match.end() if match else position
    if end < len(text) and text[end] == "\\":
        raise JSONPathError("unclosed action")
    name = text[position:end]
    if name == "*":
        steps.append(_wildcard)
    elif name:
        steps.append(_member(name.replace("\\", "")))
    return end


def _parse_bracket(text: str, position: int, steps: list[Step], depth: int) -> int:
    if text.startswith("[?(", position):
        match = _FILTER.match(text, position)
        if match is None:
            raise JSONPathError("unterminated filter")
        steps.append(_filter(match[1], depth))
        return match.end()
    match = _BRACKET.match(text, position)
    if match is None:
        raise JSONPathError("unterminated array")
    parts = match[1].split(",")
    if len(parts) > 1:
        steps.append(_union(tuple(_parse(f"[{part.strip(' ')}]", depth + 1) for part in parts)))
    elif key := _KEY.fullmatch(match[1]):
        steps.extend(_parse(f".{key[1]}", depth + 1).steps)
    else:
        steps.append(_slice(match[1]))
    return match.end()


def _parse_literal(pattern: re.Pattern[str], text: str, position: int, steps: list[Step], complaint: str) -> int:
    match = pattern.match(text, position)
    if match is None:
        raise JSONPathError(complaint)
    steps.append(_literal(_literal_value(pattern, match, complaint)))
    return match.end()


def _literal_value(pattern: re.Pattern[str], match: re.Match[str], complaint: str) -> Any:
    if pattern is _QUOTED:
        return re.sub(r"\\(.)", r"\1", match[1] if match[1] is not None else match[2])
    if pattern is _NUMBER:
        try:
            return float(match[0]) if "." in match[0] else int(match[0])
        except ValueError:
            raise JSONPathError(complaint) from None
    if match[0] not in ("true", "false"):
        raise JSONPathError(complaint)
    return match[0] == "true"


def _literal(value: Any) -> Step:
    return lambda values: [value] * len(values)


def _member(name: str) -> Step:
    return lambda values: [value[name] for value in values if isinstance(value, dict) and name in value]


def _children(value: Any) -> Values:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _wildcard(values: Values) -> Values:
    return [child for value in values for child in _children(value)]


def _descend(values: Values) -> Values:
    found: Values = []
    waiting = values[::-1]
    visited = 0
    while waiting:
        value = waiting.pop()
        visited += 1
        children = _children(value)
        if visited + len(children) > _MAX_VALUES:
            raise JSONPathError("recursive descent finds too many values")
        if children:
            found.append(value)
            waiting.extend(reversed(children))
    return found


def _union(paths: tuple[Path, ...]) -> Step:
    def join(values: Values) -> Values:
        found: Values = []
        for path in paths:
            found.extend(path.follow(values))
            if len(found) > _MAX_VALUES:
                raise JSONPathError("the union finds too many values")
        return found

    return join


def _slice(text: str) -> Step:
    match = _SLICE.fullmatch(":" if text == "*" else text)
    if match is None:
        raise JSONPathError(f"invalid array index {text}")
    first, second, third = match.groups()
    if second is None and third is None:
        if first in ("", "-"):
            raise JSONPathError(f"invalid array index {text}")
        return _index(int(first))
    try:
        low, high, step = (
            int(part.lstrip(":")) if part and part.strip(":") else None for part in (first, second, third)
        )
    except ValueError:
        raise JSONPathError(f"invalid array index {text}") from None
    if step is not None and step <= 0:
        raise JSONPathError("step must be > 0")
    return _part(low, high, step)


def _index(index: int) -> Step:
    def pick(values: Values) -> Values:
        found: Values = []
        for value in values:
            if value is None:
                continue
            _require_list(value)
            if not -len(value) <= index < len(value):
                raise JSONPathError(f"array index out of bounds: index {index}, length {len(value)}")
            found.append(value[index])
        return found

    return pick


def _part(low: int | None, high: int | None, step: int | None) -> Step:
    def pick(values: Values) -> Values:
        found: Values = []
        for value in values:
            if value is None:
                continue
            _require_list(value)
            found.extend(value[low:high:step])
        return found

    return pick


def _filter(text: str, depth: int) -> Step:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        return _existing(_parse(text, depth + 1))
    left, sign, right = match.groups()
    if sign not in _COMPARE:
        raise JSONPathError(f"unrecognized filter operator {sign}")
    return _comparing(_parse(left, depth + 1), _COMPARE[sign], _parse(right, depth + 1))


def _existing(path: Path) -> Step:
    def keep(values: Values) -> Values:
        return [item for item in _filterable(values) if path.follow([item])]

    return keep


def _comparing(left: Path, compare: Callable[[Any, Any], bool], right: Path) -> Step:
    def keep(values: Values) -> Values:
        found: Values = []
        for item in _filterable(values):
            lefts, rights = left.follow([item]), right.follow([item])
            if len(lefts) > 1 or len(rights) > 1:
                raise JSONPathError("can only compare one element at a time")
            if not lefts or not rights:
                continue
            if type(lefts[0]) is not type(rights[0]) or not isinstance(lefts[0], str | int | float):
                raise JSONPathError("incompatible types for comparison")
            if compare(lefts[0], rights[0]):
                found.append(item)
        return found

    return keep


def _filterable(values: Values) -> Values:
    items: Values = []
    for value in values:
        if not isinstance(value, list):
            raise JSONPathError(f"{value} is not array or slice and cannot be filtered")
        items.extend(value)
    return items


def _require_list(value: Any) -> None:
    if not isinstance(value, list):
        raise JSONPathError(f"{type(value).__name__} is not array or slice")
