"""Agents that come with SREArena: `nothing` and `scripted` as floor and for tests, `rules` as a first real one."""
