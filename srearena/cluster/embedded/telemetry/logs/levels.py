"""The level of a log line, which Loki detects when it receives the line (`discover_log_levels`, on by default).

It becomes structured metadata of the line, `detected_level`: queries filter and group by it like by a label.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

LEVEL = "detected_level"
LEVELS = ("unknown", "trace", "debug", "info", "warn", "error", "critical", "fatal")
_BY_NAME = {
    **{name.encode(): name for name in LEVELS[1:]},
    b"trc": "trace",
    b"dbg": "debug",
    b"inf": "info",
    b"wrn": "warn",
    b"warning": "warn",
    b"err": "error",
}
_JSON_FIELDS = frozenset(
    "level LEVEL Level log.level severity SEVERITY Severity SeverityText lvl LVL Lvl "
    "severity_text Severity_Text SEVERITY_TEXT".split()
)
_LOGFMT_FIELDS = (b"level", b"log.level", b"severity", b"severitytext", b"lvl", b"severity_text")
"""In lower case; of several in one line, the first of this list counts."""
_JSON_DEPTH = 2
"""Loki's default of `log_level_from_json_max_depth`."""
_NAMED = re.compile(rb"level|severity|lvl", re.IGNORECASE)
_PAIR = re.compile(rb'([^\s="]+)(?:=("(?:[^"\\]|\\.)*"|[^\s"]*))?')
_WORDS = (
    (re.compile(rb"info|INFO"), "info"),
    (re.compile(rb"err:|ERR:|error|ERROR"), "error"),
    (re.compile(rb"warn:|WARN:|warning|WARNING"), "warn"),
    (re.compile(rb"CRITICAL:|critical:"), "critical"),
    (re.compile(rb"debug:|DEBUG:"), "debug"),
)
"""What a line without a field is searched for, in this order."""


def level_of(line: bytes) -> str:
    if line[:1] == b"{" or b"=" in line or b"{" in line:
        stripped = line.strip()
        if stripped.startswith(b"{") and stripped.endswith(b"}"):
            field = _json_field(line)
        else:
            field = _logfmt_field(line) if b"=" in line else b""
        if (named := _BY_NAME.get(field.lower())) is not None:
            return named
    return next((level for words, level in _WORDS if words.search(line)), LEVELS[0])


def _json_field(line: bytes) -> bytes:
    if not _NAMED.search(line):
        return b""
    try:
        return _found(orjson.loads(line), 0).encode()
    except orjson.JSONDecodeError:
        return b""


def _found(document: Any, depth: int) -> str:
    if depth < _JSON_DEPTH and isinstance(document, dict):
        for name, value in document.items():
            if isinstance(value, str) and name in _JSON_FIELDS:
                return value
            if inner := _found(value, depth + 1):
                return inner
    return ""


def _logfmt_field(line: bytes) -> bytes:
    if not _NAMED.search(line):
        return b""
    best, found = len(_LOGFMT_FIELDS), b""
    for pair in _PAIR.finditer(line):
        name = pair[1].lower()
        if name in _LOGFMT_FIELDS and (rank := _LOGFMT_FIELDS.index(name)) < best:
            best, found = rank, (pair[2] or b"").strip(b'"')
    return found
