"""Time windows in seconds since the epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from srearena.observer.errors import ObserverError


@dataclass(frozen=True, slots=True)
class Window:
    """A period from `start` to `end`."""

    start: float
    end: float

    def __post_init__(self) -> None:
        if not self.start < self.end:
            raise ObserverError(
                f"a window must end after it starts: {format_timestamp(self.start)} .. {format_timestamp(self.end)}"
            )

    @classmethod
    def last(cls, seconds: float, *, until: float) -> Self:
        return cls(until - seconds, until)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    def slices(self, seconds: float) -> Iterator[Window]:
        """Split the window into pieces of at most that length."""
        start = self.start
        while start < self.end:
            end = min(start + seconds, self.end)
            yield Window(start, end)
            start = end

    def halves(self) -> tuple[Window, Window]:
        middle = self.start + self.seconds / 2
        return Window(self.start, middle), Window(middle, self.end)


def format_timestamp(seconds: float) -> str:
    """Format a time for tables: UTC, in microseconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
