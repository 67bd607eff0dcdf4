"""Statements of bulk traffic as a SQL server sees them: which run now, what they took in total, and the slow ones.

What runs at a moment is derived from rates and durations, the same at every look: a statement of ten seconds that was
three seconds old is four seconds old a second later.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Protocol
from zlib import crc32

from srearena.cluster.embedded.programs.datastores.datastore import BulkStatements

MAX_POOL = 100
"""Connections of one client that are listed, at most. Chosen: pools of real clients are smaller."""
MAX_DIGESTS = 10_000
"""Distinct statements that are kept, as performance_schema_digests_size has it."""
_TOKEN = re.compile(r"""'(?:[^'\\]|''|\\.)*'|"[^"]*"|`[^`]*`|[A-Za-z_]\w*|\d+(?:\.\d+)?|<=|>=|<>|!=|\S""")


@dataclass(slots=True)
class Digest:
    """Totals of one normalized statement in one database."""

    database: str
    text: str
    sample: str
    first_seen: float
    last_seen: float
    user: str = ""
    calls: float = 0.0
    seconds: float = 0.0
    longest: float = 0.0
    shortest: float = 0.0
    rows: float = 0.0
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Running:
    """A statement that runs now."""

    client: str
    position: int
    """Which connection of the client's pool runs it."""
    text: str
    target: str
    age: float


class ClientSession(Protocol):
    """A session of a server."""

    client: str
    """The application that keeps it in its pool; empty where it is a person's."""


class Activity:
    """What applications have a server do."""

    def __init__(self) -> None:
        self.statements: list[tuple[BulkStatements, str]] = []
        """The latest report, with the text of each statement."""
        self.digests: dict[tuple[str, str], Digest] = {}
        self._owed: dict[tuple[str, str], float] = {}
        """Fractions of slow statements that are not yet logged."""

    def report(self, statements: Sequence[tuple[BulkStatements, str]], now: float) -> None:
        self.statements = list(statements)
        for one, text in statements:
            if one.calls:
                longest = one.mean_seconds * (2.0 if one.calls > 1 else 1.0)
                self.add(one.database, text, one.calls, one.calls * one.mean_seconds, longest, now)

    def add(self, database: str, text: str, calls: float, seconds: float, longest: float, now: float) -> Digest | None:
        """Count executions of a statement."""
        key = (database, normalized(text))
        found = self.digests.get(key)
        if found is None:
            if len(self.digests) >= MAX_DIGESTS:
                return None
            found = self.digests[key] = Digest(database, key[1], text, now, now, shortest=longest)
        found.calls += calls
        found.seconds += seconds
        found.rows += calls
        found.longest = max(found.longest, longest)
        found.shortest = min(found.shortest, seconds / calls)
        found.last_seen = now
        return found

    def pool_sizes(self) -> dict[str, int]:
        """How many connections each client needs for what it runs at once."""
        needed: dict[str, float] = {}
        for one, _ in self.statements:
            needed[one.client] = needed.get(one.client, 0.0) + one.running
        return {client: min(MAX_POOL, max(1, ceil(number - 0.05))) for client, number in needed.items()}

    def running(self, now: float) -> Iterator[Running]:
        """Yield the statements that run at this moment."""
        positions: dict[str, int] = {}
        for one, text in self.statements:
            # One digit, so that ages go on while the mean varies by a few milliseconds.
            period = max(float(f"{one.mean_seconds:.1g}"), 1e-6)
            chance = _share(one.client, text, str(int(now / max(period, 1.0))))
            for _ in range(min(MAX_POOL, int(one.running + chance))):
                position = positions.get(one.client, 0)
                positions[one.client] = position + 1
                offset = _share(one.client, text, str(position)) * period
                yield Running(one.client, position, text, one.target, (now + offset) % period)

    def running_by_session(self, now: float, sessions: Mapping[int, ClientSession]) -> dict[int, Running]:
        """Return the statements that run at this moment, by the number of the session that runs each."""
        pools: dict[str, list[int]] = {}
        for number, session in sessions.items():
            if session.client:
                pools.setdefault(session.client, []).append(number)
        running: dict[int, Running] = {}
        for one in self.running(now):
            pool = pools.get(one.client, [])
            if one.position < len(pool):
                running[pool[one.position]] = one
        return running

    def slow(self, threshold: float) -> Iterator[tuple[BulkStatements, str, int]]:
        """Yield the statements of the latest report that took longer, with how many there were; call once a report."""
        for one, text in self.statements:
            share = one.share_above(threshold) if one.calls else 0.0
            if share <= 0:
                continue
            key = (one.client, text)
            owed = self._owed.get(key, 0.0) + one.calls * share
            self._owed[key] = owed - int(owed)
            if int(owed):
                yield one, text, int(owed)


def slow_seconds(one: BulkStatements, threshold: float, number: int) -> float:
    """Return the duration of one slow statement out of several: beyond the threshold, around the mean."""
    chance = _share(one.client, one.target, f"{number}/{one.calls:.3f}")
    return (
        max(threshold, one.mean_seconds) * (1 + 0.3 * chance)
        if one.mean_seconds < threshold
        else max(threshold, one.mean_seconds * (0.9 + 0.2 * chance))
    )


def derived_text(operation: str, table: str, columns: Sequence[str], marks: Sequence[str]) -> str:
    """Return the statement that a client sends for a verb of the model; `marks` are its placeholders or literals."""
    names = list(columns) or ["id"]
    key = names[0]
    if operation in ("insert", "save", "upsert"):
        return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(marks[: len(names)])})"
    if operation in ("delete", "remove"):
        return f"DELETE FROM {table} WHERE {key} = {marks[0]}"
    if operation == "update":
        return f"UPDATE {table} SET {names[-1]} = {marks[0]} WHERE {key} = {marks[1 % len(marks)]}"
    return f"SELECT {', '.join(names)} FROM {table} WHERE {key} = {marks[0]}"


def normalized(text: str) -> str:
    """Return a statement with its literals replaced, as statement digests have it."""
    return " ".join("?" if _literal(token) else token for token in _TOKEN.findall(text))


def _literal(token: str) -> bool:
    return token[0] == "'" or token[0].isdigit()


def _share(*words: str) -> float:
    """Return a number in [0, 1) that depends on the words alone."""
    return crc32("/".join(words).encode()) / 2**32
