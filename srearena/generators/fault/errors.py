"""What an injector complains about."""

from __future__ import annotations

from srearena.errors import SreArenaError


class FaultError(SreArenaError):
    """A fault cannot be injected or undone; the message says which, where and why."""
