"""Parser of the Prometheus text exposition format."""

from __future__ import annotations

import re
from collections.abc import Iterator

from srearena.cluster.embedded.machine.exporter import Sample

_LINE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*")
_LABEL = re.compile(r'([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_WRITTEN = {"n": "\n", '"': '"', "\\": "\\"}


def samples_of(text: str) -> Iterator[Sample]:
    """Yield the samples of a text; ValueError at the first malformed line, which fails the whole scrape."""
    for line in text.split("\n"):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            raise ValueError(f"expected a metric, got {line[:60]!r}")
        yield match[1], {key: _plain(value) for key, value in _LABEL.findall(match[2] or "")}, float(match[3])


def types_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield declared names and types."""
    for line in text.split("\n"):
        words = line.split()
        if len(words) >= 4 and words[:2] == ["#", "TYPE"]:
            yield words[2], words[3]


def _plain(value: str) -> str:
    return _ESCAPED.sub(lambda match: _WRITTEN.get(match[1], match[0]), value) if "\\" in value else value
