"""Faults, by the level of the system they touch: each changes state, and can be undone."""
