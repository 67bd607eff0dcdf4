"""What a hostile client sends to a server: noise, broken messages of several protocols, odd HTTP requests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from urllib.parse import quote

import srearena

VALUES = ["", "0", "-1", "1e999", "nan", "9" * 5000, "é☃", "%", "%zz", "null", "[]", "{}", "'", '"', "../../etc/passwd"]
JSON = ["null", "1", "-1", "1e400", '"x"', '""', "true", "[]", "{}", "99999999999999999999", '"\\ud800"']
METHODS = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "PRI", ""]
HEADERS = ["", "Transfer-Encoding: chunked", "Range: bytes=x-", "Authorization: Basic %%%", "Cookie: a"]
BROKEN = [
    b"*-1\r\n",
    b"*99999999999\r\n",
    b"*x\r\n",
    b"*1\r\n$-5\r\nabc\r\n",
    b"set a 0 0 -1\r\nabc\r\n",
    b"set a 0 0 99999999999\r\nabc\r\n",
    b"\x16\x7f\x00\n{}\n",
]


def hostile_bytes(random: Random) -> bytes:
    kind = random.randrange(6)
    if kind == 0:
        return random.randbytes(random.randrange(200))
    if kind == 1:
        return random.choice(BROKEN)
    if kind == 2:
        words = [_word(random).encode() for _ in range(random.randrange(1, 7))]
        return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    if kind == 3:
        return b" ".join(_word(random).encode() for _ in range(random.randrange(1, 7))) + b"\r\n"
    return _http(random)


def _http(random: Random) -> bytes:
    path = random.choice(_literals()[0])
    if random.random() < 0.5:
        path += "?" + "&".join(f"{quote(_word(random))}={_word(random)}" for _ in range(random.randrange(4)))
    body = _json(random).encode()
    length = random.choice([len(body)] * 4 + [-1, "x", 999_999])
    lines = (
        f"{random.choice(METHODS)} {path} HTTP/{random.choice(['1.1', '1.1', '1.0', 'x'])}",
        f"Host: {random.choice(['x', ''])}",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        random.choice(HEADERS),
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _json(random: Random, depth: int = 0) -> str:
    if depth > 3 or random.random() < 0.4:
        return random.choice(JSON)
    items = [_json(random, depth + 1) for _ in range(random.randrange(4))]
    if random.random() < 0.3:
        return f"[{','.join(items)}]"
    names = _literals()[1]
    return "{" + ",".join(f'"{random.choice(names)}":{item}' for item in items) + "}"


def _word(random: Random) -> str:
    return random.choice(VALUES) if random.random() < 0.5 else random.choice(_literals()[1])


@cache
def _literals() -> tuple[list[str], list[str]]:
    """The paths and the words that stand in the sources of all programs: most names that a program reacts to."""
    literals = {text for text in _strings() if len(text) < 60 and text.isprintable() and not set(text) & set(' "\\')}
    return sorted(text for text in literals if text[:1] == "/"), sorted(text for text in literals if text[:1].isalpha())


def _strings() -> Iterator[str]:
    for file in Path(srearena.__file__).parent.rglob("*.py"):
        if {"programs", "apps", "products"} & set(file.parts):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value
