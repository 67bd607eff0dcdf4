"""Errors before an agent starts; later failures are an `Outcome`, never an exception.

ZeroError                 the base: its text can be printed for the user
├── RequestError          a flag, a path or an argument after `--` cannot be used
├── PromptError           a prompt cannot be rendered: unknown variable, missing include, bad front matter
└── MissingProgram        a program that the run needs is not installed, or does not start
"""

from __future__ import annotations

from srearena.errors import SreArenaError


class ZeroError(SreArenaError):
    """Base class of the errors of this package."""


class RequestError(ZeroError):
    """The request cannot be executed."""


class PromptError(ZeroError):
    """A prompt cannot be rendered."""


class MissingProgram(ZeroError):
    """A program is not installed or does not start."""
