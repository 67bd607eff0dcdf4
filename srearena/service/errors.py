"""What can go wrong between us and a cluster, or with an application, by what a caller can do about it.

ServiceError
├── KubeconfigError          the kubeconfig cannot be used
├── Unreachable              the API server does not answer
├── ApiRefused               it answered with an error
│   ├── NotFound             404
│   ├── AlreadyExists        409, on create
│   ├── Conflict             409, on a write to something that changed or is owned by another
│   └── Invalid              422, or 400: the object is wrong
├── UnknownResource          no kind, plural or short name of that kind is served
├── TimedOut                 something waited for did not happen
├── CommandFailed            a command in a container, or a tool on this machine, ended with an error
├── ToolMissing              a program that is needed is not installed
├── ManifestError            a manifest cannot be applied as it is written
└── ApplicationError         an application's metadata is wrong, or there is no such application
    └── NotReady             it did not come up
"""

from __future__ import annotations

from typing import Any

from srearena.errors import SreArenaError


class ServiceError(SreArenaError):
    """Something about an application or its cluster that a user can act on."""


class KubeconfigError(ServiceError):
    """The kubeconfig is missing, broken, or uses a way to log in that is not supported."""


class Unreachable(ServiceError):
    """The API server does not answer."""


class ApiRefused(ServiceError):
    """The API server answered with an error; `code`, `reason` and `details` are those of its Status."""

    def __init__(self, message: str, code: int = 0, reason: str = "", details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.details = details or {}


class NotFound(ApiRefused):
    """There is no such object."""


class AlreadyExists(ApiRefused):
    """An object of that name is there already."""


class Conflict(ApiRefused):
    """The object changed meanwhile, or another manager owns a field."""


class Invalid(ApiRefused):
    """The object, or the request, is wrong."""


class UnknownResource(ServiceError):
    """The cluster serves nothing of that name."""


class TimedOut(ServiceError):
    """What was waited for did not happen in time."""


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
    """A manifest is broken; the message names file, line and reason."""


class ApplicationError(ServiceError):
    """An application cannot be used as it is described, or does not exist."""


class NotReady(ApplicationError):
    """An application did not come up in time; the message lists what is not ready and why."""


_BY_REASON: dict[str, type[ApiRefused]] = {
    "NotFound": NotFound,
    "AlreadyExists": AlreadyExists,
    "Conflict": Conflict,
    "Invalid": Invalid,
    "BadRequest": Invalid,
}
_BY_CODE: dict[int, type[ApiRefused]] = {404: NotFound, 409: Conflict, 422: Invalid, 400: Invalid}


def refusal(code: int, status: Any, text: str = "") -> ApiRefused:
    """The exception for an error answer: `status` is its decoded body, if that was a Status."""
    if not isinstance(status, dict) or status.get("kind") != "Status":
        said = text.strip() or f"the server answered {code}"
        return _BY_CODE.get(code, ApiRefused)(said, code)
    reason = str(status.get("reason") or "")
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiRefused)
    message = str(status.get("message") or text or f"the server answered {code}")
    return kind(message, code, reason, status.get("details"))
