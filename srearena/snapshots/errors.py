"""Errors of reading a recording."""

from __future__ import annotations

from srearena.errors import SreArenaError


class SnapshotError(SreArenaError):
    """A recording is missing, is not a recording, or cannot be read."""


class MissingExtra(SnapshotError):
    """A library that reading recordings needs is not installed."""


class DataError(SnapshotError):
    """A query failed on the data of a recording."""
