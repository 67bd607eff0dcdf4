"""Episodes as Gymnasium environments, registered by importing this package; the extra `gymnasium`."""

import gymnasium

ENVIRONMENT = "SREArena/Incident-v0"

if ENVIRONMENT not in gymnasium.registry:
    gymnasium.register(ENVIRONMENT, entry_point="srearena.gym.environment:IncidentEnvironment")
