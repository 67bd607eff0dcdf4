"""Errors of this package, one type per thing a caller can do about it.

LeaderboardError              the message can be printed as it is
├── ConfigurationError        the TOML file or a flag is wrong: fix it and run again
├── Unreachable               a model, an agent or the judge does not answer: nothing was spent yet
└── Busy                      another process has locked a run
"""

from __future__ import annotations

from srearena.errors import SreArenaError


class LeaderboardError(SreArenaError):
    """Base class of the errors of this package."""


class ConfigurationError(LeaderboardError):
    """The configuration or a flag is invalid."""


class Unreachable(LeaderboardError):
    """A model, an agent or the judge does not answer."""


class Busy(LeaderboardError):
    """Another process has locked a run."""
