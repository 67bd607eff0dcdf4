"""The error of telemetry export and recording."""

from __future__ import annotations

from srearena.errors import SreArenaError


class ObserverError(SreArenaError):
    """An API is unreachable or rejects a request, or a file cannot be written; the text says why and what to do."""
