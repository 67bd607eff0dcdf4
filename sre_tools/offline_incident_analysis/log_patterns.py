"""Clustering of log lines into patterns.

Lines are already grouped by template (without numbers, addresses and identifiers, removed when the table was built).
Templates are merged if they have the same number of words and at least the given share of them is equal, word by word;
the pattern has `<*>` where they differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from srearena.snapshots import Snapshot

WILDCARD = "<*>"


@dataclass(slots=True)
class Pattern:
    words: list[str]
    count: int = 0
    first: datetime | None = None
    last: datetime | None = None
    severities: Counter[str] = field(default_factory=Counter)
    services: Counter[str] = field(default_factory=Counter)
    example: dict[str, Any] = field(default_factory=dict)

    def similarity(self, words: list[str]) -> float:
        same = sum(a == b for a, b in zip(self.words, words, strict=True))
        return same / len(words) if words else 1.0

    def add(self, words: list[str], row: dict[str, Any]) -> None:
        self.words = [a if a == b else WILDCARD for a, b in zip(self.words, words, strict=True)]
        self.count += row["n"]
        times = [t for t in (self.first, row["first"]) if t]
        self.first = min(times) if times else None
        times = [t for t in (self.last, row["last"]) if t]
        self.last = max(times) if times else None
        self.severities[row["severity"] or "unknown"] += row["n"]
        self.services[row["service"] or "unknown"] += row["n"]
        if not self.example:
            self.example = {
                "template": row["template"],
                "timestamp": row["first"],
                "service": row["service"],
                "severity": row["severity"],
            }


def merge_templates(rows: list[dict[str, Any]], threshold: float) -> list[Pattern]:
    """Patterns of grouped lines (`template, severity, service, n, first, last`), most frequent first."""
    by_shape: dict[tuple[int, str], list[Pattern]] = {}
    exact: dict[str, Pattern] = {}
    for row in rows:
        template = row["template"] or ""
        words = template.split()
        if template in exact:
            exact[template].add(exact[template].words, row)
            continue
        # Comparing only templates with the same length and first word is cheap; a variable first word does not count.
        first = words[0] if words and "<" not in words[0] else ""
        candidates = by_shape.setdefault((len(words), first), [])
        best = max(candidates, key=lambda pattern: pattern.similarity(words), default=None)
        if best is None or best.similarity(words) < threshold:
            best = Pattern(list(words))
            candidates.append(best)
        best.add(words, row)
        exact[template] = best
    patterns = [pattern for group in by_shape.values() for pattern in group]
    return sorted(patterns, key=lambda pattern: (-pattern.count, pattern.words))


def find_lines(snapshot: Snapshot, keys: Iterable[tuple[str | None, datetime | None]]) -> dict[Any, str]:
    """A complete line for each template and time; only the lines at these times are read."""
    requested = {key for key in keys if key[1] is not None}
    if not requested:
        return {}
    times = sorted({time.replace(tzinfo=None) for _, time in requested if time})
    marks = ", ".join("?" for _ in times)
    rows = snapshot.rows(
        f"SELECT template, time, min(body) AS body FROM logs WHERE time IN ({marks}) GROUP BY template, time", times
    )
    return {(row["template"], row["time"]): row["body"] for row in rows if (row["template"], row["time"]) in requested}
