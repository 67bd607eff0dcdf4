"""Runs episodes: an agent on a broken system, graded at the end."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from srearena.conductor.conductor import Conductor
    from srearena.conductor.episode.spec import EpisodeSpec

__all__ = ["Conductor", "EpisodeSpec"]

_MODULES = {"Conductor": "srearena.conductor.conductor", "EpisodeSpec": "srearena.conductor.episode.spec"}


def __getattr__(name: str) -> Any:
    """Import on first use: an agent's process imports parts of this package, never the problems."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
