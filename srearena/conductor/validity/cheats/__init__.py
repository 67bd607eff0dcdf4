"""Cheats: agent scripts that must not win. Each module says how its cheat would win and what stops it."""
