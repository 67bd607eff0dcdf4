"""Runs episodes: an agent, a broken system, and an honest grade at the end."""

from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.spec import EpisodeSpec

__all__ = ["Conductor", "EpisodeSpec"]
