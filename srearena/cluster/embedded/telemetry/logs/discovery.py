"""What Grafana's log explorer asks for before it reads lines: labels, fields and patterns that occur."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import UUID

from srearena.cluster.embedded.telemetry.logs.levels import LEVEL
from srearena.cluster.embedded.telemetry.logs.logql.amounts import number, prometheus_duration
from srearena.cluster.embedded.telemetry.logs.logql.engine import Entries
from srearena.cluster.embedded.telemetry.logs.logql.extraction import parser
from srearena.cluster.embedded.telemetry.logs.logql.lines import ERROR, ERROR_DETAILS, Line
from srearena.cluster.embedded.telemetry.logs.logql.syntax import Parse
from srearena.cluster.embedded.telemetry.logs.store import LogStream

_STATIC_LABELS = frozenset(("cluster", "namespace", "instance", "pod"))
"""Labels that are listed whatever their values are."""
_MAX_PATTERNS = 300
_MAX_PATTERN_LINES = 50_000
"""Lines of which patterns are made. Chosen: a second of computation."""
_TRUTHS = frozenset("t T true TRUE True f F false FALSE False".split())
_BYTES = re.compile(r"[\d.]+ ?(?:[kKMGTPE]i?)?B", re.ASCII)
_PARSERS = {"json": parser(Parse("json")), "logfmt": parser(Parse("logfmt"))}
_LOGFMT = re.compile(r"(?:^|\s)[A-Za-z_][\w.]*=")
_DIGIT = re.compile(r"\d")
_VALUE = re.compile(r"""([A-Za-z_][\w.]*=)("(?:[^"\\]|\\.)*"|\S*)|(\S+)""")


def detected_labels(streams: Iterable[LogStream]) -> list[dict[str, Any]]:
    """Return labels with the number of their values, without those that only hold identifiers."""
    values: dict[str, set[str]] = {}
    for stream in streams:
        for name, value in stream.labels.items():
            values.setdefault(name, set()).add(value)
    return [
        {"label": name, "cardinality": len(found)}
        for name, found in sorted(values.items())
        if name in _STATIC_LABELS or not all(map(_is_identifier, found))
    ]


def _is_identifier(value: str) -> bool:
    if number(value) is not None:
        return True
    try:
        UUID(value)
    except ValueError:
        return False
    return True


def detected_fields(found: Sequence[Entries], limit: int) -> list[dict[str, Any]]:
    """Return structured metadata, and the fields of lines in JSON or logfmt.

    With their types, number of values, and which parser reads them.
    """
    values: dict[str, set[str]] = {}
    kinds: dict[str, str] = {}
    parsers: dict[str, list[str]] = {}
    for name, value, kind in _fields(found):
        if name not in values and len(values) >= limit:
            continue
        values.setdefault(name, set()).add(value)
        kinds.setdefault(name, _type_of(value))
        if kind not in parsers.setdefault(name, []) and kind:
            parsers[name].append(kind)
    return [
        {"label": name, "type": kinds[name], "cardinality": len(values[name]), "parsers": parsers[name]}
        for name in sorted(values)
    ]


def field_values(found: Sequence[Entries], field: str, limit: int) -> list[str]:
    return sorted({value for name, value, _ in _fields(found) if name == field})[:limit]


def _fields(found: Sequence[Entries]) -> Iterator[tuple[str, str, str]]:
    """Yield name, value and parser of each field; structured metadata has no parser."""
    for entries in found:
        base = dict(entries.labels)
        if LEVEL in base:
            yield LEVEL, base[LEVEL], ""
        for moment, text in entries.lines:
            kind = "json" if text.lstrip().startswith(b"{") else "logfmt"
            if kind == "logfmt" and not _LOGFMT.search(text.decode("utf-8", "replace")):
                continue
            line = Line(moment, text, base)
            _PARSERS[kind](line)
            if ERROR in line.labels and kind == "json":
                continue
            for name, value in line.labels.items():
                if base.get(name) != value and name not in (ERROR, ERROR_DETAILS):
                    yield name, value, kind


def _type_of(value: str) -> str:
    if re.fullmatch(r"[+-]?\d+", value, re.ASCII):
        return "int"
    if number(value) is not None:
        return "float"
    if value in _TRUTHS:
        return "boolean"
    if prometheus_duration(value) is not None or re.fullmatch(r"(?:[\d.]+(?:ns|us|µs|ms|s|m|h))+", value):
        return "duration"
    return "bytes" if _BYTES.fullmatch(value) else "string"


def patterns(streams: Iterable[LogStream], start: int, end: int, step: int) -> list[dict[str, Any]]:
    """Return the shapes of lines with counts per step: words with digits and their values are left open."""
    counts: dict[str, Counter[int]] = {}
    read = 0
    for stream in streams:
        low, high = stream.window(start, end)
        for index in range(high - 1, low - 1, -1):
            read += 1
            if read > _MAX_PATTERN_LINES:
                break
            shape = _shape(stream.lines[index].decode("utf-8", "replace"))
            counts.setdefault(shape, Counter())[stream.times[index] // step * step] += 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1].total(), item[0]))
    return [
        {"pattern": shape, "samples": [[moment // 10**9, count] for moment, count in sorted(samples.items())]}
        for shape, samples in ordered[:_MAX_PATTERNS]
    ]


def _shape(text: str) -> str:
    """Return a line with its varying parts replaced."""

    def replaced(found: re.Match[str]) -> str:
        key, value, word = found.groups()
        if key is not None:
            return f"{key}<_>" if _DIGIT.search(value) else f"{key}{value}"
        return "<_>" if _DIGIT.search(word) else word

    shape = _VALUE.sub(replaced, text)
    return re.sub(r"<_>(?:\s+<_>)+", "<_>", shape)
