"""The log of a partition: messages by offset, in batches.

Traffic appends in bulk, by count and size, without contents; tools append single messages with theirs. Both are in one
order. What retention removes moves the log's start.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any

OVERHEAD = 70
"""Bytes a record costs in a batch of its own, beyond key and value."""
MERGE_SECONDS = 60.0


@dataclass(slots=True)
class Batch:
    base: int
    count: int
    size: int
    """Bytes of one message."""
    at: float
    key: bytes | None = None
    value: bytes | None = None
    """The contents, for a message that has them."""

    @property
    def end(self) -> int:
        return self.base + self.count

    @property
    def bytes(self) -> int:
        return self.count * (self.size + OVERHEAD)


@dataclass(slots=True)
class Partition:
    start: int = 0
    end: int = 0
    size: int = 0
    batches: list[Batch] = field(default_factory=list)

    def append(self, count: int, size: int, now: float) -> None:
        last = self.batches[-1] if self.batches else None
        if last is not None and last.value is None and last.size == size and now - last.at < MERGE_SECONDS:
            last.count += count
        else:
            self.batches.append(Batch(self.end, count, size, now))
        self.end += count
        self.size += count * (size + OVERHEAD)

    def add(self, key: bytes | None, value: bytes, now: float) -> int:
        """One message with contents; its offset."""
        size = len(value) + len(key or b"")
        self.batches.append(Batch(self.end, 1, size, now, key, value))
        self.end += 1
        self.size += size + OVERHEAD
        return self.end - 1

    def read(self, offset: int, limit: int) -> list[tuple[int, bytes | None, bytes]]:
        """(offset, key, value) from an offset on; messages of bulk traffic have placeholders for contents."""
        found: list[tuple[int, bytes | None, bytes]] = []
        for batch in self.batches:
            if batch.end <= offset:
                continue
            for position in range(max(batch.base, offset), batch.end):
                if len(found) >= limit:
                    return found
                value = batch.value if batch.value is not None else b"\x00" * min(batch.size, 64)
                found.append((position, batch.key, value))
        return found

    def retain(self, oldest: float, most: int) -> int:
        """Drop what is older than that moment, and the oldest beyond so many bytes (-1: any); how many messages."""
        dropped = 0
        while len(self.batches) > 1 and (self.batches[0].at < oldest or (0 <= most < self.size)):
            gone = self.batches.pop(0)
            self.size -= gone.bytes
            self.start = gone.end
            dropped += gone.count
        return dropped

    def truncate(self, before: int) -> None:
        """Delete records up to an offset."""
        while self.batches and self.batches[0].end <= before:
            self.size -= self.batches.pop(0).bytes
        self.start = max(self.start, min(before, self.end))

    def stored(self) -> dict[str, Any]:
        rows = [[b.base, b.count, b.size, b.at, _text(b.key), _text(b.value)] for b in self.batches]
        return {"start": self.start, "end": self.end, "batches": rows}

    @classmethod
    def restored(cls, data: dict[str, Any]) -> Partition:
        batches = [
            Batch(base, count, size, at, _bytes(key), _bytes(value))
            for base, count, size, at, key, value in data["batches"]
        ]
        return cls(data["start"], data["end"], sum(batch.bytes for batch in batches), batches)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
