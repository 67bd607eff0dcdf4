"""Which coding CLIs there are: ours, and those that installed packages bring (entry-point group `zero.adapters`).

A broken package of someone else's is warned about and passed over; one of ours fails loudly.
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
    for name in _BUILT_IN:
        importlib.import_module(f"zero.adapters.{name}")
    for point in entry_points(group=GROUP):
        try:
            point.load()  # its module's decorators register it
        except Exception as problem:
            warnings.warn(f"the adapter {point.name} of {point.value} cannot be loaded: {problem!r}", stacklevel=2)
    return dict(sorted(_adapters.items()))


def find(name: str) -> Adapter:
    known = adapters()
    if name not in known:
        raise RequestError(f"no coding CLI is called {name}: one of {', '.join(known)}")
    return known[name]()
