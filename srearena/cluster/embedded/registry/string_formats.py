"""The string formats that a custom resource's schema may ask for, as go-openapi understands them.

A format that is not listed is not checked, and neither is one whose rules are not worth having here (card, book
and social security numbers): for those every string will do.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlsplit

from srearena.cluster.embedded.registry.label_syntax import subdomain_errors
from srearena.cluster.embedded.registry.wire_scalars import base64_text, time_text


def _pattern(text: str, flags: re.RegexFlag = re.ASCII) -> Callable[[str], bool]:
    compiled = re.compile(text, flags)
    return lambda value: compiled.fullmatch(value) is not None


def _without_error(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def accepts(value: str) -> bool:
        try:
            read(value)
        except ValueError:
            return False
        return True

    return accepts


def _uuid(version: str, variant: str) -> Callable[[str], bool]:
    return _pattern(rf"[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}-?{variant}-?[0-9a-f]{{12}}", re.IGNORECASE | re.ASCII)


def _uri(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    return value.startswith("/") or bool(parts.scheme and (parts.netloc or parts.path))


_HEX4: Final = "[0-9a-f]{4}"
# Letters, digits and, as the library has it, symbols.
_ALNUM: Final = "[a-zA-Z0-9$+<=>^`|~]"
_HOSTNAME: Final = (
    rf"{_ALNUM}(?:-?{_ALNUM}{{0,62}})?|(?:{_ALNUM}(?:[a-zA-Z0-9$+<=>^`|~-]{{0,61}}{_ALNUM})?\.)+[a-zA-Z]{{2,63}}"
)
_DURATION: Final = r"[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)\s*(?:ns|us|µs|ms|s|m|h|[a-z]+)\s*)+"
_anything: Final = _pattern(r".*", re.DOTALL)
_CHECKS: Final[dict[str, Callable[[str], bool]]] = {
    "bsonobjectid": _pattern("[0-9a-fA-F]{24}"),
    "uri": _uri,
    "email": _pattern(r"(?:[^<>@]*<)?[^\s<>@]+@[^\s<>@]+>?"),
    "hostname": _pattern(rf"(?=.{{1,255}}\Z)(?:{_HOSTNAME})"),
    "ipv4": _without_error(ipaddress.IPv4Address),
    "ipv6": _without_error(ipaddress.IPv6Address),
    "cidr": lambda value: "/" in value and _without_error(lambda text: ipaddress.ip_network(text, strict=False))(value),
    "mac": _pattern(r"[0-9a-fA-F]{2}(?:([:-])[0-9a-fA-F]{2}){5,19}|[0-9a-fA-F]{4}(?:\.[0-9a-fA-F]{4}){2,9}"),
    "uuid": _uuid(_HEX4, _HEX4),
    "uuid3": _uuid("3[0-9a-f]{3}", _HEX4),
    "uuid4": _uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "isbn": _anything,
    "isbn10": _anything,
    "isbn13": _anything,
    "creditcard": _anything,
    "ssn": _anything,
    "hexcolor": _pattern("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _pattern(r"rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)"),
    "byte": lambda value: value != "" and _without_error(base64_text)(value),
    "password": _anything,
    "date": _without_error(lambda value: time_text(f"{value}T00:00:00Z")),
    "duration": _pattern(_DURATION, re.IGNORECASE),
    "datetime": _without_error(lambda value: time_text(value.replace("t", "T").replace("z", "Z"))),
    "k8sshortname": lambda value: len(value) <= 63 and "." not in value and not subdomain_errors(value),
    "k8slongname": lambda value: not subdomain_errors(value),
}


def is_known_format(name: Any) -> bool:
    return isinstance(name, str) and name.replace("-", "") in _CHECKS


def matches_format(name: str, value: str) -> bool:
    return _CHECKS[name.replace("-", "")](value)
