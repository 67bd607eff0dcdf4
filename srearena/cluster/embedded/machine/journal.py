"""The journal of a machine: what its kernel and its system services logged, newest last."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

KERNEL = "kernel"
SERVICE_MANAGER = "systemd[1]"
_KEPT = 5000


class JournalEntry(NamedTuple):
    time: float
    unit: str
    """The service, or `kernel`."""
    text: str
    sender: str = ""
    """Who logged it, where that is not the unit itself."""


class Journal:
    def __init__(self) -> None:
        self.entries: deque[JournalEntry] = deque(maxlen=_KEPT)

    def write(self, now: float, unit: str, text: str, sender: str = "") -> None:
        self.entries.append(JournalEntry(now, unit, text, sender))

    def of(self, unit: str) -> list[JournalEntry]:
        """The entries of a unit; of all without one."""
        return [entry for entry in self.entries if not unit or entry.unit == unit]
