"""What can go wrong before an agent starts; what happens after is an `Outcome`, never an exception.

ZeroError                 the base: its text is fit to print as it stands
├── RequestError          a flag, a path or an argument after `--` cannot be used
├── PromptError           a prompt cannot be rendered: unknown variable, missing include, bad front matter
└── MissingProgram        a program that the run needs is not installed, or does not start
"""

from __future__ import annotations

from srearena.errors import SreArenaError


class ZeroError(SreArenaError):
    """Base of everything this package raises on purpose."""


class RequestError(ZeroError):
    """Something the user asked for cannot be done."""


class PromptError(ZeroError):
    """A prompt cannot be rendered."""


class MissingProgram(ZeroError):
    """A program is not there, or does not come up."""
