"""Episodes as Gymnasium environments: `gymnasium.make("SREArena/Incident-v0", problem=...)`; the extra `gymnasium`."""
