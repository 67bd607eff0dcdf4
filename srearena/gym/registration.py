"""Registration with Gymnasium, called by its entry-point group; imports nothing heavy."""

from __future__ import annotations

ENVIRONMENT = "SREArena/Incident-v0"


def register() -> None:
    import gymnasium

    if ENVIRONMENT not in gymnasium.registry:
        gymnasium.register(ENVIRONMENT, entry_point="srearena.gym.environment:IncidentEnvironment")
