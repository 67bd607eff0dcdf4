"""Runs episodes: an agent on a broken system, graded at the end."""

from srearena.conductor.conductor import Conductor
from srearena.conductor.episode.spec import EpisodeSpec

__all__ = ["Conductor", "EpisodeSpec"]
