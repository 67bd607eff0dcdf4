"""Log lines that say the same, brought together.

Lines come grouped by template already (numbers, addresses and identifiers taken out when the table was made); what is
left to do is to join templates that differ in few words. Two are joined when they have as many words and at least the
given share of them equal, word by word; where they differ the pattern has `<*>`.
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

    def likeness(self, words: list[str]) -> float:
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


def join(rows: list[dict[str, Any]], threshold: float) -> list[Pattern]:
    """Patterns of grouped lines (`template, severity, service, n, first, last`), most frequent first."""
    by_shape: dict[tuple[int, str], list[Pattern]] = {}
    exact: dict[str, Pattern] = {}
    for row in rows:
        template = row["template"] or ""
        words = template.split()
        if template in exact:
            exact[template].add(exact[template].words, row)
            continue
        # The first word keeps unlike lines of the same length apart cheaply; a number there says nothing.
        first = words[0] if words and "<" not in words[0] else ""
        nearby = by_shape.setdefault((len(words), first), [])
        best = max(nearby, key=lambda pattern: pattern.likeness(words), default=None)
        if best is None or best.likeness(words) < threshold:
            best = Pattern(list(words))
            nearby.append(best)
        best.add(words, row)
        exact[template] = best
    found = [pattern for group in by_shape.values() for pattern in group]
    return sorted(found, key=lambda pattern: (-pattern.count, pattern.words))


def find_lines(snapshot: Snapshot, wanted: Iterable[tuple[str | None, datetime | None]]) -> dict[Any, str]:
    """A whole line for each template and time; reading all lines only to show a few would take far longer."""
    asked = {pair for pair in wanted if pair[1] is not None}
    if not asked:
        return {}
    times = sorted({time.replace(tzinfo=None) for _, time in asked if time})
    marks = ", ".join("?" for _ in times)
    rows = snapshot.rows(
        f"SELECT template, time, min(body) AS body FROM logs WHERE time IN ({marks}) GROUP BY template, time", times
    )
    return {(row["template"], row["time"]): row["body"] for row in rows if (row["template"], row["time"]) in asked}
