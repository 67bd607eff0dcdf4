"""Values formatted as Go prints them, since real Kubernetes messages come from Go programs.

`quoted` is `%q`, `float_text` is `%v` of a float64, `json_text` is encoding/json, which escapes the three
characters that matter in HTML and always writes floats in its own way.
"""

from __future__ import annotations

import math
from typing import Any

import orjson

_ESCAPES = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}
# encoding/json escapes these so that the text can stand inside a script element.
_HTML_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_HTML_TABLE = str.maketrans(_HTML_ESCAPES)


def quoted(text: str) -> str:
    """The string as strconv.Quote writes it."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(char: str) -> str:
    if escape := _ESCAPES.get(char):
        return escape
    if char.isprintable():
        return char
    point = ord(char)
    if 0xD800 <= point <= 0xDFFF:
        return "\\ufffd"
    if point < 0x80:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def float_text(number: float) -> str:
    """A float64 under %v: the shortest digits that round-trip, with an exponent outside [1e-4, 1e21)."""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "+Inf" if number > 0 else "-Inf"
    return _shortest(number, low=-4)


def _shortest(number: float, low: int) -> str:
    if number == 0:
        return "-0" if math.copysign(1, number) < 0 else "0"
    mantissa, _, exponent_text = f"{number!r}".partition("e")
    sign = "-" if mantissa.startswith("-") else ""
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    digits = (whole + fraction).lstrip("0")
    leading_zeros = len(whole + fraction) - len(digits)
    point = len(whole) + int(exponent_text or 0) - leading_zeros
    digits = digits.rstrip("0") or "0"
    exponent = point - 1
    if exponent < low or exponent >= 21:
        tail = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if len(digits) <= point:
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


def json_text(value: Any, *, sort_keys: bool = False) -> str:
    """The value as encoding/json marshals it (struct order unless `sort_keys`, which is how maps come out)."""
    text = _marshal(value, sort_keys)
    if text.isascii() and "<" not in text and ">" not in text and "&" not in text:
        return text
    return text.translate(_HTML_TABLE)


def _marshal(value: Any, sort_keys: bool) -> str:
    if isinstance(value, float):
        return _shortest(value, low=-6).replace("e-0", "e-")
    if isinstance(value, dict):
        items = sorted(value.items()) if sort_keys else value.items()
        return "{" + ",".join(f"{_string(key)}:{_marshal(item, sort_keys)}" for key, item in items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_marshal(item, sort_keys) for item in value) + "]"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _string(text: str) -> str:
    try:
        return orjson.dumps(text).decode()
    except orjson.JSONEncodeError:  # a lone surrogate
        return orjson.dumps(text.encode(errors="surrogatepass").decode(errors="replace")).decode()


def value_text(value: Any) -> str:
    """A value as field errors show it: strings quoted, numbers plain, anything else as JSON."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float):
        return float_text(value)
    return json_text(value)


def plain(value: Any) -> str:
    """A decoded JSON value under %v, the way whole maps end up in error messages: `map[a:1 b:[x y]]`."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{plain(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(plain, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(value)
    return "<nil>" if value is None else str(value)
