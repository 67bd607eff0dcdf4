"""The controllers: each watches objects and reconciles the cluster with their specs.

A controller is a class derived from `Controller` with a `name`, in a module of this package; that is all it takes to
be found and started.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache

from srearena.cluster.embedded.controllers.controller import Controller
from srearena.cluster.embedded.world import World


@cache
def known() -> tuple[type[Controller], ...]:
    """Every controller class of this package, by name."""
    found: dict[str, type[Controller]] = {}
    for module_info in pkgutil.iter_modules(__path__, f"{__name__}."):
        module = importlib.import_module(module_info.name)
        for _, member in inspect.getmembers(module, inspect.isclass):
            if member.__module__ == module.__name__ and issubclass(member, Controller) and member.name:
                found[member.name] = member
    return tuple(found[name] for name in sorted(found))


def start_all(world: World) -> dict[str, Controller]:
    """Start every controller; the result finds one by its name."""
    running = {kind.name: kind(world) for kind in known()}
    for controller in running.values():
        controller.start()
    return running
