"""The grammar of label keys and values, with the messages the validation library gives for breaking it.

Each function returns what is wrong, in order; nothing when the text is well formed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_QUALIFIED: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE: Final = f"({_QUALIFIED})?"
_SUBDOMAIN: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_QUALIFIED_RE: Final = re.compile(_QUALIFIED)
_LABEL_VALUE_RE: Final = re.compile(_LABEL_VALUE)
_SUBDOMAIN_RE: Final = re.compile(_SUBDOMAIN)
_NAME_LIMIT: Final = 63
_SUBDOMAIN_LIMIT: Final = 253
_KNOWN: Final = 4096
"""Texts whose errors are remembered: an object's name and labels are checked with every write."""

_ENDS: Final = "and must start and end with an alphanumeric character"
_QUALIFIED_RULE: Final = (
    f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_LABEL_VALUE_RULE: Final = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {_ENDS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_LABEL_VALUE}')"
)
_SUBDOMAIN_RULE: Final = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', {_ENDS} "
    f"(e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)


@lru_cache(_KNOWN)
def qualified_name_errors(text: str) -> tuple[str, ...]:
    """What keeps `text` from being a label or annotation key, such as `app` or `example.com/app`."""
    errors: list[str] = []
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        tail = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return (f"a qualified name {_QUALIFIED_RULE}{tail}",)
    if slash:
        if not prefix:
            errors.append("prefix part must be non-empty")
        else:
            errors.extend(f"prefix part {error}" for error in subdomain_errors(prefix))
    if not name:
        errors.append("name part must be non-empty")
    elif _byte_length(name) > _NAME_LIMIT:
        errors.append(f"name part must be no more than {_NAME_LIMIT} characters")
    if not _QUALIFIED_RE.fullmatch(name):
        errors.append(f"name part {_QUALIFIED_RULE}")
    return tuple(errors)


@lru_cache(_KNOWN)
def label_value_errors(text: str) -> tuple[str, ...]:
    errors: list[str] = []
    if _byte_length(text) > _NAME_LIMIT:
        errors.append(f"must be no more than {_NAME_LIMIT} characters")
    if not _LABEL_VALUE_RE.fullmatch(text):
        errors.append(_LABEL_VALUE_RULE)
    return tuple(errors)


@lru_cache(_KNOWN)
def subdomain_errors(text: str) -> tuple[str, ...]:
    """What keeps `text` from being a DNS subdomain name."""
    too_long = _byte_length(text) > _SUBDOMAIN_LIMIT
    errors = (f"must be no more than {_SUBDOMAIN_LIMIT} characters",) if too_long else ()
    return (*errors, *subdomain_syntax_errors(text))


def subdomain_syntax_errors(text: str) -> list[str]:
    """As `subdomain_errors`, whatever the length."""
    return [] if _SUBDOMAIN_RE.fullmatch(text) else [_SUBDOMAIN_RULE]


def _byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
