"""What the API answers when it refuses, as one tree of exceptions that each carry their `Status`.

    ApiError
    ├── BadRequest                400
    ├── Unauthorized              401
    ├── Forbidden                 403
    ├── NotFound                  404
    ├── NotAcceptable             406
    ├── AlreadyExists             409
    ├── Conflict                  409
    │   └── ApplyConflict         409, with one cause per contested field
    ├── Expired                   410, reason Expired: list again
    ├── RequestEntityTooLarge     413
    ├── UnsupportedMediaType      415
    ├── Invalid                   422, with one cause per `FieldError`
    ├── TooManyRequests           429
    ├── InternalError             500
    ├── ServiceUnavailable        503
    └── Timeout                   504

Wording, reasons, codes and details are those of k8s.io/apimachinery/pkg/api/errors, since clients match on them.
A resource or kind is named qualified, `deployments.apps` or `Deployment.apps`: what follows the first dot is
the API group. `FieldError` is the value that validators collect and `Invalid` reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from srearena.cluster.embedded.go_text import quoted, value_text
from srearena.cluster.embedded.objects import Obj

MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"
DISRUPTION_BUDGET: Final = "Cannot evict pod as it would violate the pod's disruption budget."
WATCH_TOO_OLD: Final = "The resourceVersion for the provided watch is too old."
OMITTED: Final = object()
"""The value of a field error that is not to be shown."""


class FieldErrorKind(StrEnum):
    """The machine-readable reason of a field error; also the `reason` of its cause in a Status."""

    NOT_FOUND = "FieldValueNotFound"
    REQUIRED = "FieldValueRequired"
    DUPLICATE = "FieldValueDuplicate"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    INTERNAL = "InternalError"
    TYPE_INVALID = "FieldValueTypeInvalid"


_TITLES: Final = {
    FieldErrorKind.NOT_FOUND: "Not found",
    FieldErrorKind.REQUIRED: "Required value",
    FieldErrorKind.DUPLICATE: "Duplicate value",
    FieldErrorKind.INVALID: "Invalid value",
    FieldErrorKind.NOT_SUPPORTED: "Unsupported value",
    FieldErrorKind.FORBIDDEN: "Forbidden",
    FieldErrorKind.TOO_LONG: "Too long",
    FieldErrorKind.TOO_MANY: "Too many",
    FieldErrorKind.INTERNAL: "Internal error",
    FieldErrorKind.TYPE_INVALID: "Invalid value",
}
_VALUELESS: Final = frozenset(
    {FieldErrorKind.REQUIRED, FieldErrorKind.FORBIDDEN, FieldErrorKind.TOO_LONG, FieldErrorKind.INTERNAL}
)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One thing wrong with one field, printed exactly as Go's field.Error."""

    kind: FieldErrorKind
    field: str
    value: Any = ""
    detail: str = ""

    @property
    def body(self) -> str:
        """The message without the field."""
        text = _TITLES[self.kind]
        if self.kind not in _VALUELESS and self.value is not OMITTED:
            text = f"{text}: {value_text(self.value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    def cause(self) -> Obj:
        return {"reason": str(self.kind), "message": self.body, "field": self.field}

    @classmethod
    def required(cls, field: str, detail: str = "") -> FieldError:
        return cls(FieldErrorKind.REQUIRED, field, detail=detail)

    @classmethod
    def invalid(cls, field: str, value: Any, detail: str) -> FieldError:
        return cls(FieldErrorKind.INVALID, field, value, detail)

    @classmethod
    def type_invalid(cls, field: str, value: Any, detail: str) -> FieldError:
        return cls(FieldErrorKind.TYPE_INVALID, field, value, detail)

    @classmethod
    def not_supported(cls, field: str, value: Any, supported: Iterable[str]) -> FieldError:
        names = ", ".join(quoted(str(name)) for name in supported)
        return cls(FieldErrorKind.NOT_SUPPORTED, field, value, f"supported values: {names}" if names else "")

    @classmethod
    def duplicate(cls, field: str, value: Any) -> FieldError:
        return cls(FieldErrorKind.DUPLICATE, field, value)

    @classmethod
    def not_found(cls, field: str, value: Any) -> FieldError:
        return cls(FieldErrorKind.NOT_FOUND, field, value)

    @classmethod
    def forbidden(cls, field: str, detail: str) -> FieldError:
        return cls(FieldErrorKind.FORBIDDEN, field, detail=detail)

    @classmethod
    def too_long(cls, field: str, most: int) -> FieldError:
        detail = f"may not be more than {most} {'byte' if most == 1 else 'bytes'}" if most >= 0 else "value is too long"
        return cls(FieldErrorKind.TOO_LONG, field, "<value omitted>", detail)

    @classmethod
    def too_many(cls, field: str, count: int, most: int) -> FieldError:
        """Pass a negative count where it must not be shown."""
        detail = f"must have at most {most} {'item' if most == 1 else 'items'}" if most >= 0 else "has too many items"
        return cls(FieldErrorKind.TOO_MANY, field, count if count >= 0 else OMITTED, detail)

    @classmethod
    def internal(cls, field: str, detail: str) -> FieldError:
        return cls(FieldErrorKind.INTERNAL, field, detail=detail)


class ApiError(Exception):
    """A refusal with the Status it becomes on the wire. Raise a subclass where one fits."""

    code: int = 500
    reason: str = ""

    def __init__(
        self, message: str, *, details: Obj | None = None, code: int | None = None, reason: str | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.details: Obj = {key: value for key, value in (details or {}).items() if value not in ("", None, [], 0)}
        if code is not None:
            self.code = code
        if reason is not None:
            self.reason = reason

    @property
    def causes(self) -> list[Obj]:
        return list(self.details.get("causes") or ())

    def status(self) -> Obj:
        """The `Status` object, keys in the order the real server writes them."""
        status: Obj = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        if self.message:
            status["message"] = self.message
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code} {self.reason}: {self.message!r})"


def _about(qualified: str, name: str = "", **more: Any) -> Obj:
    """Status details naming an object; `qualified` is `resource.group` or `Kind.group`."""
    kind, _, group = qualified.partition(".")
    return {"name": name, "group": group, "kind": kind, **more}


class BadRequest(ApiError):
    code = 400
    reason = "BadRequest"


class Unauthorized(ApiError):
    code = 401
    reason = "Unauthorized"

    def __init__(self, message: str = "Unauthorized") -> None:
        super().__init__(message)


class Forbidden(ApiError):
    """`pods "x" is forbidden: why`; without a name `pods is forbidden: why`."""

    code = 403
    reason = "Forbidden"

    def __init__(self, resource: str, name: str, why: str) -> None:
        subject = f"{resource} {quoted(name)} is " if name and resource else f"{resource} is " if resource else ""
        super().__init__(f"{subject}forbidden: {why}", details=_about(resource, name))


class NotFound(ApiError):
    """`deployments.apps "x" not found`; without arguments, a path the server does not serve."""

    code = 404
    reason = "NotFound"

    def __init__(self, resource: str = "", name: str = "", *, message: str | None = None) -> None:
        if message is None:
            message = (
                f"{resource} {quoted(name)} not found"
                if resource
                else "the server could not find the requested resource"
            )
        super().__init__(message, details=_about(resource, name))


class NotAcceptable(ApiError):
    code = 406
    reason = "NotAcceptable"

    def __init__(self, accepted: Sequence[str]) -> None:
        super().__init__(f"only the following media types are accepted: {', '.join(accepted)}")


class AlreadyExists(ApiError):
    """The name is taken; `generated` says the server made the name up and was unlucky, `going` that it will be free."""

    code = 409
    reason = "AlreadyExists"

    def __init__(self, resource: str, name: str, *, generated: bool = False, going: bool = False) -> None:
        message = f"{resource} {quoted(name)} already exists"
        if going:
            message = f"object is being deleted: {message}"
        if generated:
            message += ", the server was not able to generate a unique name for the object"
        super().__init__(message, details=_about(resource, name, retryAfterSeconds=1 if generated else 0))


class Conflict(ApiError):
    code = 409
    reason = "Conflict"

    def __init__(self, resource: str, name: str, why: str = MODIFIED) -> None:
        super().__init__(
            f"Operation cannot be fulfilled on {resource} {quoted(name)}: {why}", details=_about(resource, name)
        )


class ApplyConflict(Conflict):
    """Server-side apply met fields that other managers own."""

    def __init__(self, message: str, causes: list[Obj]) -> None:
        ApiError.__init__(self, message, details={"causes": causes})


class Expired(ApiError):
    """The history asked for is no longer kept: the client must list again."""

    code = 410
    reason = "Expired"

    def __init__(self, message: str = WATCH_TOO_OLD) -> None:
        super().__init__(message)

    @classmethod
    def too_old(cls, requested_revision: int, oldest: int) -> Expired:
        return cls(f"too old resource version: {requested_revision} ({oldest})")


class RequestEntityTooLarge(ApiError):
    code = 413
    reason = "RequestEntityTooLarge"

    def __init__(self, why: str) -> None:
        super().__init__(f"Request entity too large: {why}")


class UnsupportedMediaType(ApiError):
    code = 415
    reason = "UnsupportedMediaType"

    def __init__(self, accepted: Sequence[str]) -> None:
        super().__init__(
            "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
        )


class Invalid(ApiError):
    """`Deployment.apps "x" is invalid: [one, another]`, each also a cause."""

    code = 422
    reason = "Invalid"

    def __init__(self, kind: str, name: str, errors: Iterable[FieldError] = ()) -> None:
        self.errors: tuple[FieldError, ...] = tuple(errors)
        message = f"{kind} {quoted(name)} is invalid"
        if self.errors:
            message += f": {aggregate(map(str, self.errors))}"
        super().__init__(message, details=_about(kind, name, causes=[error.cause() for error in self.errors]))


class MethodNotAllowed(ApiError):
    """The path is served, but not with this method."""

    code = 405
    reason = "MethodNotAllowed"

    def __init__(self) -> None:
        super().__init__("the server does not allow this method on the requested resource")


class TooManyRequests(ApiError):
    code = 429
    reason = "TooManyRequests"

    def __init__(self, message: str, *, retry_after: int = 1, causes: list[Obj] | None = None) -> None:
        super().__init__(message, details={"causes": causes, "retryAfterSeconds": retry_after})

    @classmethod
    def disruption_budget(cls, budget: str, needed: int, healthy: int) -> TooManyRequests:
        """An eviction that the budget of that name does not allow now."""
        why = f"The disruption budget {budget} needs {needed} healthy pods and has {healthy} currently"
        return cls(DISRUPTION_BUDGET, retry_after=0, causes=[{"reason": "DisruptionBudget", "message": why}])

    @classmethod
    def disruption_budget_unsettled(cls, budget: str) -> TooManyRequests:
        """An eviction that must wait until the controller has seen the budget as it is now."""
        why = f"The disruption budget {budget} is still being processed by the server."
        return cls(DISRUPTION_BUDGET, retry_after=10, causes=[{"reason": "DisruptionBudget", "message": why}])


class InternalError(ApiError):
    code = 500
    reason = "InternalError"

    def __init__(self, why: str) -> None:
        super().__init__(f"Internal error occurred: {why}", details={"causes": [{"message": why}]})


class ServiceUnavailable(ApiError):
    code = 503
    reason = "ServiceUnavailable"


class Timeout(ApiError):
    code = 504
    reason = "Timeout"

    def __init__(self, message: str, *, retry_after: int = 0) -> None:
        super().__init__(f"Timeout: {message}", details={"retryAfterSeconds": retry_after})


def aggregate(messages: Iterable[str]) -> str:
    """Several errors as one line, each said once, the way Go's aggregate error prints."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
