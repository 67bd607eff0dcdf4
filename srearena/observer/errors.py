"""What can go wrong when telemetry is written to disk."""

from __future__ import annotations

from srearena.errors import SreArenaError


class ObserverError(SreArenaError):
    """An API cannot be reached or refuses, or a file cannot be written; the text says which, why and what to do."""
