"""Which program an image runs. A program is added with the decorator `program`, in a file of its own.

Programs come from the modules of this package and from the entry-point group `srearena.programs` (each entry names a
module whose import registers programs): every cluster of the process has these. Programs whose instances share state
within one cluster are added by a function decorated with `per_cluster`. An image without a registered program runs
the generic server.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from collections import ChainMap
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.metadata import entry_points

from srearena.cluster.embedded import programs
from srearena.cluster.embedded.machine.images.image_names import ImageReference
from srearena.cluster.embedded.programs.base import Program

__all__ = ["ImageReference", "Program", "Programs", "per_cluster", "program", "program_for", "registered_images"]

ENTRY_POINTS = "srearena.programs"

_programs: dict[str, type[Program]] = {}
_cluster_hooks: list[Callable[[Programs], None]] = []


def program(*images: str) -> Callable[[type[Program]], type[Program]]:
    """Register a program for image repositories (without registry and tag): `@program("nginx", "acme/web")`."""

    def register(kind: type[Program]) -> type[Program]:
        for image in images:
            _programs[image.lower()] = kind
        program_for.cache_clear()
        return kind

    return register


def per_cluster(hook: Callable[[Programs], None]) -> Callable[[Programs], None]:
    """Register a function that adds programs to each new cluster, for programs that share state within a cluster."""
    _cluster_hooks.append(hook)
    return hook


@cache
def _discover() -> None:
    for module in pkgutil.walk_packages(programs.__path__, f"{programs.__name__}."):
        importlib.import_module(module.name)
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:
            warnings.warn(f"programs of {entry.name} ({entry.value}) cannot be loaded: {error!r}", stacklevel=2)


@lru_cache(maxsize=4096)
def program_for(image: str) -> Program:
    """The program behind an image reference, in any cluster; one object serves all containers of that image."""
    _discover()
    reference = ImageReference.parse(image)
    kind = next((_programs[name] for name in reference.names if name in _programs), _programs["*"])
    return kind(reference)


def registered_images() -> frozenset[str]:
    """The repositories that have a program of their own."""
    _discover()
    return frozenset(name for name in _programs if name != "*")


class Programs:
    """The programs of one cluster: those that all clusters have, and before them its own."""

    def __init__(self) -> None:
        _discover()
        self._own: dict[str, type[Program]] = {}
        self._kinds = ChainMap(self._own, _programs)
        self._instances: dict[str, Program] = {}
        for hook in _cluster_hooks:
            hook(self)

    def register(self, kind: type[Program], *images: str) -> None:
        """Let image repositories (without tag) run a program in this cluster."""
        self._own |= {image.lower(): kind for image in images}
        self._instances.clear()

    def registered(self, image: str) -> type[Program] | None:
        """The program registered for a repository, if there is one of its own."""
        return self._kinds.get(image.lower())

    def find(self, image: str) -> Program:
        """The program behind an image reference; one object serves all containers of that image."""
        instance = self._instances.get(image)
        if instance is not None:
            return instance
        reference = ImageReference.parse(image)
        name = next((name for name in reference.names if name in self._kinds), "*")
        if name not in self._own:
            # Its files are built once for all clusters of the process.
            return program_for(image)
        instance = self._instances[image] = self._own[name](reference)
        return instance
