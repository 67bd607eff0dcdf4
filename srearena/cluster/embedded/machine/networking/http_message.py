"""HTTP/1.1 requests and responses: as values between programs, and as bytes on a connection.

Programs map an `HttpRequest` to an `HttpResponse` and never handle bytes; the wire form exists for peers that use raw
TCP (a port-forward, `nc`, a server that is no HTTP server at all).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qs, unquote, urlsplit

from srearena.cluster.embedded.machine.networking.certificates import TlsIdentity

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024


class HttpSyntaxError(Exception):
    """The bytes are no HTTP message."""


def header_of(headers: Mapping[str, str], name: str, default: str = "") -> str:
    wanted = name.lower()
    return next((value for key, value in headers.items() if key.lower() == wanted), default)


@dataclass(slots=True)
class HttpRequest:
    method: str = "GET"
    target: str = "/"
    """Path and query, as on the request line."""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    peer: str = ""
    """The client's address as the server sees it."""
    tls: bool = False
    version: str = "HTTP/1.1"
    server_name: str = ""
    """The server name (SNI) of a TLS client; a server may have a certificate for each name."""
    accepts: Callable[[TlsIdentity], bool] | None = None
    """The TLS client's verification of the server; without it every server is accepted."""
    client: TlsIdentity | None = None
    """The certificate that the TLS client presents."""

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, list[str]]:
        return parse_qs(urlsplit(self.target).query, keep_blank_values=True)

    def header(self, name: str, default: str = "") -> str:
        return header_of(self.headers, name, default)

    def encode(self) -> bytes:
        headers = dict(self.headers)
        if self.body and not header_of(headers, "Content-Length"):
            headers["Content-Length"] = str(len(self.body))
        return _encode(f"{self.method} {self.target} {self.version}", headers, self.body)


@dataclass(slots=True)
class HttpResponse:
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    reason: str = ""
    again: Callable[[], bool] | None = field(default=None, repr=False, compare=False)
    """Repeats the same response with its side effects; False where the request must be sent again."""

    @property
    def phrase(self) -> str:
        if self.reason:
            return self.reason
        try:
            return HTTPStatus(self.status).phrase
        except ValueError:
            return ""

    def header(self, name: str, default: str = "") -> str:
        return header_of(self.headers, name, default)

    def encode(self, *, head_only: bool = False) -> bytes:
        headers = dict(self.headers)
        if not header_of(headers, "Content-Length") and self.status not in (204, 304):
            headers["Content-Length"] = str(len(self.body))
        return _encode(f"HTTP/1.1 {self.status} {self.phrase}", headers, b"" if head_only else self.body)

    @classmethod
    def text(cls, text: str, status: int = 200, content_type: str = "text/plain; charset=utf-8") -> HttpResponse:
        return cls(status, text.encode(), {"Content-Type": content_type})


def _encode(first_line: str, headers: Mapping[str, str], body: bytes) -> bytes:
    lines = [first_line, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace") + body


def split_head(buffer: bytes) -> tuple[str, dict[str, str], int] | None:
    """First line, headers and the offset of the body; None while the head is incomplete."""
    end = buffer.find(b"\r\n\r\n")
    gap = 4
    if end < 0:
        end, gap = buffer.find(b"\n\n"), 2
    if end < 0:
        if len(buffer) > MAX_HEAD:
            raise HttpSyntaxError("header too large")
        return None
    first, *rest = buffer[:end].decode("latin-1").replace("\r\n", "\n").split("\n")
    headers: dict[str, str] = {}
    for line in rest:
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise HttpSyntaxError("malformed header")
        headers[name.strip()] = value.strip()
    return first, headers, end + gap


def body_length(headers: Mapping[str, str]) -> int:
    """The value of Content-Length; 0 where there is none."""
    text = header_of(headers, "Content-Length", "0")
    if not text.isdigit() or int(text) > MAX_BODY:
        raise HttpSyntaxError("bad content length")
    return int(text)


def parse_request_line(line: str) -> tuple[str, str, str]:
    parts = line.split()
    if len(parts) != 3 or not parts[2].startswith("HTTP/"):
        raise HttpSyntaxError("malformed request line")
    return parts[0], parts[1], parts[2]


def parse_status_line(line: str) -> tuple[int, str]:
    parts = line.split(None, 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/") or not parts[1].isdigit():
        raise HttpSyntaxError("malformed status line")
    return int(parts[1]), parts[2] if len(parts) > 2 else ""
