"""The registry of faults: what a fault is, and how one is found by name.

    @fault("missing_service")
    def missing_service(bed: Testbed, service: str, client: str) -> Fault: ...

A fault is one decorated function in any module of this package. The modules are imported at the first lookup, so a new
fault needs no other change. Packages add modules with the entry-point group `srearena.faults`; a broken one warns.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar

from srearena.generators.fault.errors import FaultError

__all__ = ["Fault", "FaultFactory", "fault", "fault_names", "find_fault"]

ENTRY_POINTS = "srearena.faults"


class Fault(ABC):
    """Something that can be injected into a cluster and undone exactly."""

    target: tuple[str, str, str] | None = None
    """The one object it changes, if it is one: resource, namespace, name."""

    @property
    def changes(self) -> frozenset[str]:
        """The names of the objects that it creates, edits or deletes."""
        return frozenset() if self.target is None else frozenset({self.target[2]})

    @abstractmethod
    def inject(self) -> None: ...

    @abstractmethod
    def recover(self) -> None: ...

    @abstractmethod
    def in_place(self) -> bool:
        """Whether the cluster is in the state that the injection produced."""


FaultFactory = Callable[..., Fault]
"""Makes a fault of a testbed, the name of a microservice, and the fault's own options; touches nothing yet."""

F = TypeVar("F", bound=FaultFactory)
_factories: dict[str, FaultFactory] = {}


def fault(*names: str) -> Callable[[F], F]:
    """Register a function that makes a fault, under one or more names."""

    def register(factory: F) -> F:
        for name in names:
            if name in _factories:
                raise FaultError(f"two faults are called {name!r}")
            _factories[name] = factory
        return factory

    return register


def find_fault(name: str) -> FaultFactory:
    """The factory registered under a name; FaultError with the nearest names otherwise."""
    _import_modules()
    if name not in _factories:
        near = difflib.get_close_matches(name, _factories, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted(_factories))}"
        raise FaultError(f"there is no fault {name!r}: {hint}")
    return _factories[name]


def fault_names() -> list[str]:
    _import_modules()
    return sorted(_factories)


@cache
def _import_modules() -> None:
    package = importlib.import_module(__package__)
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{__package__}.{module.name}")
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as problem:
            warnings.warn(f"the faults of {entry.name} ({entry.value}) cannot be loaded: {problem}", stacklevel=2)
