"""What can go wrong here, one type per thing a caller can do about it.

LeaderboardError              the base: its text is fit to print as it stands
├── ConfigurationError        the TOML file or a flag is wrong: fix it and run again
├── Unreachable               a model, an agent or the judge does not answer: nothing was spent yet
└── Busy                      somebody else holds a run
"""

from __future__ import annotations

from srearena.errors import SreArenaError


class LeaderboardError(SreArenaError):
    """Base of everything this package raises on purpose."""


class ConfigurationError(LeaderboardError):
    """Something the user wrote cannot be used."""


class Unreachable(LeaderboardError):
    """What is needed to spend money well does not answer."""


class Busy(LeaderboardError):
    """A run is in the hands of another process."""
