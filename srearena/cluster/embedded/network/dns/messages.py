"""DNS questions and replies.

Names inside this package are lower case and end with a dot. A reply also has the time the server took and, where it
came from a cache, the time at which it expires.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from ipaddress import ip_address

from srearena.cluster.embedded.machine.networking.reachability import DnsRecord
from srearena.cluster.embedded.network.addresses import is_address, is_ipv6

NOERROR = "NOERROR"
NXDOMAIN = "NXDOMAIN"
SERVFAIL = "SERVFAIL"
REFUSED = "REFUSED"
RCODES = {
    NOERROR: 0,
    "FORMERR": 1,
    SERVFAIL: 2,
    NXDOMAIN: 3,
    "NOTIMP": 4,
    REFUSED: 5,
    "YXDOMAIN": 6,
    "YXRRSET": 7,
    "NXRRSET": 8,
    "NOTAUTH": 9,
    "NOTZONE": 10,
}
FOREVER = float("inf")
MAX_NAME = 253


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    kind: str = "A"


@dataclass(frozen=True, slots=True)
class Reply:
    rcode: str
    records: tuple[DnsRecord, ...] = ()
    authoritative: bool = False
    seconds: float = 0.0
    """Time the server took, waiting for others included."""
    negative_ttl: int = 5
    """How long a negative reply may be cached (the SOA's minimum)."""
    expires: float = FOREVER
    """The time until which the server repeats this reply, everything else unchanged."""
    error: str = ""
    """What went wrong on the server's side, for its log."""

    @property
    def is_negative(self) -> bool:
        return self.rcode == NXDOMAIN or (self.rcode == NOERROR and not self.records)

    def later(self, seconds: float) -> Reply:
        return replace(self, seconds=self.seconds + seconds)


def failure(error: str = "", seconds: float = 0.0) -> Reply:
    return Reply(SERVFAIL, error=error, seconds=seconds)


def qualified(name: str) -> str:
    """A name in the form used inside this package."""
    name = name.lower()
    return name if name.endswith(".") else name + "."


@lru_cache(maxsize=8192)
def is_name(name: str) -> bool:
    """Whether a name is valid."""
    bare = name.rstrip(".") if name != "." else ""
    if name == ".":
        return True
    return 0 < len(bare) <= MAX_NAME and all(0 < len(label) <= 63 for label in bare.split("."))


def is_within(name: str, zone: str) -> bool:
    """Whether a name is a zone or lies in it."""
    return zone == "." or name == zone or name.endswith("." + zone)


@lru_cache(maxsize=8192)
def zone_of(name: str, zones: tuple[str, ...]) -> str | None:
    """The longest of the zones that contains the name."""
    found: str | None = None
    for zone in zones:
        if is_within(name, zone) and (found is None or len(zone) > len(found)):
            found = zone
    return found


def reverse_name(address: str) -> str:
    return ip_address(address).reverse_pointer + "."


def address_of_reverse(name: str) -> str | None:
    """The address of a name under in-addr.arpa or ip6.arpa."""
    bare = name.rstrip(".")
    if bare.endswith(".in-addr.arpa"):
        parts = bare[: -len(".in-addr.arpa")].split(".")
        text = ".".join(reversed(parts))
        return text if len(parts) == 4 and is_address(text) else None
    if bare.endswith(".ip6.arpa"):
        nibbles = "".join(reversed(bare[: -len(".ip6.arpa")].split(".")))
        text = ":".join(nibbles[i : i + 4] for i in range(0, len(nibbles), 4))
        return str(ip_address(text)) if len(nibbles) == 32 and is_address(text) else None
    return None


def address_kind(address: str) -> str:
    return "AAAA" if is_ipv6(address) else "A"
