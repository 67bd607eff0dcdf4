"""Status codes of gRPC calls: as servers return them and as client libraries print them.

What a server returns when its handler fails depends on its library: grpc-go, grpc-js and grpc-dotnet pass on an error
that is itself a status, and return UNKNOWN for any other; grpc-java returns UNKNOWN without the exception's message for
exceptions that are no status; grpcio (Python) returns UNKNOWN with the text of any exception.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

NAMES = (
    *("OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists"),
    *("PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented"),
    *("Internal", "Unavailable", "DataLoss", "Unauthenticated"),
)
"""By code, as Go spells them."""
UNKNOWN, UNAVAILABLE = NAMES.index("Unknown"), NAMES.index("Unavailable")


def _upper(name: str) -> str:
    upper = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    return "CANCELLED" if upper == "CANCELED" else upper


_UPPER = tuple(_upper(name) for name in NAMES)
_CODES = {name: code for names in (NAMES, _UPPER) for code, name in enumerate(names)} | {"Cancelled": 1}
_FORMS = tuple(
    re.compile(form, re.DOTALL)
    for form in (
        r"rpc error: code = (\w+) desc = (.*)",
        r"\d+ ([A-Z_]+): (.*)",
        r"(?:io\.grpc\.StatusRuntimeException: )?([A-Z_]+)(?:: )?(.*)",
        r'Status\(StatusCode="(\w+)", Detail="(.*)"\)',
        r"Status\{code=(\w+), description=(.*), cause=.*\}",
        r'<_InactiveRpcError of RPC that terminated with: status = StatusCode\.(\w+) details = "(.*)">',
    )
)


@dataclass(frozen=True, slots=True)
class GrpcStatus:
    code: int
    message: str

    def text(self, runtime: str) -> str:
        """Return the error as the client library of a language prints it."""
        name, upper = NAMES[self.code], _UPPER[self.code]
        match runtime:
            case "go":
                return f"rpc error: code = {name} desc = {self.message}"
            case "node":
                return f"{self.code} {upper}: {self.message}"
            case "java":
                return f"io.grpc.StatusRuntimeException: {upper}{': ' if self.message else ''}{self.message}"
            case "dotnet":
                return f'Status(StatusCode="{name}", Detail="{self.message}")'
            case "python":
                details = f'status = StatusCode.{upper} details = "{self.message}"'
                return f"<_InactiveRpcError of RPC that terminated with: {details}>"
            case _:
                return f"{upper}: {self.message}"


def parse_status(text: str) -> GrpcStatus | None:
    """Return the status that an error of a client library shows."""
    for form in _FORMS:
        found = form.fullmatch(text)
        if found is not None and found[1] in _CODES:
            return GrpcStatus(_CODES[found[1]], "" if found[2] == "null" else found[2])
    return None


def returned_status(runtime: str, error: str) -> GrpcStatus:
    """Return the status that a server sends when its handler ends with an error."""
    if error == "context canceled":
        return GrpcStatus(_CODES["Canceled"], error)
    status = parse_status(error)
    match runtime:
        case "python":
            # A handler that sets a status itself writes it as the other libraries do, not as an exception.
            if status is None or error.startswith("<_InactiveRpcError"):
                return GrpcStatus(UNKNOWN, f"Exception calling application: {error}")
            return status
        case "java":
            return status or GrpcStatus(UNKNOWN, "Application error processing RPC")
        case "dotnet":
            return status or GrpcStatus(UNKNOWN, "Exception was thrown by handler.")
        case _:
            return status or GrpcStatus(UNKNOWN, error)
