"""Errors of cluster access and of applications, by what a caller can do about them.

ServiceError
├── KubeconfigError          the kubeconfig cannot be used
├── Unreachable              the API server does not answer
├── ApiRefused               it responded with an error
│   ├── NotFound             404
│   ├── AlreadyExists        409, on create
│   ├── Conflict             409, on a write to something that changed or is owned by another
│   └── Invalid              422, or 400: the object is wrong
├── UnknownResource          no kind, plural or short name of that kind is served
├── TimedOut                 a condition was not met in time
├── CommandFailed            a command in a container, or a tool on this machine, ended with an error
├── ToolMissing              a program that is needed is not installed
├── ManifestError            a manifest is invalid
└── ApplicationError         an application's metadata is wrong, or there is no such application
    └── NotReady             it did not become ready
"""

from __future__ import annotations

from typing import Any

from srearena.errors import SreArenaError


class ServiceError(SreArenaError):
    """A problem with an application or its cluster that a user can act on."""


class KubeconfigError(ServiceError):
    """The kubeconfig is missing, malformed, or uses an unsupported authentication method."""


class Unreachable(ServiceError):
    """The API server does not answer."""


class ApiRefused(ServiceError):
    """The API server responded with an error; `code`, `reason` and `details` are those of its Status."""

    def __init__(self, message: str, code: int = 0, reason: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details or {}


class NotFound(ApiRefused):
    """There is no such object."""


class AlreadyExists(ApiRefused):
    """An object of that name exists."""


class Conflict(ApiRefused):
    """The object has changed since it was read, or another manager owns a field."""


class Invalid(ApiRefused):
    """The object or the request is invalid."""


class UnknownResource(ServiceError):
    """The cluster serves nothing of that name."""


class TimedOut(ServiceError):
    """A condition was not met in time."""


class CommandFailed(ServiceError):
    """A command ended with an error."""

    def __init__(self, message: str, status: int = 1, output: str = "", errors: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.output = output
        self.errors = errors


class ToolMissing(ServiceError):
    """A program that is needed is not installed on this machine."""


class ManifestError(ServiceError):
    """A manifest is invalid; the message names file, line and reason."""


class ApplicationError(ServiceError):
    """An application's description is invalid, or there is no such application."""


class NotReady(ApplicationError):
    """An application did not become ready in time; the message lists what is not ready and why."""


_BY_REASON: dict[str, type[ApiRefused]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Invalid": Invalid,
    "BadRequest": Invalid,
}
_BY_CODE: dict[int, type[ApiRefused]] = {404: NotFound, 409: Conflict, 422: Invalid, 400: Invalid}


def api_error(code: int, status: Any, text: str = "") -> ApiRefused:
    """Create the exception for an error response; `status` is its decoded body, if that is a Status."""
    if not isinstance(status, dict) or status.get("kind") != "Status":
        plain = text.strip() or f"the server answered {code}"
        return _BY_CODE.get(code, ApiRefused)(plain, code)
    reason = str(status.get("reason") or "")
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiRefused)
    message = str(status.get("message") or text or f"the server answered {code}")
    return kind(message, code, reason, status.get("details"))
