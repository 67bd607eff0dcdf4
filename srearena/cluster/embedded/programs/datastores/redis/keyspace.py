"""The keys of a Redis server: values by database, expiry, and the memory they take.

Memory is counted per key and shown to the container's meter in steps; a limit set with `maxmemory` evicts or refuses,
the container's own limit kills.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from srearena.cluster.embedded.machine.processes.process import Process

OVERHEAD = 64
"""Bytes a key costs beyond its content."""
STEP = 65536
DATABASES = 16
_UNITS = {"k": 1000, "kb": 1024, "m": 1000**2, "mb": 1024**2, "g": 1000**3, "gb": 1024**3, "b": 1, "": 1}


@dataclass(frozen=True, slots=True)
class Blob:
    """A string of that length without stored bytes."""

    size: int

    def __len__(self) -> int:
        return self.size


Stored = bytes | Blob | list[bytes] | dict[bytes, bytes] | set[bytes] | dict[bytes, float]
TYPES = {bytes: "string", Blob: "string", list: "list", set: "set", dict: "hash"}


class SortedSet(dict[bytes, float]):
    """Members and their scores."""


def memory_size(text: str) -> int | None:
    """`20mb` → bytes; None for what is no size."""
    lower = text.strip().lower()
    number = lower.rstrip("bkmg")
    unit = lower[len(number) :]
    return int(number) * _UNITS[unit] if number.isdigit() and unit in _UNITS else None


class Keyspace:
    def __init__(self, process: Process) -> None:
        self.process = process
        self.databases: dict[int, dict[bytes, Stored]] = {0: {}}
        self.expiries: dict[int, dict[bytes, float]] = {0: {}}
        self.values = self.databases[0]
        self.expiry = self.expiries[0]
        self.used = 0
        self.base = process.memory
        self.limit = 0
        self.policy = "noeviction"
        self.evicted = 0
        self.expired = 0
        self.dirty = 0
        """Changes since the last save."""
        self.losses = 0

    def select(self, number: int) -> None:
        """Work on that database from now on."""
        self.values = self.databases.setdefault(number, {})
        self.expiry = self.expiries.setdefault(number, {})

    # --- keys --------------------------------------------------------------------------------------------------

    def drop_expired(self, keys: list[bytes]) -> None:
        now = self.process.clock.now
        for key in keys:
            if self.expiry.get(key, now + 1) <= now:
                self.remove(key)
                self.expired += 1

    def drop_all_expired(self) -> None:
        """What Redis does in the background for keys that no client asks for."""
        now, selected = self.process.clock.now, (self.values, self.expiry)
        for number, expiry in self.expiries.items():
            gone = [key for key, moment in expiry.items() if moment <= now]
            if gone:
                self.select(number)
                self.drop_expired(gone)
        self.values, self.expiry = selected

    def remove(self, key: bytes) -> bool:
        self.expiry.pop(key, None)
        value = self.values.pop(key, None)
        if value is None:
            return False
        self.dirty += 1
        self._account(-weight(key, value))
        return True

    def store(self, key: bytes, value: Stored) -> None:
        old = self.values.get(key)
        self._account(weight(key, value) - (weight(key, old) if old is not None else 0))
        self.values[key] = value
        self.dirty += 1

    def flush(self, *, everything: bool) -> None:
        chosen = list(self.databases) if everything else [n for n, d in self.databases.items() if d is self.values]
        for number in chosen:
            self._account(-sum(weight(key, value) for key, value in self.databases[number].items()))
            self.databases[number].clear()
            self.expiries[number].clear()
        self.dirty += 1
        self.losses += 1

    # --- memory ------------------------------------------------------------------------------------------------

    @property
    def memory(self) -> int:
        """used_memory."""
        return self.base + self.used

    def _account(self, change: int) -> None:
        before = self.used // STEP
        self.used += change
        if self.used // STEP != before:
            self.process.set_memory(self.base + self.used)

    def makes_room(self) -> bool:
        """Before a write: evict as the policy says; False where memory stays above the limit."""
        if not self.limit or self.memory <= self.limit:
            return True
        if self.policy == "noeviction":
            return False
        for key in list(self._victims()):
            if self.memory <= self.limit:
                break
            self.remove(key)
            self.evicted += 1
        return self.memory <= self.limit

    def _victims(self) -> Iterator[bytes]:
        """In the order they were written, which stands in for the order they were last used."""
        if self.policy.startswith("volatile"):
            yield from sorted(self.expiry, key=lambda key: self.expiry[key])
        else:
            yield from self.values

    # --- disk --------------------------------------------------------------------------------------------------

    def encoded(self) -> bytes:
        """Everything, for dump.rdb."""
        rows = [
            [number, _text(key), _kind(value), _packed(value), self.expiries[number].get(key)]
            for number, values in self.databases.items()
            for key, value in values.items()
        ]
        return b"REDIS0011" + json.dumps(rows).encode()

    def decode(self, data: bytes) -> None:
        """Take over what `encoded` made; ValueError for anything else."""
        if not data.startswith(b"REDIS0011"):
            raise ValueError("Wrong signature trying to load DB from file")
        for number, key, kind, content, moment in json.loads(data[9:]):
            self.select(number)
            name = base64.b64decode(key)
            self.store(name, _unpacked(kind, content))
            if moment is not None:
                self.expiry[name] = moment
        self.select(0)
        self.dirty = 0


def weight(key: bytes, value: Stored) -> int:
    if isinstance(value, bytes | Blob):
        content = len(value)
    elif isinstance(value, SortedSet):
        content = sum(len(member) + 40 for member in value)
    elif isinstance(value, dict):
        content = sum(len(field) + _length(item) + 32 for field, item in value.items())
    else:
        content = sum(len(item) + 16 for item in value)
    return len(key) + content + OVERHEAD


def _length(item: bytes | float) -> int:
    return len(item) if isinstance(item, bytes) else 8


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _kind(value: Stored) -> str:
    return "zset" if isinstance(value, SortedSet) else "blob" if isinstance(value, Blob) else TYPES[type(value)]


def _packed(value: Stored) -> Any:
    if isinstance(value, Blob):
        return value.size
    if isinstance(value, bytes):
        return _text(value)
    if isinstance(value, SortedSet):
        return [[_text(member), score] for member, score in value.items()]
    if isinstance(value, dict):
        return [[_text(field), _text(item)] for field, item in value.items() if isinstance(item, bytes)]
    return [_text(item) for item in (sorted(value) if isinstance(value, set) else value)]


def _unpacked(kind: str, content: Any) -> Stored:
    makers: dict[str, Callable[[], Stored]] = {
        "blob": lambda: Blob(content),
        "string": lambda: base64.b64decode(content),
        "zset": lambda: SortedSet({base64.b64decode(member): score for member, score in content}),
        "hash": lambda: {base64.b64decode(field): base64.b64decode(item) for field, item in content},
        "set": lambda: {base64.b64decode(item) for item in content},
        "list": lambda: [base64.b64decode(item) for item in content],
    }
    return makers[kind]()
