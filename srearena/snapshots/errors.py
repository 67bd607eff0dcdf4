"""What can go wrong with a recording, as far as its reader can do something about it."""

from __future__ import annotations

from srearena.errors import SreArenaError


class SnapshotError(SreArenaError):
    """A recording is not where it was said to be, is no recording, or cannot be read."""


class MissingExtra(SnapshotError):
    """A library that reading recordings needs is not installed."""


class DataError(SnapshotError):
    """A query failed on what the recording holds."""
