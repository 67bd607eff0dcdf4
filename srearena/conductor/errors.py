"""Errors of the arena that a user or an agent can act on.

ArenaError
├── UnknownProblem       no problem, agent or result of that name; names the nearest ones
├── ProblemError         a problem is declared wrongly, or two cannot be combined
├── EnvironmentFailure   the episode could not be prepared: no ready application, or no fault
├── BadAction            an agent's action cannot be parsed or performed; the message goes to the agent
└── BadSubmission        a submission is malformed; the message goes to the agent
"""

from __future__ import annotations

from srearena.errors import SreArenaError


class ArenaError(SreArenaError):
    """Base class of the arena's errors."""


class UnknownProblem(ArenaError):
    """No problem, agent or result of that name is registered."""


class ProblemError(ArenaError):
    """A problem's declaration is wrong."""


class EnvironmentFailure(ArenaError):
    """The environment failed, not the agent: such a trial is reported as an environment error, never as a zero."""


class BadAction(ArenaError):
    """An action that cannot be parsed or performed."""


class BadSubmission(ArenaError):
    """A submission that is malformed for its stage."""
