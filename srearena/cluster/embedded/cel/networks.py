"""Kubernetes' functions on addresses: IPs, CIDRs and URLs."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from srearena.cluster.embedded.cel.errors import EvaluationError
from srearena.cluster.embedded.cel.functions import overload, traversal
from srearena.cluster.embedded.cel.values import register_type
from srearena.cluster.embedded.go_text import quoted

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class IP:
    address: _Address

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class CIDR:
    address: _Address
    prefix: int

    @property
    def network(self) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
        return ipaddress.ip_network((int(self.address), self.prefix) if self._four else self._text, strict=False)

    @property
    def _four(self) -> bool:
        return isinstance(self.address, ipaddress.IPv4Address)

    @property
    def _text(self) -> str:
        return f"{self.address}/{self.prefix}"

    def __str__(self) -> str:
        return self._text


@dataclass(frozen=True, slots=True)
class URL:
    text: str
    parts: SplitResult

    def __str__(self) -> str:
        return self.text


register_type(IP, "net.IP")
register_type(CIDR, "net.CIDR")
register_type(URL, "kubernetes.URL")


def _address(text: str) -> IP | None:
    if "%" in text:
        return None
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None
    return None if mapped else IP(found)


def _cidr(text: str) -> CIDR | None:
    address, slash, length = text.partition("/")
    found = _address(address)
    if found is None or not slash or not length.isdecimal() or length != str(int(length)):
        return None
    return CIDR(found.address, int(length)) if int(length) <= found.address.max_prefixlen else None


@overload("ip(string) ip", cost=traversal)
def _ip(text: str) -> IP:
    found = _address(text)
    if found is None and "." in text and text.lower().startswith("::ffff:"):
        raise EvaluationError(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    if found is None:
        raise EvaluationError(f"IP Address {quoted(text)} parse error during conversion from string")
    return found


@overload("isIP(string) bool", cost=traversal)
def _is_ip(text: str) -> bool:
    return _address(text) is not None


@overload("ip:isCanonical(string) bool", cost=traversal)
def _is_canonical(text: str) -> bool:
    return str(_ip(text)) == text


@overload("ip.family() int")
def _family(ip: IP) -> int:
    return ip.address.version


@overload("ip.isUnspecified() bool")
def _is_unspecified(ip: IP) -> bool:
    return ip.address.is_unspecified


@overload("ip.isLoopback() bool")
def _is_loopback(ip: IP) -> bool:
    return ip.address.is_loopback


@overload("ip.isLinkLocalMulticast() bool")
def _is_link_local_multicast(ip: IP) -> bool:
    four = ip.address in ipaddress.ip_network("224.0.0.0/24") if ip.address.version == 4 else False
    return four or (ip.address.version == 6 and int(ip.address) >> 112 & 0xFF0F == 0xFF02)


@overload("ip.isLinkLocalUnicast() bool")
def _is_link_local_unicast(ip: IP) -> bool:
    return ip.address.is_link_local


@overload("ip.isGlobalUnicast() bool")
def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and str(address) != "255.255.255.255"


@overload("cidr(string) cidr", cost=traversal)
def _to_cidr(text: str) -> CIDR:
    found = _cidr(text)
    if found is None:
        raise EvaluationError("network address parse error during conversion from string: invalid CIDR address")
    return found


@overload("isCIDR(string) bool", cost=traversal)
def _is_cidr(text: str) -> bool:
    return _cidr(text) is not None


@overload("cidr.containsIP(ip) bool", "cidr.containsIP(string) bool")
def _contains_ip(cidr: CIDR, ip: Any) -> bool:
    address = (_ip(ip) if isinstance(ip, str) else ip).address
    return bool(address.version == cidr.address.version) and bool(address in cidr.network)


@overload("cidr.containsCIDR(cidr) bool", "cidr.containsCIDR(string) bool")
def _contains_cidr(cidr: CIDR, other: Any) -> bool:
    inner = _to_cidr(other) if isinstance(other, str) else other
    return bool(_contains_ip(cidr, IP(inner.address)) and inner.prefix >= cidr.prefix)


@overload("cidr.ip() ip")
def _ip_of(cidr: CIDR) -> IP:
    return IP(cidr.address)


@overload("cidr.masked() cidr")
def _masked(cidr: CIDR) -> CIDR:
    return CIDR(cidr.network.network_address, cidr.prefix)


@overload("cidr.prefixLength() int")
def _prefix_length(cidr: CIDR) -> int:
    return cidr.prefix


def _parsed(text: str) -> URL | None:
    """An absolute URI, or an absolute path, as Go's url.ParseRequestURI takes it."""
    if not text or any(ord(character) <= 32 for character in text):
        return None
    try:
        parts = urlsplit(text, allow_fragments=False)
        parts.port  # noqa: B018 (reading it checks it)
    except ValueError:
        return None
    if not parts.scheme and not text.startswith("/"):
        return None
    return URL(text, parts)


@overload("url(string) url", cost=traversal)
def _url(text: str) -> URL:
    found = _parsed(text)
    if found is None:
        raise EvaluationError(
            f"URL parse error during conversion from string: parse {quoted(text)}: invalid URI for request"
        )
    return found


@overload("isURL(string) bool", cost=traversal)
def _is_url(text: str) -> bool:
    return _parsed(text) is not None


@overload("url.getScheme() string")
def _scheme(url: URL) -> str:
    return url.parts.scheme


@overload("url.getHost() string")
def _host(url: URL) -> str:
    return url.parts.netloc.rpartition("@")[2]


@overload("url.getHostname() string")
def _hostname(url: URL) -> str:
    return url.parts.hostname or ""


@overload("url.getPort() string")
def _port(url: URL) -> str:
    return "" if url.parts.port is None else str(url.parts.port)


@overload("url.getEscapedPath() string", cost=lambda url: traversal(url.text))
def _path(url: URL) -> str:
    return quote(url.parts.path, safe="/%:@!$&'()*+,;=-._~")


@overload("url.getQuery() map(string, list(string))", cost=lambda url: traversal(url.text))
def _query(url: URL) -> dict[str, list[str]]:
    return parse_qs(url.parts.query, keep_blank_values=True)
