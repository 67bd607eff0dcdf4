"""Parsing severity, trace id and span id from log lines.

The usual formats of log collectors: a level field, klog's letter, MongoDB's `"s":"E"`, or a bare word near the
beginning. A line without any has no severity.
"""

from __future__ import annotations

import re

SEVERITIES = {"TRACE": 1, "DEBUG": 5, "INFO": 9, "WARN": 13, "ERROR": 17, "FATAL": 21}
_WORDS = {
    "trace": "TRACE",
    "debug": "DEBUG",
    "dbg": "DEBUG",
    "d": "DEBUG",
    "info": "INFO",
    "information": "INFO",
    "notice": "INFO",
    "log": "INFO",
    "i": "INFO",
    "warn": "WARN",
    "warning": "WARN",
    "w": "WARN",
    "error": "ERROR",
    "err": "ERROR",
    "severe": "ERROR",
    "e": "ERROR",
    "fatal": "FATAL",
    "critical": "FATAL",
    "panic": "FATAL",
    "trc": "TRACE",
    "inf": "INFO",
    "wrn": "WARN",
    "ftl": "FATAL",
    "pnc": "FATAL",
    "f": "FATAL",
}
_PARSED_LENGTH = 400
"""Characters. Chosen: levels stand near the beginning of a line, and lines can be megabytes long."""
# Patterns that ignore case are slow to search for: a line is first looked through for text that a match contains.
_LEVEL = re.compile(r"""(?:^|[\s{,"'])(?:level|severity|lvl)["']?\s*[=:]\s*["']?([A-Za-z]+)""", re.IGNORECASE)
_LEVEL_KEYS = ("level", "everity", "lvl")
_FORMATS = (
    re.compile(r'"s":"([DIWEF])"'),
    re.compile(r"^([IWEF])\d{4} \d\d:\d\d"),
    re.compile(r"[\[<(]\s*(trace|debug|info|notice|warn|warning|error|err|fatal|critical)\s*[\])>]", re.IGNORECASE),
    re.compile(r"\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|FATAL|CRITICAL|LOG)\b"),
    re.compile(r"\b(TRC|DBG|INF|WRN|ERR|FTL|PNC)\b"),
    re.compile(r"^(?:\S+ ){0,3}(error|fatal|panic|warning)\b:?", re.IGNORECASE),
)
_TRACE_ID = re.compile(r"""trace_?id["']?\s*[=:]\s*["']?([0-9a-f]{16,32})\b""", re.IGNORECASE)
_SPAN_ID = re.compile(r"""span_?id["']?\s*[=:]\s*["']?([0-9a-f]{16})\b""", re.IGNORECASE)


def severity(line: str) -> str:
    """TRACE to FATAL, or "" where the line has none."""
    head = line[:_PARSED_LENGTH]
    lowered = head.lower()
    named = any(key in lowered for key in _LEVEL_KEYS)
    for pattern in (_LEVEL, *_FORMATS) if named else _FORMATS:
        match = pattern.search(head)
        if match and (level := _WORDS.get(match[1].lower())):
            return level
    return ""


def trace_id(line: str) -> str:
    return _id(_TRACE_ID, line) if "trace" in line.lower() else ""


def span_id(line: str) -> str:
    return _id(_SPAN_ID, line) if "pan" in line.lower() else ""


def _id(pattern: re.Pattern[str], line: str) -> str:
    match = pattern.search(line)
    return match[1] if match else ""
