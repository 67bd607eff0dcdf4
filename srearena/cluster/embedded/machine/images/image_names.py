"""Image references as program names: repository, tag and digest of a string like `docker.io/library/nginx:1.27`.

Unlike `image_references`, which refuses what a container runtime refuses, this accepts any text: a program is looked up
by name, in any registry, letter case and mirror.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ImageReference:
    registry: str
    repository: str
    """Path without registry and without Docker Hub's `library/`."""
    tag: str
    digest: str

    @classmethod
    def parse(cls, text: str) -> ImageReference:
        rest, _, digest = text.partition("@")
        head, slash, tail = rest.partition("/")
        registry = ""
        if slash and ("." in head or ":" in head or head == "localhost"):
            registry, rest = head, tail
        name, colon, tag = rest.rpartition(":")
        if not colon or "/" in tag:
            name, tag = rest, ""
        return cls(registry or "docker.io", name.removeprefix("library/"), tag or ("" if digest else "latest"), digest)

    @property
    def names(self) -> tuple[str, ...]:
        """Names a program may be registered under, most specific first: a mirror may prefix folders of its own."""
        parts = self.repository.lower().split("/")
        return tuple("/".join(parts[start:]) for start in range(len(parts)))

    @property
    def version(self) -> str:
        """The dotted number the tag starts with, if it does."""
        found = re.match(r"v?(\d+(?:\.\d+)*)", self.tag)
        return found.group(1) if found else ""
