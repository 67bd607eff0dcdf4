"""Names of ITBench in a recording: the namespace of an application as its public data set has it.

The shop runs in `otel-demo` there. A recording is rewritten as a whole (tables, addresses, file names, answer key), so
that it stays consistent, and questions and keys written for one data set fit the other.
"""

from __future__ import annotations

import re
from pathlib import Path

NAMESPACES = {"astronomy-shop": "otel-demo"}
"""Namespaces of ours, and those of ITBench."""


def rename_namespaces(*places: Path) -> None:
    """Rewrite all files at or under these places."""
    for place in places:
        for path in [place] if place.is_file() else sorted(place.rglob("*")):
            if path.is_file():
                text = path.read_bytes()
                renamed = _renamed(text)
                if renamed != text:
                    path.write_bytes(renamed)
                name = _renamed(path.name.encode()).decode()
                if name != path.name:
                    path.rename(path.with_name(name))


def _renamed(text: bytes) -> bytes:
    """Replace whole names: `astronomy-shop.svc`, but not `my-astronomy-shop` or `astronomy-shop-2`."""
    for old, new in NAMESPACES.items():
        text = re.sub(rb"(?<![\w-])" + re.escape(old.encode()) + rb"(?![\w-])", new.encode(), text)
    return text
