"""Errors of model calls, by what the caller can do about them.

ModelError
├── ModelUnavailable     no complete reply after all tries
├── ModelRefused         key, credit, model name or request are not accepted; a retry would not help
├── ContextTooLong       the conversation is too long for the model: shorten it and try again
├── ToolsUnsupported     the model takes no tools: use the text protocol
└── TransientError       one attempt failed; a retry may succeed
    ├── InvalidResponse      the endpoint accepted the request, but its response is incomplete or malformed
    └── ParameterRejected    the endpoint rejected an optional parameter, which later requests leave out
"""

from __future__ import annotations

from srearena.errors import SreArenaError


class ModelError(SreArenaError):
    """Base class of model errors.

    `status` is the HTTP status, 0 if there was no HTTP response. `detail` is what the endpoint or the connection
    reported, without our own words around it.
    """

    def __init__(self, message: str, *, status: int = 0, detail: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.detail = detail or message


class ModelUnavailable(ModelError):
    """No complete reply after all tries."""


class ModelRefused(ModelError):
    """The endpoint does not accept the request."""


class ContextTooLong(ModelError):
    """More tokens than the model takes."""


class ToolsUnsupported(ModelError):
    """The model does not take tools."""


class TransientError(ModelError):
    """A failed attempt that may succeed when retried. `wait` is the delay the server asked for, in seconds."""

    def __init__(self, message: str, *, status: int = 0, detail: str = "", wait: float | None = None) -> None:
        super().__init__(message, status=status, detail=detail)
        self.wait = wait


class InvalidResponse(TransientError):
    """A response that ended early or does not follow the wire format."""


class ParameterRejected(TransientError):
    """The endpoint rejected an optional parameter; the next attempt leaves it out."""
