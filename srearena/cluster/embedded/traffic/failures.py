"""Error messages of failed calls as client libraries word them: Go, Java, Node, Python and so on, per protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from srearena.cluster.embedded.machine.networking.reachability import Outcome

Kind = Literal[
    "refused", "unreachable", "timeout", "name", "reset", "error", "shed", "pool", "open", "port", "protocol"
]

_KINDS: dict[Outcome, Kind] = {
    Outcome.REFUSED: "refused",
    Outcome.TIMEOUT: "timeout",
    Outcome.RESET: "reset",
    Outcome.EMPTY: "reset",
    Outcome.NO_ROUTE: "unreachable",
    Outcome.UNREACHABLE: "unreachable",
    Outcome.NO_PORT: "port",
    Outcome.NXDOMAIN: "name",
    Outcome.DNS_FAILURE: "name",
    Outcome.TLS_ERROR: "protocol",
    Outcome.PROTOCOL_ERROR: "protocol",
}

_ERRNO = {
    "refused": ("connection refused", "ECONNREFUSED", "Connection refused"),
    "timeout": ("i/o timeout", "ETIMEDOUT", "Connection timed out"),
    "reset": ("connection reset by peer", "ECONNRESET", "Connection reset by peer"),
    "unreachable": ("no route to host", "EHOSTUNREACH", "No route to host"),
    "port": ("cannot assign requested address", "EADDRNOTAVAIL", "Cannot assign requested address"),
    "protocol": ("malformed response", "EPROTO", "Protocol error"),
}
_ENVOY = "upstream connect error or disconnect/reset before headers. reset reason:"
"""How the body of Envoy's own responses begins, where it has no response to pass on."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why calls fail on one path, and how long it takes until the caller notices."""

    kind: Kind
    text: str
    seconds: float = 0.0


def kind_of(outcome: Outcome) -> Kind:
    return _KINDS.get(outcome, "error")


def connect_failure(
    outcome: Outcome, runtime: str, protocol: str, host: str, address: str, port: int, seconds: float
) -> Failure:
    """Return the failure of a connection that was not established."""
    kind = kind_of(outcome)
    if kind == "name":
        cause = _name_error(runtime, host, outcome)
    else:
        go, code, words = _ERRNO.get(kind, ("unknown error", "EIO", "Unknown error"))
        cause = _socket_error(runtime, kind, go, code, words, address or host, port)
    return Failure(kind, in_protocol(runtime, protocol, kind, cause), seconds)


def _name_error(runtime: str, host: str, outcome: Outcome) -> str:
    missing = outcome is Outcome.NXDOMAIN
    match runtime:
        case "go":
            return f"dial tcp: lookup {host} on 10.96.0.10:53: {'no such host' if missing else 'server misbehaving'}"
        case "node":
            return f"getaddrinfo {'ENOTFOUND' if missing else 'EAI_AGAIN'} {host}"
        case "java":
            return f"java.net.UnknownHostException: {host}"
        case "envoy":
            return "no healthy upstream"
        case "nginx" | "lua":
            return f"{host} could not be resolved ({'3: Host not found' if missing else '110: Operation timed out'})"
        case "dotnet":
            return f"Name or service not known ({host}:0)"
        case "ruby":
            return f"Failed to open TCP connection to {host} (getaddrinfo: Name or service not known)"
        case "rust":
            return "error trying to connect: dns error: failed to lookup address information: Name or service not known"
        case "cpp":
            return f"Could not resolve host '{host}'"
        case _:
            words = "Name or service not known" if missing else "Temporary failure in name resolution"
            return f"[Errno {-2 if missing else -3}] {words}"


def _socket_error(runtime: str, kind: str, go: str, code: str, words: str, address: str, port: int) -> str:
    match runtime:
        case "go":
            return f"dial tcp {address}:{port}: {go if kind == 'timeout' else f'connect: {go}'}"
        case "node":
            return f"connect {code} {address}:{port}"
        case "java":
            return f"java.net.ConnectException: {words} ({address}/{address}:{port})"
        case "envoy" if kind == "timeout":
            return f"{_ENVOY} connection timeout"
        case "envoy" if kind == "reset":
            return f"{_ENVOY} connection termination"
        case "envoy":
            return f"{_ENVOY} remote connection failure, transport failure reason: delayed connect error: {words}"
        case "nginx" | "lua":
            return f"connect() failed ({_number(code)}: {words}) while connecting to upstream"
        case "dotnet":
            return f"{words} ({address}:{port})"
        case "rust":
            return f"error trying to connect: tcp connect error: {words} (os error {_number(code)})"
        case _:
            return f"{words} ({address}:{port})" if runtime != "python" else f"[Errno {_number(code)}] {words}"


def _number(code: str) -> int:
    return {
        "ECONNREFUSED": 111,
        "ETIMEDOUT": 110,
        "ECONNRESET": 104,
        "EHOSTUNREACH": 113,
        "EADDRNOTAVAIL": 99,
    }.get(code, 5)


def in_protocol(runtime: str, protocol: str, kind: Kind, cause: str) -> str:
    """Return the cause as the client library of that protocol wraps it."""
    if protocol == "grpc":
        match runtime:
            case "go":
                if kind == "name":
                    return (
                        f"rpc error: code = Unavailable desc = name resolver error: produced zero addresses ({cause})"
                    )
                dialling = f'connection error: desc = "transport: Error while dialing: {cause}"'
                return f"rpc error: code = Unavailable desc = {dialling}"
            case "node":
                return f"14 UNAVAILABLE: No connection established. Last error: {cause}"
            case "java":
                return f"io.grpc.StatusRuntimeException: UNAVAILABLE: io exception: {cause}"
            case "python":
                details = f'details = "failed to connect to all addresses; last error: UNKNOWN: {cause}"'
                return f"<_InactiveRpcError of RPC that terminated with: status = StatusCode.UNAVAILABLE {details}>"
            case "dotnet":
                return f'Status(StatusCode="Unavailable", Detail="Error connecting to subchannel. {cause}")'
            case _:
                return f"UNAVAILABLE: failed to connect to all addresses; last error: {cause}"
    if protocol == "thrift":
        return "TTransportException: Could not connect to host" if kind != "name" else f"TTransportException: {cause}"
    return cause


def timeout_failure(runtime: str, protocol: str, seconds: float) -> Failure:
    """Return the failure of a call whose timeout expired at the caller."""
    if protocol == "grpc":
        text = {
            "go": "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
            "node": "4 DEADLINE_EXCEEDED: Deadline exceeded",
            "java": "io.grpc.StatusRuntimeException: DEADLINE_EXCEEDED: deadline exceeded",
        }.get(runtime, "DEADLINE_EXCEEDED: Deadline Exceeded")
    elif protocol == "thrift":
        text = "TTransportException: THRIFT_EAGAIN (timed out)"
    elif runtime == "go":
        text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    elif runtime == "envoy":
        text = "upstream request timeout"
    elif runtime in ("nginx", "lua"):
        text = "upstream timed out (110: Connection timed out) while reading response header from upstream"
    elif runtime == "java":
        text = "java.net.SocketTimeoutException: Read timed out"
    else:
        text = "timed out"
    return Failure("timeout", text, seconds)


def remote_failure(runtime: str, protocol: str, text: str) -> str:
    """Return a remote error as the caller's library shows it."""
    if protocol != "grpc":
        return text
    if text.startswith(("rpc error", "Status(")) or " UNAVAILABLE" in text[:20]:
        return text
    match runtime:
        case "go":
            return f"rpc error: code = Unknown desc = {text}"
        case "node":
            return f"2 UNKNOWN: {text}"
        case "java":
            return f"io.grpc.StatusRuntimeException: UNKNOWN: {text}"
        case _:
            return text
