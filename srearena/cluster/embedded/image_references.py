"""Image references as the kubelet and containerd parse them: normalized, with the parser's own errors."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache

DEFAULT_REGISTRY = "docker.io"

_COMPONENT = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = re.compile(rf"(?:{_COMPONENT}(?:\.{_COMPONENT})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?")
_PATH = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"[\w][\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}")
_IDENTIFIER = re.compile(r"[a-f0-9]{64}")


class InvalidReference(ValueError):
    """The text names no image."""


@dataclass(frozen=True, slots=True)
class Reference:
    """`registry/path:tag` or `registry/path@digest`, with nothing left out."""

    registry: str
    path: str
    tag: str
    digest: str = ""

    @property
    def repository(self) -> str:
        return f"{self.registry}/{self.path}"

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.repository}{tag}@{self.digest}" if self.digest else f"{self.repository}{tag}"

    @property
    def manifest(self) -> str:
        """The reference of the manifest request: the digest if there is one, else the tag."""
        return self.digest or self.tag

    @property
    def content_digest(self) -> str:
        """The digest of the referenced content: a tag always has the same content."""
        if self.digest:
            return self.digest
        return "sha256:" + hashlib.sha256(f"{self.repository}:{self.tag}".encode()).hexdigest()


@lru_cache(maxsize=4096)
def parse_reference(text: str) -> Reference:
    """Read an image name; InvalidReference says what is wrong with it."""
    if _IDENTIFIER.fullmatch(text):
        raise InvalidReference(f"invalid repository name ({text}), cannot specify 64-byte hexadecimal strings")
    registry, rest = _split_domain(text)
    name = rest.partition(":")[0].partition("@")[0]
    if name != name.lower():
        raise InvalidReference(f"invalid reference format: repository name ({name}) must be lowercase")
    rest, at, digest = rest.partition("@")
    path, colon, tag = rest.partition(":")
    if (
        not _DOMAIN.fullmatch(registry)
        or not _PATH.fullmatch(path)
        or (colon and not _TAG.fullmatch(tag))
        or (at and not _DIGEST.fullmatch(digest))
    ):
        raise InvalidReference("invalid reference format")
    if len(registry) + 1 + len(path) > 255:
        raise InvalidReference("repository name must not be more than 255 characters")
    return Reference(registry, path, tag or ("" if digest else "latest"), digest)


def _split_domain(text: str) -> tuple[str, str]:
    head, slash, tail = text.partition("/")
    if not slash or ("." not in head and ":" not in head and head != "localhost" and head == head.lower()):
        registry, rest = DEFAULT_REGISTRY, text
    else:
        registry, rest = head, tail
    if registry == "index.docker.io":
        registry = DEFAULT_REGISTRY
    if registry == DEFAULT_REGISTRY and "/" not in rest:
        rest = f"library/{rest}"
    return registry, rest
