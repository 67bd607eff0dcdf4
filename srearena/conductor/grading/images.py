"""Image references: whether two of them name the same program."""

from __future__ import annotations

from collections.abc import Sequence


def repository(image: str) -> str:
    """The repository of an image, without tag, digest and default registry."""
    name = image.partition("@")[0]
    head, slash, last = name.rpartition("/")
    name = f"{head}{slash}{last.partition(':')[0]}"
    for prefix in ("docker-pullable://", "docker.io/", "library/"):
        name = name.removeprefix(prefix)
    return name


def same_program(one: str, other: str) -> bool:
    """Whether two references are to the same repository: versions of one program."""
    return repository(one) == repository(other)


def same_version(one: str, other: str) -> bool:
    """Whether the second reference is the first in other words: with a registry, or pinned by digest."""
    return same_program(one, other) and ("@" in other or _tag(one) == _tag(other))


def runs(image: str, words: Sequence[str]) -> str:
    """The program that the arguments of a container name, whose image decides what is done with them.

    Many entrypoints run what their first argument names. Empty where that is an option, or the image's own program by
    its name (`mongod` of mongo, `redis-server` of redis): these start what the image starts by itself.
    """
    first = words[0] if words else ""
    own = repository(image).rpartition("/")[2]
    return "" if first.startswith(("-", own)) else first


def _tag(image: str) -> str:
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2] or "latest"
