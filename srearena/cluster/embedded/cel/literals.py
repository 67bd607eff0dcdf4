"""Literals of CEL: numbers, strings and bytes with their escapes."""

from __future__ import annotations

import re
from typing import Final

from srearena.cluster.embedded.cel.values import UInt

_SIMPLE: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "`": "`",
    "?": "?",
}
_ESCAPE: Final = re.compile(
    r"\\(?:[xX](?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<o>[0-3][0-7]{2})|(?P<c>.))",
    re.DOTALL,
)
_SHAPE: Final = re.compile(r"([bBrR]*)(\"{3}|'{3}|\"|')(.*)\2", re.DOTALL)


class LiteralError(ValueError):
    """The literal is outside of what its type can hold."""


def literal_value(kind: str, text: str) -> object:
    """The value of a token of the kinds int, uint, float and string."""
    if kind == "int":
        number = int(text.replace("0x", ""), 16) if "0x" in text else int(text)
        if not -(2**63) <= number < 2**63:
            raise LiteralError("invalid int literal")
        return number
    if kind == "uint":
        number = int(text[:-1], 16) if text.startswith("0x") else int(text[:-1])
        if number >= 2**64:
            raise LiteralError("invalid uint literal")
        return UInt(number)
    return float(text) if kind == "float" else _text(text)


def _text(token: str) -> str | bytes:
    match = _SHAPE.fullmatch(token)
    assert match is not None
    prefix, _, body = match.groups()
    is_bytes, raw = "b" in prefix.lower(), "r" in prefix.lower()
    if not is_bytes:
        return body if raw else _ESCAPE.sub(_character, body)
    if raw:
        return body.encode()
    found, position = bytearray(), 0
    for escape in _ESCAPE.finditer(body):
        found += body[position : escape.start()].encode()
        if escape["x"] or escape["o"]:
            found.append(int(escape["x"], 16) if escape["x"] else int(escape["o"], 8))
        else:
            found += _character(escape).encode()
        position = escape.end()
    return bytes(found + body[position:].encode())


def _character(escape: re.Match[str]) -> str:
    for group, base in (("x", 16), ("u", 16), ("U", 16), ("o", 8)):
        if escape[group]:
            point = int(escape[group], base)
            if point > 0x10FFFF or 0xD800 <= point < 0xE000:
                raise LiteralError("invalid unicode code point")
            return chr(point)
    found = _SIMPLE.get(escape["c"])
    if found is None:
        raise LiteralError("unable to unescape string")
    return found
