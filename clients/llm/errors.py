"""What can go wrong with a model, by what the agent can do about it.

ModelError
├── ModelUnavailable     tried again and again, and no whole answer came
├── ModelRefused         key, credit, model name or request are not accepted; trying again would not help
├── ContextTooLong       the conversation is too long for the model: shorten it and ask again
└── ToolsUnsupported     the model knows no tools: speak the text protocol
"""

from __future__ import annotations

from srearena.errors import SreArenaError


class ModelError(SreArenaError):
    """Base of the model's errors."""


class ModelUnavailable(ModelError):
    """No whole answer after all tries."""


class ModelRefused(ModelError):
    """The endpoint does not accept the request."""


class ContextTooLong(ModelError):
    """More tokens than the model takes."""


class ToolsUnsupported(ModelError):
    """The model does not take tools."""
