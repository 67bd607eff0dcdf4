"""URLs as wget and curl take them, and how an outcome reads as a system error."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from srearena.cluster.embedded.machine.networking.reachability import Outcome

REASONS = {
    Outcome.REFUSED: "Connection refused",
    Outcome.TIMEOUT: "Operation timed out",
    Outcome.RESET: "Connection reset by peer",
    Outcome.NO_ROUTE: "No route to host",
    Outcome.UNREACHABLE: "Network unreachable",
    Outcome.EMPTY: "error getting response",
    Outcome.PROTOCOL_ERROR: "error getting response",
    Outcome.TLS_ERROR: "TLS error",
    Outcome.NXDOMAIN: "Name or service not known",
    Outcome.DNS_FAILURE: "Temporary failure in name resolution",
}


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str
    port: int
    target: str
    userinfo: str = ""

    @property
    def tls(self) -> bool:
        return self.scheme == "https"

    @property
    def authority(self) -> str:
        """Host and, where it is not the scheme's own, port."""
        default = 443 if self.tls else 80
        return self.host if self.port == default else f"{self.host}:{self.port}"


def parse_url(text: str) -> Url | None:
    """A URL, with http assumed; None where it is malformed."""
    whole = text if "://" in text else f"http://{text}"
    try:
        parts = urlsplit(whole)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    scheme = parts.scheme.lower()
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    userinfo = parts.netloc.rpartition("@")[0]
    return Url(scheme, parts.hostname, port or (443 if scheme == "https" else 80), target, userinfo)
