"""Which program an image runs. Applications add theirs with the decorator; nothing else needs to know about them.

Programs come from the modules of this package and from the entry-point group `srearena.programs` (each entry names a
module whose import registers programs). An image nobody registered runs the generic server.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.metadata import entry_points

from srearena.cluster.embedded.node import programs
from srearena.cluster.embedded.node.programs.base import Program
from srearena.cluster.embedded.node.programs.images import ImageReference

__all__ = ["ImageReference", "Program", "program", "program_for", "registered_images"]

ENTRY_POINTS = "srearena.programs"

_programs: dict[str, type[Program]] = {}


def program(*images: str) -> Callable[[type[Program]], type[Program]]:
    """Register a program for image repositories (without registry and tag): `@program("nginx", "acme/web")`."""

    def register(kind: type[Program]) -> type[Program]:
        for image in images:
            _programs[image.lower()] = kind
        program_for.cache_clear()
        return kind

    return register


def registered(image: str) -> type[Program] | None:
    """The program registered for a repository, if there is one of its own."""
    _discover()
    return _programs.get(image.lower())


@cache
def _discover() -> None:
    for module in pkgutil.iter_modules(programs.__path__, f"{programs.__name__}."):
        importlib.import_module(module.name)
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(f"programs of {entry.name} ({entry.value}) cannot be loaded: {error!r}", stacklevel=2)


@lru_cache(maxsize=4096)
def program_for(image: str) -> Program:
    """The program behind an image reference; one object serves all containers of that image."""
    _discover()
    reference = ImageReference.parse(image)
    kind = next((_programs[name] for name in reference.names if name in _programs), _programs["*"])
    return kind(reference)


def registered_images() -> frozenset[str]:
    """The repositories that have a program of their own."""
    _discover()
    return frozenset(name for name in _programs if name != "*")
