"""Checks that many resources share, in the words of the API machinery's validation library.

Each appends what it finds to `problems`; paths are the field paths that a client reads. A check is given the value as
it stands in the object and passes over what is absent, unless it is there to require it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final

from srearena.cluster.embedded.registry import names
from srearena.cluster.embedded.registry.errors import FieldError
from srearena.cluster.embedded.registry.label_syntax import label_value_errors, qualified_name_errors

Problems = list[FieldError]

IMMUTABLE: Final = "field is immutable"
NEGATIVE: Final = "must be greater than or equal to 0"
NOT_POSITIVE: Final = "must be greater than zero"
PORT_RANGE: Final = "must be between 1 and 65535, inclusive"
MAX_INT32: Final = 2**31 - 1
PROTOCOLS: Final = ("SCTP", "TCP", "UDP")

_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_PERCENT: Final = re.compile(r"[0-9]+%", re.ASCII)
_PORT_CHARACTERS: Final = re.compile(r"[-a-z0-9]+")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")
_WILDCARD: Final = re.compile(r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SEARCH_DOMAIN: Final = re.compile(r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*")
_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_SIMPLE_NUMBER: Final = re.compile(r"0|[1-9][0-9]*", re.ASCII)


def regex_error(rule: str, pattern: str, *examples: str) -> str:
    """How the validation library names the pattern a text does not match."""
    if not examples:
        return f"{rule} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"


def between(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"


# Texts: each returns what is wrong with one.


@lru_cache(maxsize=4096)
def config_key_errors(key: str) -> tuple[str, ...]:
    found: list[str] = []
    if len(key.encode(errors="replace")) > 253:
        found.append("must be no more than 253 characters")
    if not _CONFIG_KEY.fullmatch(key):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        found.append(regex_error(rule, "[-._a-zA-Z0-9]+", "key.name", "KEY_NAME", "key-name"))
    if key in (".", ".."):
        found.append(f"must not be '{key}'")
    elif key.startswith(".."):
        found.append("must not start with '..'")
    return tuple(found)


@lru_cache(maxsize=4096)
def env_name_errors(name: str) -> tuple[str, ...]:
    """Environment variables may be named by anything printable since 1.34."""
    if name.isascii() and name.isprintable() and "=" not in name:
        return ()
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


@lru_cache(maxsize=4096)
def port_name_errors(name: str) -> tuple[str, ...]:
    found: list[str] = []
    if len(name.encode(errors="replace")) > 15:
        found.append("must be no more than 15 characters")
    if not _PORT_CHARACTERS.fullmatch(name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name.startswith("-") or name.endswith("-"):
        found.append("must not begin or end with a hyphen")
    return tuple(found)


def percent_errors(text: str) -> list[str]:
    if _PERCENT.fullmatch(text):
        return []
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return [regex_error(rule, "[0-9]+%", "1%", "93%")]


def header_name_errors(name: str) -> list[str]:
    if _HEADER.fullmatch(name):
        return []
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [regex_error(rule, "[-A-Za-z0-9]+", "X-Header-Name")]


def wildcard_errors(name: str) -> list[str]:
    found = [] if len(name) <= 253 else ["must be no more than 253 characters"]
    if not _WILDCARD.fullmatch(name):
        rule = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
        )
        found.append(regex_error(rule, _WILDCARD.pattern, "*.example.com"))
    return found


@lru_cache(maxsize=4096)
def subdomain_prefix_errors(name: str) -> tuple[str, ...]:
    """What keeps a text from being the beginning of a subdomain, which may end in a dash."""
    return tuple(names.subdomain_errors(name, True))


# Fields: each looks at one and appends to `problems`.

_label_errors = lru_cache(maxsize=4096)(names.label_errors)
_subdomain_errors = lru_cache(maxsize=4096)(names.subdomain_errors)
_qualified_errors = lru_cache(maxsize=4096)(qualified_name_errors)
_value_errors = lru_cache(maxsize=4096)(label_value_errors)


def invalid_each(problems: Problems, path: str, value: Any, texts: Iterable[str]) -> None:
    for text in texts:
        problems.append(FieldError.invalid(path, value, text))


def label(problems: Problems, path: str, value: str) -> None:
    """An RFC 1123 label."""
    for text in _label_errors(value):
        problems.append(FieldError.invalid(path, value, text))


def subdomain(problems: Problems, path: str, value: str) -> None:
    """An RFC 1123 subdomain."""
    for text in _subdomain_errors(value):
        problems.append(FieldError.invalid(path, value, text))


def search_domain(problems: Problems, path: str, value: str) -> None:
    """A DNS search path, where underscores are allowed."""
    if len(value) > 253:
        problems.append(FieldError.invalid(path, value, "must be no more than 253 characters"))
    if not _SEARCH_DOMAIN.fullmatch(value):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and "
            "must start and end with an alphanumeric character"
        )
        problems.append(FieldError.invalid(path, value, regex_error(rule, _SEARCH_DOMAIN.pattern, "example.com")))


def qualified_name(problems: Problems, path: str, value: str) -> None:
    for text in _qualified_errors(value):
        problems.append(FieldError.invalid(path, value, text))


def label_value(problems: Problems, path: str, value: str) -> None:
    for text in _value_errors(value):
        problems.append(FieldError.invalid(path, value, text))


def label_value_texts(value: str) -> list[str]:
    return list(_value_errors(value))


def labels(problems: Problems, path: str, values: Mapping[str, Any] | None) -> None:
    """Keys and values of a label map, such as a node selector."""
    for key, value in (values or {}).items():
        qualified_name(problems, path, key)
        label_value(problems, path, str(value))


def in_order(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A map as a message shows it: by key, and null where there is none."""
    return None if values is None else dict(sorted(values.items()))


def selector_in_order(value: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A label selector as a message shows it."""
    if value is None:
        return None
    shown: dict[str, Any] = {}
    if value.get("matchLabels"):
        shown["matchLabels"] = in_order(value["matchLabels"])
    if value.get("matchExpressions"):
        shown["matchExpressions"] = [
            {"key": "", "operator": "", **{key: item for key, item in rule.items() if item}}
            for rule in value["matchExpressions"]
        ]
    return shown


def required(problems: Problems, path: str, value: Any, detail: str = "") -> bool:
    """Whether there is something; where not, that is a problem."""
    if value or value is False:
        return True
    problems.append(FieldError.required(path, detail))
    return False


def one_of(problems: Problems, path: str, value: Any, supported: Collection[str]) -> None:
    if value not in supported:
        problems.append(FieldError.not_supported(path, value, supported))


def required_one_of(problems: Problems, path: str, value: Any, supported: Collection[str]) -> None:
    if not value:
        problems.append(FieldError.required(path))
    elif value not in supported:
        problems.append(FieldError.not_supported(path, value, supported))


def nonnegative(problems: Problems, path: str, value: int | None) -> None:
    if value is not None and value < 0:
        problems.append(FieldError.invalid(path, value, NEGATIVE))


def positive(problems: Problems, path: str, value: int | None) -> None:
    if (value or 0) <= 0:
        problems.append(FieldError.invalid(path, value or 0, NOT_POSITIVE))


def in_range(problems: Problems, path: str, value: int | None, low: int, high: int) -> None:
    if value is not None and not low <= value <= high:
        problems.append(FieldError.invalid(path, value, between(low, high)))


def port_number(problems: Problems, path: str, value: int) -> None:
    if not 1 <= value <= 65535:
        problems.append(FieldError.invalid(path, value, PORT_RANGE))


def port_number_or_name(problems: Problems, path: str, value: int | str | None) -> None:
    if isinstance(value, str):
        for text in port_name_errors(value):
            problems.append(FieldError.invalid(path, value, text))
    else:
        port_number(problems, path, value or 0)


def positive_number_or_percent(problems: Problems, path: str, value: int | str | None) -> None:
    if isinstance(value, str):
        invalid_each(problems, path, value, percent_errors(value))
    else:
        nonnegative(problems, path, value)


def at_most_hundred_percent(problems: Problems, path: str, value: int | str | None) -> None:
    if isinstance(value, str) and not percent_errors(value) and int(value[:-1]) > 100:
        problems.append(FieldError.invalid(path, value, "must not be greater than 100%"))


def immutable(problems: Problems, path: str, new: Any, old: Any) -> None:
    if new != old:
        problems.append(FieldError.invalid(path, new, IMMUTABLE))


def relative_path(problems: Problems, path: str, value: str) -> None:
    """A path that stays below where it starts."""
    if value.startswith("/"):
        problems.append(FieldError.invalid(path, value, "must be a relative path"))
    no_backsteps(problems, path, value)


def no_backsteps(problems: Problems, path: str, value: str) -> None:
    if ".." in value and ".." in value.split("/"):
        problems.append(FieldError.invalid(path, value, "must not contain '..'"))


def projected_path(problems: Problems, path: str, value: str) -> None:
    """A path inside a volume whose `..` names belong to the kubelet."""
    relative_path(problems, path, value)
    if value.startswith("..") and not value.startswith("../"):
        problems.append(FieldError.invalid(path, value, "must not start with '..'"))


@lru_cache(maxsize=4096)
def is_ip(value: str) -> bool:
    """Whether the text is an address, of either family; leading zeros are read as old servers read them."""
    try:
        ip_address(_without_leading_zeros(value))
    except ValueError:
        return False
    return "%" not in value


@lru_cache(maxsize=4096)
def is_cidr(value: str) -> bool:
    address, slash, length = value.partition("/")
    if not slash or not _SIMPLE_NUMBER.fullmatch(length.lstrip("0") or "0") or not is_ip(address):
        return False
    return int(length) <= (128 if ":" in address else 32)


def _without_leading_zeros(value: str) -> str:
    if ":" in value or not value.isascii():
        return value
    return ".".join(piece.lstrip("0") or "0" if piece else "" for piece in value.split("."))


def ip(problems: Problems, path: str, value: str) -> None:
    if not is_ip(value):
        problems.append(
            FieldError.invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
        )


def cidr(problems: Problems, path: str, value: str) -> None:
    if not is_cidr(value):
        text = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
        problems.append(FieldError.invalid(path, value, text))


def cidr_contains(outer: str, inner: str) -> bool:
    """Whether one network lies strictly within another."""
    whole, piece = ip_network(outer, strict=False), ip_network(inner, strict=False)
    if whole.version != piece.version:
        return False
    first = ip_address(inner.partition("/")[0])
    return first in whole and piece.prefixlen > whole.prefixlen


def is_ipv6(value: str) -> bool:
    return is_ip(value) and isinstance(ip_address(_without_leading_zeros(value)), IPv6Address)


def selector(problems: Problems, path: str, value: Mapping[str, Any] | None) -> None:
    """A label selector with matchLabels and matchExpressions."""
    if not value:
        return
    labels(problems, f"{path}.matchLabels", value.get("matchLabels"))
    for index, requirement in enumerate(value.get("matchExpressions") or ()):
        _requirement(problems, f"{path}.matchExpressions[{index}]", requirement)


def _requirement(problems: Problems, path: str, requirement: Mapping[str, Any]) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            problems.append(
                FieldError.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            )
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.append(FieldError.forbidden(f"{path}.values", text))
    else:
        problems.append(FieldError.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    qualified_name(problems, f"{path}.key", requirement.get("key") or "")
    for index, text in enumerate(values):
        label_value(problems, f"{path}.values[{index}]", str(text))


def unique(problems: Problems, path: str, value: str, seen: set[str]) -> bool:
    """Whether a name is new among `seen`, which then knows it."""
    if value in seen:
        problems.append(FieldError.duplicate(path, value))
        return False
    seen.add(value)
    return True


def domain_prefixed_path(problems: Problems, path: str, value: str) -> None:
    """A name such as `example.com/controller`."""
    if not required(problems, path, value):
        return
    host, _, rest = value.partition("/")
    if not host or not rest:
        problems.append(FieldError.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")'))
        return
    subdomain(problems, path, host)
    if not _HTTP_PATH.fullmatch(rest):
        problems.append(FieldError.invalid(path, rest, regex_error("Invalid path", _HTTP_PATH.pattern)))


Check = Callable[[Problems, str, Any], None]


def each(problems: Problems, path: str, values: Sequence[Any] | None, check: Check) -> None:
    """Run a check over a list, each item under its index."""
    for index, value in enumerate(values or ()):
        check(problems, f"{path}[{index}]", value)
