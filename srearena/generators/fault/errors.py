"""The error of fault injection."""

from __future__ import annotations

from srearena.errors import SreArenaError


class FaultError(SreArenaError):
    """A fault cannot be injected or recovered; the message says which, where and why."""
