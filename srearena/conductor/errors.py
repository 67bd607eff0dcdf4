"""What can go wrong in the arena that a person can do something about.

ArenaError
├── UnknownProblem       no problem, agent or result of that name; says the nearest ones
├── ProblemError         a problem is declared wrongly, or two do not go together
├── EnvironmentFailure   the stage could not be set: the application did not come up, the fault did not take
├── BadAction            an agent's action cannot be understood; the text goes back to the agent
└── BadSubmission        a submission is not what its stage asks for; the text goes back to the agent
"""

from __future__ import annotations

from srearena.errors import SreArenaError


class ArenaError(SreArenaError):
    """Base of the arena's errors."""


class UnknownProblem(ArenaError):
    """Nothing of that name is registered."""


class ProblemError(ArenaError):
    """A problem's declaration cannot be used as it stands."""


class EnvironmentFailure(ArenaError):
    """The environment failed, not the agent: such a trial is reported as an environment error, never as a zero."""


class BadAction(ArenaError):
    """An action that cannot be parsed or carried out as written."""


class BadSubmission(ArenaError):
    """A submission of the wrong shape for its stage."""
