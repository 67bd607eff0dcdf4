"""Runs episodes: an agent, a broken system, and an honest grade at the end."""

from srearena.conductor.conductor import Conductor

__all__ = ["Conductor"]
