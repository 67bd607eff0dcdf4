"""Image references, read as container runtimes read them, for the one question the API asks: which tag is meant."""

from __future__ import annotations

import re
from functools import lru_cache

_COMPONENT = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_HOST = rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[[a-fA-F0-9:]+\])"
_PATH = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REFERENCE = re.compile(
    rf"(?P<name>{_HOST}(?::[0-9]+)?/{_PATH}(?:/{_PATH})*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
    r"(?:@(?P<digest>[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}))?"
)
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")
_NAME_LIMIT = 255


@lru_cache(maxsize=4096)
def effective_tag(image: str) -> str:
    """The tag an image name means: `latest` where it names neither tag nor digest, nothing where it is malformed."""
    if _IDENTIFIER.fullmatch(image):
        return ""
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost" or first.lower() != first)
    whole = image if is_host else f"docker.io/library/{image}"
    match = _REFERENCE.fullmatch(whole)
    if match is None or len(match["name"]) > _NAME_LIMIT:
        return ""
    return match["tag"] or ("" if match["digest"] else "latest")
