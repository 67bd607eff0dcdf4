"""Registry of adapters: built-in ones, and those of installed packages (entry-point group `zero.adapters`).

A broken package causes a warning and is skipped; a broken built-in adapter raises.
"""

from __future__ import annotations

import importlib
import warnings
from importlib.metadata import entry_points
from typing import TypeVar

from zero.adapters.base import Adapter
from zero.errors import RequestError

GROUP = "zero.adapters"
_BUILT_IN = ("codex", "claude", "gemini", "opencode", "command")
_adapters: dict[str, type[Adapter]] = {}
A = TypeVar("A", bound=type[Adapter])


def adapter(kind: A) -> A:
    """Register an adapter under its name."""
    if kind.name in _adapters and _adapters[kind.name].__qualname__ != kind.__qualname__:
        raise ValueError(f"two adapters are called {kind.name}")
    _adapters[kind.name] = kind
    return kind


def adapters() -> dict[str, type[Adapter]]:
    """All adapters by name."""
    for name in _BUILT_IN:
        importlib.import_module(f"zero.adapters.{name}")
    for point in entry_points(group=GROUP):
        try:
            point.load()  # importing the module registers it
        except Exception as problem:
            warnings.warn(f"the adapter {point.name} of {point.value} cannot be loaded: {problem!r}", stacklevel=2)
    return dict(sorted(_adapters.items()))


def find(name: str) -> Adapter:
    """An instance of the adapter with a name."""
    by_name = adapters()
    if name not in by_name:
        raise RequestError(f"no coding CLI is called {name}: one of {', '.join(by_name)}")
    return by_name[name]()
