"""JSON as encoding/json reads it: what is wrong with a text in its words, and which fields come twice.

Parsing is left to the fast library. Only where that refuses is the text scanned a second time, byte by byte, for
the message; only where an object has fewer keys than pairs are the paths of the repeated ones worked out.
"""

from __future__ import annotations

import json
from enum import Enum, auto
from typing import Any, Final

import orjson

from srearena.cluster.embedded.go_text import quoted

_MAX_NESTING: Final = 10_000
_SPACE: Final = frozenset(b" \t\r\n")
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
_DIGITS: Final = frozenset(b"0123456789")
_ESCAPES: Final = frozenset(b'bfnrt\\/"')
_LITERALS: Final = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_OPEN, _SHUT, _LEFT, _RIGHT, _QUOTE, _COMMA, _COLON = b'{}[]",:'


class JsonSyntaxError(ValueError):
    """A text that is no JSON; the message is Go's."""


def read_json(data: bytes) -> Any:
    """The value a text holds. What is no UTF-8 becomes U+FFFD, as in Go. Raises JsonSyntaxError."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        _Scanner(data).check()
    try:
        value = json.loads(data.decode("utf-8", errors="replace"), strict=False)
        return _without_surrogates(value)
    except RecursionError:
        raise JsonSyntaxError("exceeded max depth") from None
    except ValueError as problem:  # a number of more digits than Python converts
        raise JsonSyntaxError(f"json: {problem}") from None


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value


def repeated_fields(data: bytes) -> list[str]:
    """The paths of keys that an object has more than once, such as `spec.replicas` or `spec.ports[0].name`."""
    found = False

    def notice(pairs: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len({key for key, _ in pairs}) != len(pairs)

    try:
        json.loads(data, object_pairs_hook=notice)
        return _paths_of_repeated(json.loads(data, object_pairs_hook=_Pairs)) if found else []
    except (ValueError, RecursionError):
        return []  # reading the text says what is wrong with it


class _Pairs(list[tuple[str, Any]]):
    """An object that remembers every pair it had."""


def _paths_of_repeated(value: Any, path: str = "") -> list[str]:
    paths: list[str] = []
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, item in value:
            here = f"{path}.{key}" if path else key
            if key in seen and here not in paths:
                paths.append(here)
            seen.add(key)
            paths.extend(deeper for deeper in _paths_of_repeated(item, here) if deeper not in paths)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            paths.extend(_paths_of_repeated(item, f"{path}[{index}]"))
    return paths


class _Expecting(Enum):
    VALUE = auto()
    VALUE_OR_END = auto()
    KEY = auto()
    KEY_OR_END = auto()
    COLON = auto()
    NEXT = auto()


class _Scanner:
    """Goes over a text until something is wrong with it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._open: list[int] = []

    def check(self) -> None:
        expecting = _Expecting.VALUE
        data = self._data
        while True:
            while self._at < len(data) and data[self._at] in _SPACE:
                self._at += 1
            if self._at == len(data):
                if expecting is _Expecting.NEXT and not self._open:
                    return
                raise JsonSyntaxError("unexpected end of JSON input")
            expecting = self._step(expecting, data[self._at])

    def _step(self, expecting: _Expecting, char: int) -> _Expecting:
        if expecting in (_Expecting.VALUE, _Expecting.VALUE_OR_END):
            if char == _RIGHT and expecting is _Expecting.VALUE_OR_END:
                return self._close()
            return self._value(char)
        if expecting in (_Expecting.KEY, _Expecting.KEY_OR_END):
            if char == _SHUT and expecting is _Expecting.KEY_OR_END:
                return self._close()
            if char != _QUOTE:
                raise self._error("looking for beginning of object key string")
            self._string()
            return _Expecting.COLON
        if expecting is _Expecting.COLON:
            if char != _COLON:
                raise self._error("after object key")
            self._at += 1
            return _Expecting.VALUE
        return self._next(char)

    def _next(self, char: int) -> _Expecting:
        if not self._open:
            raise self._error("after top-level value")
        in_object = self._open[-1] == _OPEN
        if char == (_SHUT if in_object else _RIGHT):
            return self._close()
        if char != _COMMA:
            raise self._error("after object key:value pair" if in_object else "after array element")
        self._at += 1
        return _Expecting.KEY if in_object else _Expecting.VALUE

    def _close(self) -> _Expecting:
        self._open.pop()
        self._at += 1
        return _Expecting.NEXT

    def _value(self, char: int) -> _Expecting:
        if char in (_OPEN, _LEFT):
            if len(self._open) >= _MAX_NESTING:
                raise self._error("exceeded max depth")
            self._open.append(char)
            self._at += 1
            return _Expecting.KEY_OR_END if char == _OPEN else _Expecting.VALUE_OR_END
        if char == _QUOTE:
            self._string()
        elif char == ord("-") or char in _DIGITS:
            self._number()
        elif char in _LITERALS:
            self._literal(_LITERALS[char])
        else:
            raise self._error("looking for beginning of value")
        return _Expecting.NEXT

    def _string(self) -> None:
        data = self._data
        self._at += 1
        while self._at < len(data):
            char = data[self._at]
            if char == _QUOTE:
                self._at += 1
                return
            if char < 0x20:
                raise self._error("in string literal")
            if char == ord("\\"):
                self._at += 1
                self._escape()
            else:
                self._at += 1
        raise JsonSyntaxError("unexpected end of JSON input")

    def _escape(self) -> None:
        char = self._peek("in string escape code")
        if char not in _ESCAPES and char != ord("u"):
            raise self._error("in string escape code")
        self._at += 1
        if char == ord("u"):
            for _ in range(4):
                if self._peek("in \\u hexadecimal character escape") not in _HEX:
                    raise self._error("in \\u hexadecimal character escape")
                self._at += 1

    def _peek(self, context: str) -> int:
        """The byte here. At the end Go takes a blank instead, which is an error where a token is not complete."""
        if self._at < len(self._data):
            return self._data[self._at]
        raise self._error(context)

    def _number(self) -> None:
        if self._peek("") == ord("-"):
            self._at += 1
        self._digits("in numeric literal", leading_zero_ends=True)
        if self._here(b"."):
            self._at += 1
            self._digits("after decimal point in numeric literal")
        if self._here(b"eE"):
            self._at += 1
            if self._here(b"+-"):
                self._at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, context: str, *, leading_zero_ends: bool = False) -> None:
        first = self._peek(context)
        if first not in _DIGITS:
            raise self._error(context)
        self._at += 1
        if leading_zero_ends and first == ord("0"):
            return
        while self._at < len(self._data) and self._data[self._at] in _DIGITS:
            self._at += 1

    def _here(self, chars: bytes) -> bool:
        return self._at < len(self._data) and self._data[self._at] in chars

    def _literal(self, word: bytes) -> None:
        for expected in word:
            context = f"in literal {word.decode()} (expecting {chr(expected)!r})"
            if self._peek(context) != expected:
                raise self._error(context)
            self._at += 1

    def _error(self, context: str) -> JsonSyntaxError:
        char = chr(self._data[self._at]) if self._at < len(self._data) else " "
        shown = {"'": "'\\''", '"': "'\"'"}.get(char) or f"'{quoted(char)[1:-1]}'"
        return JsonSyntaxError(f"invalid character {shown} {context}")
